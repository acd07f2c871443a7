#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "tools/cli/args.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/device_choice.hpp"
#include "tools/cli/ready_run.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/signals.hpp"
#include "tools/cli/standard_streams.hpp"
#include "tools/cli/terminal.hpp"
#include "tools/cli/written_json.hpp"

namespace {

using namespace dualgemm;
using namespace dualgemm::cli;

// The problem by which `--device auto` chooses; `run` learns its sizes from files.
Problem known_problem(const PlanCommand& command) {
  const auto [m, n, k, l] = command.shape;
  return command.problem.problem(m, n, k, l);
}
Problem known_problem(const RunCommand& command) {
  return command.problem.problem(kSfVec, kSfVec, kSfVec, 1);
}
template <class ListsOfShapes>
Problem known_problem(const ListsOfShapes& command) {
  const auto [m, n, k, l] = command.shapes.combinations({kSfVec, kSfVec, kSfVec, 1}).front();
  return command.problem.problem(m, n, k, l);
}

template <class Any>
int settle_and_execute(Any command) {
  std::string chosen;
  if constexpr (requires { command.execution; }) {
    StrategyId strategy = StrategyId::kAuto;
    if constexpr (requires { command.strategy; }) strategy = command.strategy;
    chosen = settle_device(command.execution, strategy, known_problem(command));
  }
  if constexpr (std::is_same_v<Any, RunCommand>) {  // before its files are read
    if (const Status usable = check_device(command.execution); !usable.ok())
      return fail_usage(usable);
  }
  const int code = execute(command);
  // `plan` prints the device as part of its answer; what is refused or fails says that alone.
  constexpr bool kSays = requires { command.execution; }
  &&!std::is_same_v<Any, PlanCommand>;
  if (kSays && code == kExitOk && !chosen.empty()) talk("device auto: " + chosen);
  if constexpr (requires { written_json(command); }) {
    if (command.json && !command.dry_run && code == kExitOk) print(dump(written_json(command)));
  }
  return code;
}

int run_program(const std::vector<std::string>& arguments) {
  const ParseOutcome outcome = parse_arguments(arguments, facts_of(STDOUT_FILENO));
  set_colour_choice(outcome.colour);
  print_styled(outcome.out);
  print_to_stderr(outcome.err);
  int exit_code = outcome.exit_code;
  if (outcome.command) {
    exit_code = std::visit([](const auto& command) { return settle_and_execute(command); },
                           *outcome.command);
  }
  const Status flushed = flush_stdout();
  return flushed.ok() ? exit_code : fail(flushed);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  install_signal_handlers();
  try {
    return run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (
      const std::exception& error) {  // out of memory in this program; the library does not throw
    talk(error.what());
    return dualgemm::cli::kExitFailed;
  }
}
