// --json of the commands whose only result is a file.
#pragma once

#include "tools/cli/options.hpp"
#include "tools/cli/print/json.hpp"

namespace dualgemm::cli {

Json written_json(const MakeLayerCommand& command);
Json written_json(const ConvertCommand& command);

}  // namespace dualgemm::cli
