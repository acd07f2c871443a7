// One function per subcommand. Returns the exit code; prints data on stdout and talk on stderr.
#pragma once

#include "tools/cli/options.hpp"

namespace dualgemm::cli {

int execute(const InfoCommand& command);
int execute(const PlanCommand& command);
int execute(const MakeLayerCommand& command);
int execute(const QuantizeCommand& command);
int execute(const ConvertCommand& command);
int execute(const RunCommand& command);
int execute(const VerifyCommand& command);
int execute(const BenchCommand& command);
int execute(const ValidateCommand& command);

}  // namespace dualgemm::cli
