// What a recording says of the whole launch.
#pragma once

#include "timing/estimate.hpp"
#include "timing/recorder.hpp"

namespace ptxsim::timing {

// CTAs that an SM holds, by shared memory, threads and an estimate of its registers.
double ctas_per_sm(const Program& program, const Launch& launch);

LaunchWork work_of(const Program& program, const Launch& launch, const GlobalMemory& memory,
                   Recording& recording);

}  // namespace ptxsim::timing
