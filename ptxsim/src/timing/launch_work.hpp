// What a recording says of the whole launch.
#pragma once

#include "timing/estimate.hpp"
#include "timing/recorder.hpp"

namespace ptxsim::timing {

// CTAs that an SM holds, by shared memory and threads: registers are not known.
double ctas_per_sm(const Program& program, const Launch& launch);

LaunchWork work_of(const Program& program, const Launch& launch, const GlobalMemory& memory,
                   Recording& recording);

}  // namespace ptxsim::timing
