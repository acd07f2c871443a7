#include "tools/cli/parse/completion.hpp"

#include <fmt/format.h>

#include <algorithm>

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
bool takes_list(const OptionDoc& option) {  // "a,b"
  return option.value == "LIST" && !option.choices.empty();
}
bool may_lack_value(const OptionDoc& option) { return option.value.starts_with("["); }

// The words that a positional argument takes, e.g. the shells.
std::vector<std::string> positional_words(const CommandDoc& command) {
  for (const OptionDoc& option : command.options) {
    if (option.names.empty() && !option.choices.empty()) return option.choices;
  }
  return {};
}

bool takes_positional(const CommandDoc& command) {
  return std::any_of(command.options.begin(), command.options.end(),
                     [](const OptionDoc& option) { return option.names.empty(); });
}

std::string bash_values(const CommandDoc& command) {
  std::string out;
  for (const OptionDoc& option : command.options) {
    if (option.names.empty() || option.value.empty()) continue;
    std::string action = "return";
    if (takes_list(option)) {
      action = fmt::format("_dualgemm_list '{}'; return", joined(option.choices, " "));
    } else if (!option.choices.empty()) {
      action = fmt::format("_dualgemm_words '{}'; return", joined(option.choices, " "));
    } else if (takes_file(option)) {
      action = "_dualgemm_files; return";
    }
    if (may_lack_value(option)) action = "if [[ $cur != -* ]]; then " + action + "; fi";
    out += fmt::format("        {}) {} ;;\n", joined(option.names, "|"), action);
  }
  return out;
}

// Bash takes `--act=ge` as three words; names of files may hold spaces, and a folder that is called
// as a command must not turn it into one: only files are completed as such.
constexpr const char* kBashFunctions =
    R"(# bash completion for dualgemm; made by `dualgemm completion bash`
_dualgemm_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_dualgemm_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}
_dualgemm_list() {
  local before=
  if [[ $cur == *,* ]]; then before=${cur%,*},; fi
  compopt -o nospace 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${cur##*,}")
}
_dualgemm() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
)";

std::string bash(const ProgramDoc& program) {
  std::string out = kBashFunctions;
  out += fmt::format(
      "  if ((COMP_CWORD == 1)); then _dualgemm_words '{} --help --version'; return; fi\n",
      joined(command_names(program), " "));
  out += "  case ${COMP_WORDS[1]} in\n";
  for (const CommandDoc& command : program.commands) {
    out += fmt::format("    {})\n", command.name);
    if (const std::string values = bash_values(command); !values.empty())
      out += "      case $prev in\n" + values + "      esac\n";
    const std::vector<std::string> words = positional_words(command);
    const std::string names = joined(all_names(command), " ");
    if (!takes_positional(command)) {
      out += fmt::format("      _dualgemm_words '{}' ;;\n", names);
      continue;
    }
    out += fmt::format("      if [[ $cur == -* ]]; then _dualgemm_words '{}'; return; fi\n", names);
    out += words.empty() ? "      _dualgemm_files ;;\n"
                         : fmt::format("      _dualgemm_words '{}' ;;\n", joined(words, " "));
  }
  return out + "  esac\n}\ncomplete -F _dualgemm dualgemm\n";
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

// What is completed after "message:"; a message holds no brackets.
std::string zsh_value(const OptionDoc& option) {
  std::string message = option.value;
  std::erase_if(message, [](char c) { return c == '[' || c == ']'; });
  std::string action = " ";
  if (takes_list(option)) {
    action = "_sequence compadd - " + joined(option.choices, " ");
  } else if (!option.choices.empty()) {
    action = "(" + joined(option.choices, " ") + ")";
  } else if (takes_file(option)) {
    action = "_files";
  }
  return message + ":" + action;
}

// The specification of one of an option's names: others of it, "=", explanation, value.
std::string zsh_option(const OptionDoc& option, const std::string& name) {
  std::string out = option.repeatable ? "*" : "(" + joined(option.names, " ") + ")";
  out += name;
  if (!option.value.empty() && !may_lack_value(option)) out += name.starts_with("--") ? "=" : "+";
  out += "[" + zsh_text(option.what) + "]";
  if (option.value.empty()) return out;
  return out + (may_lack_value(option) ? "::" : ":") + zsh_value(option);
}

std::string zsh(const ProgramDoc& program) {
  std::string out = "#compdef dualgemm\n# made by `dualgemm completion zsh`\n_dualgemm() {\n";
  out += "  local -a commands=(\n";
  for (const CommandDoc& command : program.commands)
    out += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.what));
  out +=
      "  )\n  if ((CURRENT == 2)); then\n"
      "    if [[ $PREFIX == -* ]]; then compadd - --help --version; return; fi\n"
      "    _describe command commands; return\n  fi\n"
      "  local command=${words[2]}\n  words=(\"dualgemm-$command\" \"${(@)words[3,-1]}\")\n"
      "  ((CURRENT -= 1))\n  case $command in\n";
  for (const CommandDoc& command : program.commands) {
    out += fmt::format("    {})\n      _arguments \\\n", command.name);
    for (const OptionDoc& option : command.options) {
      if (option.names.empty()) {
        out += fmt::format(
            "        ':{}:{}' \\\n", zsh_text(option.what),
            option.choices.empty() ? "_files" : "(" + joined(option.choices, " ") + ")");
      }
      for (const std::string& name : option.names)
        out += "        '" + zsh_option(option, name) + "' \\\n";
    }
    out += "        && return ;;\n";
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

std::string fish_option(const OptionDoc& option) {
  std::string out;
  for (const std::string& name : option.names)
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (may_lack_value(option)) {
    out += takes_file(option) ? " -F" : "";
  } else if (takes_list(option)) {
    out += fmt::format(" -x -a '(__fish_complete_list , \"printf %s\\\\\\n {}\")'",
                       joined(option.choices, " "));
  } else if (!option.choices.empty()) {
    out += fmt::format(" -x -a '{}'", joined(option.choices, " "));
  } else if (!option.value.empty()) {
    out += takes_file(option) ? " -r -F" : " -x";
  }
  return out + fmt::format(" -d '{}'", fish_text(option.what));
}

constexpr const char* kFishFunctions =
    R"(# fish completion for dualgemm; made by `dualgemm completion fish`
function __dualgemm_command_is
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test "$words[2]" = "$argv[1]"
end
function __dualgemm_has_no_command
    test (count (commandline -opc)) -lt 2
end
complete -c dualgemm -n __dualgemm_has_no_command -f -l help -d 'commands, strategies, exit status'
complete -c dualgemm -n __dualgemm_has_no_command -f -l version -d 'version and build'
)";

std::string fish(const ProgramDoc& program) {
  std::string out = kFishFunctions;
  for (const CommandDoc& command : program.commands)
    out += fmt::format("complete -c dualgemm -f -n __dualgemm_has_no_command -a {} -d '{}'\n",
                       command.name, fish_text(command.what));
  for (const CommandDoc& command : program.commands) {
    const std::string condition =
        fmt::format("complete -c dualgemm -n '__dualgemm_command_is {}'", command.name);
    if (const auto words = positional_words(command); !words.empty()) {
      out += fmt::format("{} -f -a '{}'\n", condition, joined(words, " "));
    } else if (!takes_positional(command)) {
      out += condition + " -f\n";
    }
    for (const OptionDoc& option : command.options) {
      if (!option.names.empty()) out += condition + fish_option(option) + "\n";
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
