// How options are bound to values: every text goes through a parse function that returns Expected,
// so all wrong values read alike.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/cli/options.hpp"
#include "tools/cli/parse/command_docs.hpp"
#include "tools/cli/parse/suggest.hpp"

namespace dualgemm::cli {

// Lower-case words of a sentence.
std::vector<std::string> words_of(const std::string& text);

// The names that `parse` takes: those of its own refusal, which the library makes of its tables.
// Empty where the value is no enumerator.
template <class Value>
std::vector<std::string> names_taken_by(Expected<Value> (*parse)(const std::string&)) {
  std::vector<std::string> names;
  if constexpr (std::is_enum_v<Value>) {
    const Expected<Value> refused = parse("");
    if (refused) return names;
    for (const std::string& word : words_of(refused.status().rule())) {
      if (parse(word)) names.push_back(word);
    }
  }
  return names;
}

// Documents, completes and suggests `choices`; the parse function still decides.
CLI::Option* with_choices(CLI::Option* option, const std::vector<std::string>& choices);

// "observed; rule; did you mean x?"
std::string refusal(const Status& status, const std::vector<std::string>& choices);

template <class Target, class Value>
CLI::Option* add_value(CLI::App* app, const std::string& name, Target& target,
                       Expected<Value> (*parse)(const std::string&), const std::string& type,
                       const std::string& help, std::vector<std::string> choices = {}) {
  if (choices.empty()) choices = names_taken_by(parse);
  const auto store = [&target, parse, name, choices](const std::string& text) {
    const Expected<Value> value = parse(text);
    if (!value) throw CLI::ValidationError(name, refusal(value.status(), choices));
    target = *value;
  };
  CLI::Option* option = app->add_option_function<std::string>(name, store, help)->type_name(type);
  return with_choices(option, choices);
}

// Groups of options that several subcommands share.
void bind_shape(CLI::App* app, Shape& shape);
void bind_shape_lists(CLI::App* app, ShapeLists& shapes, const std::string& fallback);
void bind_problem(CLI::App* app, ProblemOptions& problem);
void bind_grouping(CLI::App* app, Grouping& grouping);
// `plan` also plans for GPUs that are not there.
enum class Devices { kPresent, kDescribed };
void bind_execution(CLI::App* app, ExecutionOptions& execution,
                    Devices devices = Devices::kPresent);
void bind_strategy(CLI::App* app, StrategyId& strategy);
void bind_strategies(CLI::App* app, std::vector<StrategyId>& strategies,
                     const std::string& fallback);
void bind_allow_nan(CLI::App* app, bool& allow_nan);
void bind_layer_files(CLI::App* app, LayerFiles& files, bool required);
void bind_threads(CLI::App* app, int& threads);
void bind_seed(CLI::App* app, uint64_t& seed);
void bind_dry_run(CLI::App* app, bool& dry_run);

// Headings for the options that have none yet, by name.
void group_options(CLI::App* app);

}  // namespace dualgemm::cli
