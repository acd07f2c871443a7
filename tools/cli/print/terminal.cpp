#include "tools/cli/print/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace dualgemm::cli {
namespace {

constexpr int kUnknownWidth = 80, kNarrowest = 20, kWidest = 10000;

ColourChoice chosen_colour = ColourChoice::kAuto;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Columns that `text` says, or 0.
int columns_in(const std::string& text) {
  int columns = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, columns);
  return error == std::errc() && stop == end && columns > 0 ? columns : 0;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Where a broken line continues: below its second column, or two columns in.
size_t hanging_indent(std::string_view line, size_t start, size_t width) {
  const size_t gap = line.find("  ", start);
  const size_t second = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  if (second != std::string_view::npos && second < width / 2) return second;
  return start + 2;
}

std::string broken(std::string_view line, size_t width) {
  const size_t start = std::min(line.find_first_not_of(' '), line.size());
  const size_t indent = hanging_indent(line, start, width);
  const std::string_view head = line.substr(0, std::min(indent, line.size()));
  const bool has_column = indent > start + 2;
  std::string out;
  const std::string_view rest = has_column ? line.substr(indent) : line.substr(start);
  const size_t first = has_column ? indent : start;
  // Set with the room of the continuation; the first line, which has more, keeps to it as well.
  for (const std::string& part : wrapped(rest, width > indent ? width - indent : 1)) {
    if (out.empty()) {
      out = (has_column ? std::string(head) : std::string(first, ' ')) + part;
    } else {
      out += "\n" + std::string(indent, ' ') + part;
    }
  }
  return out;
}

}  // namespace

Style style_for(const StreamFacts& facts, ColourChoice choice) {
  Style style;
  const int said = columns_in(facts.columns);
  const int known = said > 0 ? said : facts.terminal_columns;
  style.width = known > 0 ? std::clamp(known, kNarrowest, kWidest) : kUnknownWidth;
  const bool automatic = facts.is_terminal && !facts.no_colour && !facts.is_dumb_terminal;
  style.colour = choice == ColourChoice::kAlways || (choice == ColourChoice::kAuto && automatic);
  return style;
}

StreamFacts facts_of(int file_descriptor) {
  StreamFacts facts;
  facts.is_terminal = isatty(file_descriptor) == 1;
  winsize size{};
  if (facts.is_terminal && ioctl(file_descriptor, TIOCGWINSZ, &size) == 0)
    facts.terminal_columns = size.ws_col;
  facts.columns = environment("COLUMNS");
  facts.no_colour = !environment("NO_COLOR").empty();
  const std::string terminal = environment("TERM");
  facts.is_dumb_terminal = terminal.empty() || terminal == "dumb";
  return facts;
}

bool can_redraw(const StreamFacts& facts) { return facts.is_terminal && !facts.is_dumb_terminal; }

void set_colour_choice(ColourChoice choice) { chosen_colour = choice; }
Style stdout_style() { return style_for(facts_of(STDOUT_FILENO), chosen_colour); }
Style stderr_style() { return style_for(facts_of(STDERR_FILENO), chosen_colour); }

std::string painted(std::string_view text, Paint paint, bool colour) {
  if (!colour || text.empty()) return std::string(text);
  const char* code = "";
  switch (paint) {
    case Paint::kBold:
      code = "\033[1m";
      break;
    case Paint::kRed:
      code = "\033[1;31m";
      break;
    case Paint::kGreen:
      code = "\033[32m";
      break;
    case Paint::kDim:
      code = "\033[2m";
      break;
  }
  return code + std::string(text) + "\033[0m";
}

std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  for (size_t begin = 0; begin < text.size();) {
    const size_t word = text.find_first_not_of(" \n", begin);
    if (word == std::string_view::npos) break;
    const size_t end = std::min(text.find_first_of(" \n", word), text.size());
    const std::string_view piece = text.substr(word, end - word);
    std::string& line = lines.back();
    if (!line.empty() && line.size() + 1 + piece.size() > width) {
      lines.emplace_back(piece);
    } else {
      line += (line.empty() ? "" : " ") + std::string(piece);
    }
    begin = end;
  }
  return lines;
}

std::string with_long_lines_broken(std::string_view text, int width) {
  std::string out;
  for (const std::string_view line : lines_of(text)) {
    const bool fits = line.size() <= static_cast<size_t>(width);
    out += (fits ? std::string(line) : broken(line, static_cast<size_t>(width))) + "\n";
  }
  return out;
}

std::string reflowed(std::string_view text, int width) {
  std::string out, paragraph;
  const auto flush = [&] {
    if (paragraph.empty()) return;
    for (const std::string& line : wrapped(paragraph, static_cast<size_t>(width)))
      out += line + "\n";
    paragraph.clear();
  };
  for (const std::string_view line : lines_of(text)) {
    if (!line.empty() && line[0] != ' ') {
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
      if (line.back() == ':') flush();  // what it announces begins on a line of its own
      continue;
    }
    flush();
    out += with_long_lines_broken(line.empty() ? "\n" : line, width);
  }
  flush();
  return out;
}

}  // namespace dualgemm::cli
