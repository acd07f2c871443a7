// Buffers and parameters of a case to begin with.
#pragma once

#include <nlohmann/json.hpp>

#include "ptxsim/ptxsim.hpp"

namespace ptxsim {

using DraftJson = nlohmann::ordered_json;  // keys stay in the order in which a person reads them

struct DraftParameters {
  DraftJson buffers = DraftJson::array(), params = DraftJson::array();
};

// The parameters follow one another exactly as Variable::offset has them.
DraftParameters draft_parameters(const Entry& entry);

}  // namespace ptxsim
