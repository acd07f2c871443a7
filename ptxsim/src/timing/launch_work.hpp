// What a recording says of the whole launch.
#pragma once

#include "timing/estimate.hpp"
#include "timing/recorder.hpp"

namespace ptxsim::timing {

// CTAs that an SM holds at once, by shared memory, threads and an estimate of its registers; and
// what one of them has of L1.
struct SmShare {
  double ctas_per_sm = 1, l1_bytes = 0;
};
SmShare share_of(const Program& program, const Launch& launch, const Values& gpu);

LaunchWork work_of(const Program& program, const Launch& launch, const GlobalMemory& memory,
                   double ctas_per_sm, Recording& recording);

}  // namespace ptxsim::timing
