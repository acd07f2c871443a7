// The one table behind `help`, the man page and the completions: what the parser knows of every
// command, as values.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/cli/print/json.hpp"

namespace dualgemm::cli {

struct OptionDoc {
  std::vector<std::string> names;  // "-m", "--m"; empty: a positional argument
  std::string value;               // "ROWS", "FILE", "[FILE]"; empty: a flag
  std::string what;
  std::string default_text;          // empty: none is shown
  std::vector<std::string> choices;  // all values that there are; empty: not a choice
  bool required = false;
  bool repeatable = false;
  std::string group;  // heading
};

struct CommandDoc {
  std::string name, what;
  std::vector<OptionDoc> options;  // in the order in which help lists them
  std::string teaching;            // prose and examples below the options
};

struct ProgramDoc {
  std::string what, teaching;
  std::vector<CommandDoc> commands;
};

// The heading of what every command has; listed last.
inline constexpr const char* kOutputGroup = "Output";

// Name of the validator that carries an option's choices, separated by '|'.
inline constexpr const char* kChoicesValidator = "choices";

ProgramDoc document(const CLI::App& program);

const CommandDoc* find_command(const ProgramDoc& program, const std::string& name);
std::vector<std::string> command_names(const ProgramDoc& program);
std::vector<std::string> option_names(const CommandDoc& command);  // the long ones

// "dualgemm run [OPTIONS] WEIGHTS"
std::string usage_line(const CommandDoc& command);

Json to_json(const CommandDoc& command);
Json to_json(const ProgramDoc& program);

}  // namespace dualgemm::cli
