#include "tools/cli/parse/help_text.hpp"

#include <algorithm>

namespace dualgemm::cli {
namespace {

constexpr size_t kWidestSignature = 28;  // a longer one gets a line of its own

std::string heading(const std::string& text, const Style& style) {
  return "\n" + painted(text + ":", Paint::kBold, style.colour) + "\n";
}

// `left` in a column of `left_width`, `right` wrapped beside it.
std::string entry(const std::string& left, const std::string& right, size_t left_width,
                  const Style& style) {
  const size_t indent = left_width + 4, width = static_cast<size_t>(style.width);
  const size_t room = width > indent + 16 ? width - indent : std::max<size_t>(width, 24) - 8;
  const size_t column = width > indent + 16 ? indent : 8;
  const std::vector<std::string> lines = wrapped(right, room);
  std::string out = "  " + painted(left, Paint::kBold, style.colour);
  size_t next = 0;
  if (column == indent && left.size() <= left_width) {
    out += std::string(indent - 2 - left.size(), ' ') + lines.front();
    next = 1;
  }
  for (; next < lines.size(); ++next) out += "\n" + std::string(column, ' ') + lines[next];
  return out + "\n";
}

size_t column_of(const std::vector<std::string>& lefts) {
  size_t width = 0;
  for (const std::string& left : lefts) {
    if (left.size() <= kWidestSignature) width = std::max(width, left.size());
  }
  return width;
}

}  // namespace

std::string sentence_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string signature(const OptionDoc& option) {
  std::string text;
  for (const std::string& name : option.names) text += (text.empty() ? "" : ", ") + name;
  if (option.value.empty()) return text;
  return text + (text.empty() ? "" : " ") + option.value;
}

std::string full_description(const OptionDoc& option) {
  std::string text = option.what;
  if (!option.choices.empty()) text += ": " + sentence_of(option.choices);
  if (!option.default_text.empty()) text += " (default " + option.default_text + ")";
  return option.required ? text + " (required)" : text;
}

std::string help_text(const ProgramDoc& program, const Style& style) {
  std::string out = reflowed(program.what, style.width);
  out += heading("Usage", style) + "  dualgemm COMMAND [OPTIONS]\n" + heading("Commands", style);
  const size_t column = column_of(command_names(program));
  for (const CommandDoc& command : program.commands)
    out += entry(command.name, command.what, column, style);
  return out + reflowed(program.teaching, style.width);
}

std::string help_text(const CommandDoc& command, const Style& style) {
  std::string out = reflowed(command.what + ".", style.width);
  out += heading("Usage", style) + with_long_lines_broken("  " + usage_line(command), style.width);
  std::vector<std::string> signatures;
  for (const OptionDoc& option : command.options) signatures.push_back(signature(option));
  const size_t column = column_of(signatures);
  std::string group;
  for (size_t i = 0; i < command.options.size(); ++i) {
    const OptionDoc& option = command.options[i];
    if (option.group != group) out += heading(option.group, style);
    group = option.group;
    out += entry(signatures[i], full_description(option), column, style);
  }
  return out + reflowed(command.teaching, style.width);
}

}  // namespace dualgemm::cli
