// Tables and pictures as text. stdout carries data, stderr carries talk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dualgemm/status.hpp"

namespace dualgemm::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // Precondition: one cell per column.
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string text() const;
  std::string markdown() const;
  std::string csv() const;  // RFC 4180, "\n" line ends

 private:
  std::vector<size_t> widths() const;
  std::string padded(const std::string& cell, size_t column, size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

struct Bar {
  std::string label;
  double value = 0.0;  // >= 0
  std::string note;    // printed behind the bar
};

// Horizontal bars, the largest value `width` characters long; a value above 0 has at least one.
std::string bar_picture(const std::vector<Bar>& bars, int width);

// "33.0 MB" (10^6 bytes), "512 B".
std::string format_bytes(int64_t bytes);

// All of `text` to stdout; a stream that fails (disk full, closed) is noticed by flush_stdout().
void print(std::string_view text);
Status flush_stdout();

// One line to stderr, "dualgemm: " before it.
void talk(std::string_view line);

// Talks about the error and returns the exit code for it.
int fail(const Status& status);  // the operation failed: 1
// The request is wrong: 2; but 1 for what no request could have avoided (memory, I/O, a bug).
int fail_usage(const Status& status);

}  // namespace dualgemm::cli
