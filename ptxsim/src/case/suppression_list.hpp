// Suppressions as JSON: a list of objects with "rule", "reason", and "kernel" or "source" or both.
#pragma once

#include "case/json_node.hpp"
#include "ptxsim/suppressions.hpp"

namespace ptxsim {

std::vector<Suppression> read_suppressions(const JsonNode& list);  // throws Fault (kInput)
Result<std::vector<Suppression>> parse_suppressions(std::string_view json, const std::string& name);

}  // namespace ptxsim
