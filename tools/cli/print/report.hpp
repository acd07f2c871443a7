// Tables and pictures as text. stdout carries data, stderr carries talk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dualgemm/status.hpp"
#include "tools/cli/print/terminal.hpp"

namespace dualgemm::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
};

class Table {
 public:
  // The first `keys` columns name a row: they stand in front of every part of a table that is too
  // wide.
  explicit Table(std::vector<Column> columns, size_t keys = 1)
      : columns_(std::move(columns)), keys_(keys) {}
  // Precondition: one cell per column.
  void add_row(std::vector<std::string> cells);

  // Columns that do not fit side by side go into further parts below; the last column is wrapped.
  std::string text(const Style& style = stdout_style()) const;
  std::string markdown() const;
  std::string csv() const;  // RFC 4180, "\n" line ends

 private:
  struct Part {
    std::vector<size_t> columns;
    size_t last_width;  // of the last of them, which may be wrapped
  };
  std::vector<size_t> widths() const;
  std::vector<Part> parts(const std::vector<size_t>& width, size_t room) const;
  std::string line(const std::vector<std::string>& cells, const Part& part,
                   const std::vector<size_t>& width, const Style& style, bool title) const;

  std::vector<Column> columns_;
  size_t keys_;
  std::vector<std::vector<std::string>> rows_;
};

struct Bar {
  std::string label;
  double value = 0.0;  // >= 0
  std::string note;    // printed behind the bar
};

// Horizontal bars, the largest value `width` characters long; a value above 0 has at least one.
std::string bar_picture(const std::vector<Bar>& bars, int width);

// The `width` for bar_picture with which its lines take at most `columns`.
int bar_width(const std::vector<Bar>& bars, int columns);

// "33.0 MB" (10^6 bytes), "512 B".
std::string format_bytes(int64_t bytes);

// All of `text` to stdout, what acts on a terminal escaped (core::printable) but for ends of lines;
// a stream that fails (disk full, closed) is noticed by flush_stdout().
void print(std::string_view text);
// Text of which the parts from outside are escaped already, with colours of our own.
void print_styled(std::string_view text);
Status flush_stdout();

// One line to stderr, "dualgemm: " before it, escaped and shortened like a Status; `details` follow
// as they are, lines of our own making.
void talk(std::string_view line, std::string_view details = {});

// Talks about the error and returns the exit code for it.
int fail(const Status& status);  // the operation failed: 1
// The request is wrong: 2; but 1 for what no request could have avoided (memory, I/O, a bug).
int fail_usage(const Status& status);

}  // namespace dualgemm::cli
