// Every subcommand with its options: the table that parsing, help, man page and completions are
// made from.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "tools/cli/options.hpp"
#include "tools/cli/print/terminal.hpp"

namespace dualgemm::cli {

// `help`, `completion` and `man` print what the table of commands says and run nothing.
struct HelpRequest {
  std::string topic;  // a command; empty: the program
  std::string shell;
  bool json = false;
};

// What the options write to. CLI11 keeps references, so this outlives the parse.
struct Commands {
  InfoCommand info;
  PlanCommand plan;
  MakeLayerCommand make_layer;
  QuantizeCommand quantize;
  ConvertCommand convert;
  RunCommand run;
  VerifyCommand verify;
  BenchCommand bench;
  ValidateCommand validate;
  HelpRequest help;
  ColourChoice colour = ColourChoice::kAuto;
};

// `commands` must outlive `app`.
void add_commands(CLI::App& app, Commands& commands);

Expected<ColourChoice> parse_colour(const std::string& text);

// Rules between the options of one command.
Status check_command(const Command& command);

}  // namespace dualgemm::cli
