// A comparison with the oracle as text and JSON.
#pragma once

#include <string>

#include "tools/cli/options.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/verify/check.hpp"

namespace dualgemm::cli {

// "ok, 4096 elements within the bound" or "WRONG: 3 of 4096 elements". Behind an fp32 D also how
// much of its bound the worst element uses; the bound of a rounded D is often one step wide, and
// the share then says nothing.
std::string verdict(const verify::CheckReport& report, DataType d_type);

// The worst element and the map of tiles, some lines.
std::string failure_details(const verify::CheckReport& report);

Json to_json(const verify::CheckReport& report);

}  // namespace dualgemm::cli
