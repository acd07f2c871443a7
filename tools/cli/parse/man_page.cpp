#include "tools/cli/parse/man_page.hpp"

#include <algorithm>
#include <string_view>

#include "dualgemm/dualgemm.hpp"
#include "tools/cli/parse/help_text.hpp"

namespace dualgemm::cli {
namespace {

// A line of text in which roff sees no request and keeps every hyphen.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

std::string quoted_title(const std::string& text) { return "\"" + escaped(text) + "\""; }

// Prose as paragraphs, indented lines as they are.
std::string body(std::string_view text) {
  std::string out;
  bool verbatim = false, paragraph = false;
  const auto set_verbatim = [&](bool wanted) {
    if (verbatim != wanted) out += wanted ? ".PP\n.nf\n" : ".fi\n";
    verbatim = wanted;
    paragraph = paragraph && !wanted;
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) {
      set_verbatim(false);
      paragraph = false;
      continue;
    }
    set_verbatim(line[0] == ' ');
    if (!verbatim && !paragraph) out += ".PP\n";
    paragraph = !verbatim;
    out += escaped(line) + "\n";
  }
  set_verbatim(false);
  return out;
}

std::string option_entry(const OptionDoc& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + ("\\fB" + escaped(name) + "\\fR");
  if (!option.value.empty())
    names += (names.empty() ? "" : " ") + ("\\fI" + escaped(option.value) + "\\fR");
  return ".TP\n" + names + "\n" + escaped(full_description(option)) + "\n";
}

std::string command_section(const CommandDoc& command) {
  std::string out =
      ".SS " + quoted_title(usage_line(command)) + "\n" + escaped(command.what) + ".\n";
  std::string group;
  for (const OptionDoc& option : command.options) {
    if (option.group != group) out += ".PP\n\\fI" + escaped(option.group) + "\\fR\n";
    group = option.group;
    out += option_entry(option);
  }
  return out + body(command.teaching);
}

}  // namespace

std::string man_page(const ProgramDoc& program) {
  std::string out = ".TH DUALGEMM 1 \"\" \"dualgemm " + std::string(version()) +
                    "\" \"User Commands\"\n.SH NAME\n"
                    "dualgemm \\- the gate/up half of a gated MLP in NVFP4\n"
                    ".SH SYNOPSIS\n\\fBdualgemm\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
                    ".SH DESCRIPTION\n";
  out += body(program.what) + body(program.teaching) + ".SH COMMANDS\n";
  for (const CommandDoc& command : program.commands) out += command_section(command);
  out +=
      ".SH ENVIRONMENT\n"
      ".TP\n\\fBDUALGEMM_FORCE_ISA\\fR\n"
      "The CPU instruction set where \\fB\\-\\-isa\\fR does not name one.\n"
      ".TP\n\\fBDUALGEMM_CUBLASLT\\fR\nPath of the cuBLASLt library to load.\n"
      ".TP\n\\fBCOLUMNS\\fR\nThe width that text is set for; else that of the terminal, else 80.\n"
      ".TP\n\\fBNO_COLOR\\fR\nNot empty: no colour unless \\fB\\-\\-color=always\\fR asks for it.\n"
      ".TP\n\\fBTERM\\fR\nEmpty or \\fBdumb\\fR: no colour and no progress bar.\n"
      ".SH \"EXIT STATUS\"\n"
      ".TP\n0\nThe operation succeeded.\n"
      ".TP\n1\nIt failed: a file, memory, a result that is not right.\n"
      ".TP\n2\nThe request is wrong: options, values, shapes.\n";
  return out;
}

}  // namespace dualgemm::cli
