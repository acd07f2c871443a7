#include <cstdio>
#include <exception>
#include <string>
#include <variant>
#include <vector>

#include "tools/cli/args.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/report.hpp"

namespace {

int run_program(const std::vector<std::string>& arguments) {
  using namespace dualgemm::cli;
  const ParseOutcome outcome = parse_arguments(arguments);
  print(outcome.out);
  std::fputs(outcome.err.c_str(), stderr);
  int exit_code = outcome.exit_code;
  if (outcome.command) {
    exit_code = std::visit([](const auto& command) { return execute(command); }, *outcome.command);
  }
  const dualgemm::Status flushed = flush_stdout();
  return flushed.ok() ? exit_code : fail(flushed);
}

}  // namespace

// Ctrl-C keeps its default action: the process ends at once, and output files, which have no name
// before they are complete, vanish.
int main(int argc, char** argv) {
  try {
    return run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (
      const std::exception& error) {  // out of memory in this program; the library does not throw
    std::fprintf(stderr, "dualgemm: %s\n", error.what());
    return dualgemm::cli::kExitFailed;
  }
}
