// The work of a launch, from what some of its clusters did.
#pragma once

#include "ptxsim/ptxsim.hpp"
#include "timing/estimate.hpp"
#include "timing/recorder.hpp"

namespace ptxsim::timing {

// `memory`: that of the run. The recording's work is moved.
LaunchWork work_of(const Program& program, const Launch& launch, const GlobalMemory& memory,
                   Recording& recording);

}  // namespace ptxsim::timing
