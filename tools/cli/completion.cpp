#include "tools/cli/completion.hpp"

#include <fmt/format.h>

namespace dualgemm::cli {
namespace {

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::vector<std::string> all_names(const CommandDoc& command) {
  std::vector<std::string> names;
  for (const OptionDoc& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

bool takes_file(const OptionDoc& option) { return option.value.find("FILE") != std::string::npos; }

// The words that a positional argument takes, e.g. the shells.
std::vector<std::string> positional_words(const CommandDoc& command) {
  for (const OptionDoc& option : command.options) {
    if (option.names.empty() && !option.choices.empty()) return option.choices;
  }
  return {};
}

std::string bash_values(const CommandDoc& command) {
  std::string out;
  for (const OptionDoc& option : command.options) {
    if (option.names.empty() || option.value.empty()) continue;
    std::string action = "return";
    if (!option.choices.empty())
      action = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return",
                           joined(option.choices, " "));
    if (takes_file(option)) action = "COMPREPLY=($(compgen -f -- \"$cur\")); return";
    out += fmt::format("        {}) {} ;;\n", joined(option.names, "|"), action);
  }
  return out;
}

std::string bash(const ProgramDoc& program) {
  std::string out = R"(# bash completion for dualgemm; made by `dualgemm completion bash`
_dualgemm() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
)";
  out += fmt::format(
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '{} --help --version' -- \"$cur\")); return\n  fi\n",
      joined(command_names(program), " "));
  out += "  case ${COMP_WORDS[1]} in\n";
  for (const CommandDoc& command : program.commands) {
    out += fmt::format("    {})\n", command.name);
    if (const std::string values = bash_values(command); !values.empty())
      out += "      case $prev in\n" + values + "      esac\n";
    out += fmt::format(
        "      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return; fi\n",
        joined(all_names(command), " "));
    const std::vector<std::string> words = positional_words(command);
    out += words.empty() ? "      COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
                         : fmt::format("      COMPREPLY=($(compgen -W '{}' -- \"$cur\")) ;;\n",
                                       joined(words, " "));
  }
  return out + "  esac\n}\ncomplete -o filenames -o bashdefault -F _dualgemm dualgemm\n";
}

// Inside a zsh specification: in single quotes, without what ends a part of it.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      out += std::string("\\") + c;
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string zsh_action(const OptionDoc& option) {
  if (!option.choices.empty()) return "(" + joined(option.choices, " ") + ")";
  return takes_file(option) ? "_files" : " ";
}

std::string zsh(const ProgramDoc& program) {
  std::string out = "#compdef dualgemm\n# made by `dualgemm completion zsh`\n_dualgemm() {\n";
  out += "  local -a commands=(\n";
  for (const CommandDoc& command : program.commands)
    out += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.what));
  out +=
      "  )\n  if ((CURRENT == 2)); then _describe command commands; return; fi\n"
      "  local command=${words[2]}\n  words=(\"dualgemm-$command\" \"${(@)words[3,-1]}\")\n"
      "  ((CURRENT -= 1))\n  case $command in\n";
  for (const CommandDoc& command : program.commands) {
    out += fmt::format("    {})\n      _arguments \\\n", command.name);
    bool has_positional = false;
    for (const OptionDoc& option : command.options) {
      if (option.names.empty()) {
        has_positional = true;
        out += fmt::format("        ':{}:{}' \\\n", zsh_text(option.what),
                           option.choices.empty() ? "_files" : zsh_action(option));
        continue;
      }
      for (const std::string& name : option.names) {
        const bool optional = option.value.rfind('[', 0) == 0;
        out += fmt::format("        '{}[{}]", name, zsh_text(option.what));
        if (!option.value.empty())
          out += fmt::format(":{}{}:{}", optional ? ":" : "", zsh_text(option.value),
                             zsh_action(option));
        out += "' \\\n";
      }
    }
    out += has_positional ? "        && return ;;\n" : "        '*:file:_files' && return ;;\n";
  }
  return out +
         "  esac\n}\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then _dualgemm \"$@\"; "
         "else compdef _dualgemm dualgemm; fi\n";
}

std::string fish_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string fish(const ProgramDoc& program) {
  std::string out = "# fish completion for dualgemm; made by `dualgemm completion fish`\n";
  const std::string names = joined(command_names(program), " ");
  for (const CommandDoc& command : program.commands)
    out += fmt::format(
        "complete -c dualgemm -f -n 'not __fish_seen_subcommand_from {}' -a {} -d '{}'\n", names,
        command.name, fish_text(command.what));
  for (const CommandDoc& command : program.commands) {
    const std::string condition =
        fmt::format("complete -c dualgemm -n '__fish_seen_subcommand_from {}'", command.name);
    if (const auto words = positional_words(command); !words.empty())
      out += fmt::format("{} -f -a '{}'\n", condition, joined(words, " "));
    for (const OptionDoc& option : command.options) {
      if (option.names.empty()) continue;
      out += condition;
      for (const std::string& name : option.names)
        out += name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.choices.empty()) {
        out += fmt::format(" -x -a '{}'", joined(option.choices, " "));
      } else if (!option.value.empty()) {
        out += takes_file(option) ? " -r -F" : " -x";
      }
      out += fmt::format(" -d '{}'\n", fish_text(option.what));
    }
  }
  return out;
}

}  // namespace

std::string completion_script(const ProgramDoc& program, const std::string& shell) {
  if (shell == "bash") return bash(program);
  return shell == "zsh" ? zsh(program) : fish(program);
}

}  // namespace dualgemm::cli
