// InstructionCounts as reports have them. For any of nlohmann's kinds of JSON, which find these
// functions by the type's namespace.
#pragma once

#include "timing/counted_costs.hpp"

namespace ptxsim::timing {

template <class Json>
void to_json(Json& json, const InstructionCounts& counts) {
  json = Json{{"from", counts.from},
              {"statements", counts.statements},
              {"counted", counts.counted},
              {"note", counts.note}};
}

template <class Json>
void from_json(const Json& json, InstructionCounts& counts) {
  json.at("from").get_to(counts.from);
  json.at("statements").get_to(counts.statements);
  json.at("counted").get_to(counts.counted);
  json.at("note").get_to(counts.note);
}

}  // namespace ptxsim::timing
