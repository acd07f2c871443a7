// The command line's parser on hostile arguments: it must return, with a command or with an exit
// code and a message, and touch nothing.
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/cli/parse/args.hpp"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// Arguments are separated by line feeds, so that seeds can be written by hand.
std::vector<std::string> split(const uint8_t* data, size_t size) {
  std::vector<std::string> arguments(1);
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == '\n') {
      arguments.emplace_back();
    } else {
      arguments.back() += static_cast<char>(data[i]);
    }
  }
  return arguments;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dualgemm::cli::ParseOutcome outcome = dualgemm::cli::parse_arguments(split(data, size));
  if (outcome.command) {
    require(outcome.exit_code == dualgemm::cli::kExitOk && outcome.out.empty() &&
            outcome.err.empty());
  } else {
    require(outcome.exit_code == dualgemm::cli::kExitOk ||
            outcome.exit_code == dualgemm::cli::kExitUsage);
    require(!outcome.out.empty() || !outcome.err.empty());
  }
  return 0;
}
