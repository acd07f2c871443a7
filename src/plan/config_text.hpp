// The texts that PlanOptions::config takes.
#pragma once

#include <optional>
#include <string>

#include "plan/strategy.hpp"

namespace dualgemm::plan {

// What such a text says; the rest is left to the choice.
struct ConfigRequest {
  std::optional<StrategyId> strategy;
  std::optional<Isa> isa;
  std::optional<DataType> d_type;  // of the problem, as Plan::config() names it
  std::optional<bool> prepared;    // likewise
  PlanConstraints constraints;
};

// Plan::config()'s own words, or "key=value,key=value" (types.hpp). The error says what is wrong
// with the text alone; "" asks for nothing.
Expected<ConfigRequest> parse_config(const std::string& text);

// "tile_m=8,k_warpgroups=4": the constraints that were expressed.
std::string text_of(const PlanConstraints& constraints);

}  // namespace dualgemm::plan
