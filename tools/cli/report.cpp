#include "tools/cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "tools/cli/args.hpp"

namespace dualgemm::cli {
namespace {

std::string markdown_cell(const std::string& cell) {
  std::string escaped;
  for (const char c : cell) {
    if (c == '|') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::vector<size_t> Table::widths() const {
  std::vector<size_t> result;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = columns_[i].title.size();
    for (const auto& row : rows_) width = std::max(width, row[i].size());
    result.push_back(width);
  }
  return result;
}

std::string Table::padded(const std::string& cell, size_t column, size_t width) const {
  const bool last = column + 1 == columns_.size();
  if (columns_[column].align == Align::kRight) return fmt::format("{:>{}}", cell, width);
  return last ? cell : fmt::format("{:<{}}", cell, width);
}

std::string Table::text() const {
  const std::vector<size_t> width = widths();
  std::string out;
  const auto add_line = [&](const auto& cell_of) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) out += "  ";
      out += padded(cell_of(i), i, width[i]);
    }
    out += '\n';
  };
  add_line([&](size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) add_line([&](size_t i) { return row[i]; });
  return out;
}

std::string Table::markdown() const {
  std::string out = "|", rule = "|";
  for (const Column& column : columns_) {
    out += " " + markdown_cell(column.title) + " |";
    rule += column.align == Align::kRight ? "---:|" : "---|";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : rows_) {
    out += "|";
    for (const std::string& cell : row) out += " " + markdown_cell(cell) + " |";
    out += "\n";
  }
  return out;
}

std::string Table::csv() const {
  std::string out;
  for (size_t i = 0; i < columns_.size(); ++i) out += (i ? "," : "") + csv_cell(columns_[i].title);
  out += "\n";
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) out += (i ? "," : "") + csv_cell(row[i]);
    out += "\n";
  }
  return out;
}

std::string bar_picture(const std::vector<Bar>& bars, int width) {
  size_t label_width = 0;
  double largest = 0.0;
  for (const Bar& bar : bars) {
    label_width = std::max(label_width, bar.label.size());
    largest = std::max(largest, bar.value);
  }
  std::string out;
  for (const Bar& bar : bars) {
    const double share = largest > 0.0 ? bar.value / largest : 0.0;
    const int length = share > 0.0 ? std::max(1, static_cast<int>(std::lround(share * width))) : 0;
    const std::string drawn(static_cast<size_t>(length), '#');
    out += fmt::format("{:<{}} |{:<{}}| {}\n", bar.label, label_width, drawn, width, bar.note);
  }
  return out;
}

std::string format_bytes(int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (value < 1e3) return fmt::format("{} B", bytes);
  if (value < 1e6) return fmt::format("{:.1f} kB", value / 1e3);
  if (value < 1e9) return fmt::format("{:.1f} MB", value / 1e6);
  return fmt::format("{:.2f} GB", value / 1e9);
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Status flush_stdout() {
  const bool failed = std::fflush(stdout) != 0;
  if (!failed && std::ferror(stdout) == 0) return {};
  return Status::error(StatusCode::kIoError, "stdout", std::strerror(errno),
                       "must take everything");
}

void talk(std::string_view line) { fmt::print(stderr, "dualgemm: {}\n", line); }

int fail(const Status& status) {
  talk(status.message());
  return kExitFailed;
}

int fail_usage(const Status& status) {
  talk(status.message());
  switch (status.code()) {
    case StatusCode::kOutOfMemory:
    case StatusCode::kWorkspaceTooSmall:
    case StatusCode::kIoError:
    case StatusCode::kInternal:
      return kExitFailed;
    default:
      return kExitUsage;
  }
}

}  // namespace dualgemm::cli
