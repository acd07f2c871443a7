#include <algorithm>
#include <exception>
#include <map>

#include "core/printable.hpp"
#include "tools/cli/parse/args.hpp"
#include "tools/cli/parse/args_table.hpp"
#include "tools/cli/parse/command_docs.hpp"
#include "tools/cli/parse/completion.hpp"
#include "tools/cli/parse/help.hpp"
#include "tools/cli/parse/help_text.hpp"
#include "tools/cli/parse/man_page.hpp"
#include "tools/cli/parse/suggest.hpp"

namespace dualgemm::cli {
namespace {

std::optional<Command> selected(const std::string& name, const Commands& commands) {
  if (name == "info") return commands.info;
  if (name == "plan") return commands.plan;
  if (name == "make-layer") return commands.make_layer;
  if (name == "quantize") return commands.quantize;
  if (name == "convert") return commands.convert;
  if (name == "run") return commands.run;
  if (name == "verify") return commands.verify;
  if (name == "bench") return commands.bench;
  if (name == "validate") return commands.validate;
  return std::nullopt;
}

ParseOutcome usage_error(const std::string& message) {
  ParseOutcome outcome;
  outcome.exit_code = kExitUsage;
  outcome.err = "dualgemm: " + core::printable(message, core::kLongestMessage) + "\n";
  return outcome;
}

ParseOutcome text_on_stdout(std::string text) {
  ParseOutcome outcome;
  outcome.out = std::move(text);
  return outcome;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string unknown_command(const ProgramDoc& program, const std::string& name) {
  const std::vector<std::string> names = command_names(program);
  return "command: '" + name + "'; must be one of " + joined(names) + did_you_mean(name, names);
}

// Before the parser, which would only say that a subcommand is required.
Status check_command_name(const ProgramDoc& program, const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return Status::invalid(
        "command", "none",
        "must be one of " + joined(command_names(program)) + "; `dualgemm help` explains them");
  }
  const std::string& first = arguments.front();
  if (find_command(program, first) != nullptr) return {};
  const std::vector<std::string> own = {"--help", "--version"};
  if (first == "-h" || std::find(own.begin(), own.end(), first) != own.end()) return {};
  if (!first.empty() && first[0] == '-') {
    return Status::invalid(first, "before a command",
                           "options come behind it" + did_you_mean(first, own));
  }
  const std::vector<std::string> names = command_names(program);
  return Status::invalid("command", "'" + first + "'",
                         "must be one of " + joined(names) + did_you_mean(first, names));
}

// What the parser could not place, in the order given.
std::vector<std::string> unplaced(const CLI::App& sub, const std::vector<std::string>& arguments) {
  std::map<std::string, int> left;
  for (const std::string& word : sub.remaining(false)) ++left[word];
  std::vector<std::string> words;
  // From the end: of two equal words the parser takes the first.
  for (auto word = arguments.rbegin(); word != arguments.rend(); ++word) {
    if (left[*word]-- > 0) words.insert(words.begin(), *word);
  }
  return words;
}

std::string unplaced_message(const CommandDoc& command, const std::vector<std::string>& words) {
  std::vector<std::string> options, meant;
  for (const std::string& word : words) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string name = word.substr(0, word.find('='));
    options.push_back(name);
    const std::string near = nearest(name, option_names(command));
    if (!near.empty() && std::find(meant.begin(), meant.end(), near) == meant.end())
      meant.push_back(near);
  }
  if (options.empty()) return command.name + ": '" + words.front() + "'; takes no further argument";
  std::string text = command.name + ": " + joined(options) +
                     (options.size() == 1 ? "; is no option of it" : "; are no options of it");
  return text + (meant.empty() ? "; `dualgemm help " + command.name + "` lists them"
                               : "; did you mean " + joined(meant) + "?");
}

// What the parser refuses, as one line in our words.
std::string in_our_words(const CLI::ParseError& error, const CommandDoc& command) {
  const std::string what = error.what();
  std::string line = what.substr(0, what.find('\n'));
  const std::string option = line.substr(0, line.find_first_of(": "));
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return command.name + ": " + option + "; is required";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const bool missing = line.find("missing") != std::string::npos;
    return option + (missing ? ": no value; needs one" : ": given more than once; takes one value");
  }
  while (!line.empty() && (line.back() == ' ' || line.back() == '.')) line.pop_back();
  return line;
}

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

ParseOutcome answer(const ProgramDoc& program, const std::string& name, const HelpRequest& request,
                    const Style& style) {
  if (name == "completion") {
    if (std::find(shells().begin(), shells().end(), request.shell) == shells().end()) {
      return usage_error("completion: '" + request.shell + "'; must be " + sentence_of(shells()) +
                         did_you_mean(request.shell, shells()));
    }
    const std::string script = completion_script(program, request.shell);
    if (!request.json) return text_on_stdout(script);
    return text_on_stdout(json_text({{"shell", request.shell}, {"script", script}}));
  }
  if (name == "man") {
    const std::string page = man_page(program);
    return text_on_stdout(request.json ? json_text({{"page", page}}) : page);
  }
  if (request.topic.empty())
    return text_on_stdout(request.json ? json_text(to_json(program)) : help_text(program, style));
  const CommandDoc* command = find_command(program, request.topic);
  if (command == nullptr) return usage_error(unknown_command(program, request.topic));
  return text_on_stdout(request.json ? json_text(to_json(*command)) : help_text(*command, style));
}

// The command that `arguments` name, if they ask for its help instead of running it.
bool asks_for_help(const std::vector<std::string>& arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::any_of(arguments.begin(), end,
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
}

// An option that names a file, given without a name: `--out ""`, `--out=`.
std::string unnamed_file(const CommandDoc& command, const std::vector<std::string>& arguments) {
  for (const OptionDoc& option : command.options) {
    if (option.value.find("FILE") == std::string::npos) continue;
    for (const std::string& name : option.names) {
      for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
        const bool empty =
            arguments[i] == name && i + 1 < arguments.size() && arguments[i + 1].empty();
        if (empty || arguments[i] == name + "=") return name;
      }
    }
  }
  return {};
}

// --color counts for help as well, which the parser prints before it has read all.
ColourChoice colour_in(const std::vector<std::string>& arguments) {
  ColourChoice choice = ColourChoice::kAuto;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string value;
    if (arguments[i].rfind("--color=", 0) == 0) value = arguments[i].substr(8);
    if (arguments[i] == "--color" && i + 1 < arguments.size()) value = arguments[i + 1];
    if (const Expected<ColourChoice> said = parse_colour(value)) choice = *said;
  }
  return choice;
}

ParseOutcome parse_or_throw(const std::vector<std::string>& arguments, const StreamFacts& facts) {
  Commands commands;
  CLI::App app(help::kProgram, "dualgemm");
  app.footer(help::program_footer());
  app.require_subcommand(1);
  add_commands(app, commands);
  const ProgramDoc program = document(app);
  const Style style = style_for(facts, colour_in(arguments));

  if (const Status status = check_command_name(program, arguments); !status.ok())
    return usage_error(status.message());
  const std::string& name = arguments.front();
  if (name == "--version") return text_on_stdout(std::string("dualgemm ") + version() + "\n");
  if (name == "-h" || name == "--help") return text_on_stdout(help_text(program, style));
  const CommandDoc& doc = *find_command(program, name);
  if (asks_for_help(arguments)) return text_on_stdout(help_text(doc, style));
  const CLI::App& sub = *app.get_subcommand(name);
  std::string problem;
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(),
                                       arguments.rend()));  // CLI11 takes them reversed
  } catch (const CLI::ParseError& error) {
    problem = in_our_words(error, doc);
  }
  // An option that is not there counts before one that is missing: it may be the same, misspelt.
  const std::vector<std::string> words = unplaced(sub, {arguments.begin() + 1, arguments.end()});
  if (!words.empty()) return usage_error(unplaced_message(doc, words));
  if (!problem.empty()) return usage_error(problem);
  if (const std::string option = unnamed_file(doc, arguments); !option.empty())
    return usage_error(option + ": ''; must name a file");
  ParseOutcome outcome;
  outcome.colour = commands.colour;
  outcome.command = selected(name, commands);
  if (!outcome.command) return answer(program, name, commands.help, style);
  const Status status = check_command(*outcome.command);
  return status.ok() ? outcome : usage_error(status.message());
}

}  // namespace

ParseOutcome parse_arguments(const std::vector<std::string>& arguments, const StreamFacts& facts) {
  try {
    return parse_or_throw(arguments, facts);
  } catch (const std::exception& error) {  // CLI11's own construction errors and std::bad_alloc
    return usage_error(error.what());
  }
}

}  // namespace dualgemm::cli
