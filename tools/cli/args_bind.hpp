// How options are bound to values: every text goes through a parse function that returns Expected,
// so all wrong values read alike.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "tools/cli/options.hpp"

namespace dualgemm::cli {

template <class Target, class Value>
CLI::Option* add_value(CLI::App* app, const std::string& name, Target& target,
                       Expected<Value> (*parse)(const std::string&), const std::string& type,
                       const std::string& help) {
  const auto store = [&target, parse, name](const std::string& text) {
    const Expected<Value> value = parse(text);
    if (!value)
      throw CLI::ValidationError(name, value.status().observed() + "; " + value.status().rule());
    target = *value;
  };
  return app->add_option_function<std::string>(name, store, help)->type_name(type);
}

// Groups of options that several subcommands share.
void bind_shape(CLI::App* app, Shape& shape);
void bind_shape_lists(CLI::App* app, ShapeLists& shapes, const std::string& fallback);
void bind_problem(CLI::App* app, ProblemOptions& problem);
void bind_execution(CLI::App* app, ExecutionOptions& execution);
void bind_strategy(CLI::App* app, StrategyId& strategy);
void bind_strategies(CLI::App* app, std::vector<StrategyId>& strategies,
                     const std::string& fallback);
void bind_layer_files(CLI::App* app, LayerFiles& files, bool required);
void bind_threads(CLI::App* app, int& threads);
void bind_seed(CLI::App* app, uint64_t& seed);

}  // namespace dualgemm::cli
