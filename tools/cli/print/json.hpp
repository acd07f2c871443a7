// Library values as JSON, with the names the command line uses.
#pragma once

#include <nlohmann/json.hpp>

#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cli {

using Json = nlohmann::ordered_json;

Json to_json(const Activation&
                 act);  // with the kind's defaults; limit +inf becomes "inf": JSON has no infinity
Json to_json(const Problem& problem);
Json to_json(const Plan& plan);
Json to_json(const DeviceCaps& caps);
Json provenance();  // version, git revision, compiler, device

// Finite numbers as numbers, others as "inf", "-inf", "nan".
Json number(double value);

// Two spaces of indentation and a newline; invalid UTF-8 (file names may hold any bytes) is
// replaced.
std::string dump(const Json& json);

}  // namespace dualgemm::cli
