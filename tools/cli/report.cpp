#include "tools/cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/printable.hpp"
#include "tools/cli/args.hpp"
#include "tools/cli/standard_streams.hpp"

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

void complain(const Status& status) {
  print_to_stderr(fmt::format("{} {}\n", painted("dualgemm:", Paint::kRed, stderr_style().colour),
                              status.message()));
}

constexpr size_t kGap = 2;  // blanks between columns

// Verdicts stand out; `cell` is the whole of which `text` is a line.
std::string painted_cell(const std::string& text, const std::string& cell, const Style& style) {
  const auto begins = [&](const char* with) { return cell.rfind(with, 0) == 0; };
  if (begins("WRONG") || begins("ERROR") || begins("NO:") || begins("> 100"))
    return painted(text, Paint::kRed, style.colour);
  if (begins("ok")) return painted(text, Paint::kGreen, style.colour);
  if (cell == "-" || begins("skipped")) return painted(text, Paint::kDim, style.colour);
  return text;
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  for (std::string& cell : cells)
    cell = core::printable(cell, std::string::npos, core::LineBreaks::kKept);
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::widths() const {
  std::vector<size_t> result;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = columns_[i].title.size();
    for (const auto& row : rows_) width = std::max(width, row[i].size());
    result.push_back(width);
  }
  return result;
}

std::vector<Table::Part> Table::parts(const std::vector<size_t>& width, size_t room) const {
  constexpr size_t kLeastWrapped = 20;  // narrower, a wrapped text is unreadable
  std::vector<Part> parts;
  size_t used = 0;
  const auto begin_part = [&] {
    parts.push_back({{}, 0});
    used = 0;
  };
  const auto add = [&](size_t column, size_t taken) {
    used += taken + (parts.back().columns.empty() ? 0 : kGap);
    parts.back().columns.push_back(column);
    parts.back().last_width = taken;
  };
  const auto add_keys = [&] {
    for (size_t i = 0; i < std::min(keys_, columns_.size()); ++i) add(i, width[i]);
  };
  begin_part();
  add_keys();
  for (size_t i = keys_; i < columns_.size(); ++i) {
    const bool wraps = i + 1 == columns_.size() && columns_[i].align == Align::kLeft;
    const size_t least = wraps ? std::min(width[i], kLeastWrapped) : width[i];
    if (used + kGap + least > room && parts.back().columns.size() > keys_) {
      begin_part();
      add_keys();
    }
    const size_t left = room > used + kGap ? room - used - kGap : 0;
    add(i, wraps ? std::max(least, std::min(width[i], left)) : width[i]);
  }
  return parts;
}

std::string Table::line(const std::vector<std::string>& cells, const Part& part,
                        const std::vector<size_t>& width, const Style& style, bool title) const {
  std::string out;
  size_t used = 0;
  for (const size_t column : part.columns) {
    const bool last = column == part.columns.back();
    const bool right = columns_[column].align == Align::kRight;
    const std::string& cell = cells[column];
    if (used > 0) out += std::string(kGap, ' '), used += kGap;
    const size_t room = last ? part.last_width : width[column];
    const std::string padding(room > cell.size() ? room - cell.size() : 0, ' ');
    const auto paint = [&](const std::string& text) {
      return title ? painted(text, Paint::kBold, style.colour) : painted_cell(text, cell, style);
    };
    if (right) {
      out += padding + paint(cell);
    } else if (!last) {
      out += paint(cell) + padding;
    } else {
      const std::vector<std::string> lines = wrapped(cell, room);
      for (size_t i = 0; i < lines.size(); ++i)
        out += (i > 0 ? "\n" + std::string(used, ' ') : std::string()) + paint(lines[i]);
    }
    used += room;
  }
  return out + "\n";
}

std::string Table::text(const Style& style) const {
  const std::vector<size_t> width = widths();
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::string out;
  for (const Part& part : parts(width, static_cast<size_t>(style.width))) {
    if (!out.empty()) out += "\n";
    out += line(titles, part, width, style, /*title=*/true);
    for (const auto& row : rows_) out += line(row, part, width, style, /*title=*/false);
  }
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

int bar_width(const std::vector<Bar>& bars, int columns) {
  constexpr int kWidest = 50, kNarrowest = 4;
  size_t label = 0, note = 0;
  for (const Bar& bar : bars) {
    label = std::max(label, bar.label.size());
    note = std::max(note, bar.note.size());
  }
  const int frame = static_cast<int>(label + note) + 4;  // " |" and "| "
  return std::clamp(columns - frame, kNarrowest, kWidest);
}

std::string format_bytes(int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (value < 1e3) return fmt::format("{} B", bytes);
  if (value < 1e6) return fmt::format("{:.1f} kB", value / 1e3);
  if (value < 1e9) return fmt::format("{:.1f} MB", value / 1e6);
  if (value < 1e12) return fmt::format("{:.2f} GB", value / 1e9);
  return fmt::format("{:.2f} TB", value / 1e12);
}

void print(std::string_view text) {
  print_styled(core::printable(text, std::string::npos, core::LineBreaks::kKept));
}

void print_styled(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Status flush_stdout() {
  const bool failed = std::fflush(stdout) != 0;
  if (!failed && std::ferror(stdout) == 0) return {};
  return Status::error(StatusCode::kIoError, "stdout", std::strerror(errno),
                       "must take everything");
}

void talk(std::string_view line, std::string_view details) {
  print_to_stderr(
      fmt::format("dualgemm: {}\n{}", core::printable(line, core::kLongestMessage),
                  core::printable(details, std::string::npos, core::LineBreaks::kKept)));
}

int fail(const Status& status) {
  complain(status);
  return kExitFailed;
}

int fail_usage(const Status& status) {
  complain(status);
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
