// What a run of a case left, for comparison with another run of it.
#pragma once

#include "ptxsim/case/case.hpp"
#include "ptxsim/mutate/outputs.hpp"

namespace ptxsim {

// Whether the case says anything about results in memory.
bool expects_results(const Case& description);
// The buffers of the case, in its order; none when its launch was refused.
Outputs outputs_of(const Case& description, CaseResult& result);

}  // namespace ptxsim
