// A comparison with the oracle as text and JSON.
#pragma once

#include <string>

#include "api/check.hpp"
#include "cli/json.hpp"
#include "cli/options.hpp"

namespace dualgemm::cli {

// "ok, worst 12 % of its bound" or "WRONG: 3 of 4096 elements".
std::string verdict(const api::CheckReport& report);

// The worst element and the map of tiles, some lines.
std::string failure_details(const api::CheckReport& report);

Json to_json(const api::CheckReport& report);

}  // namespace dualgemm::cli
