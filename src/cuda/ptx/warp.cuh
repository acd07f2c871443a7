// Warp-wide control. PTX ISA 9.0, "elect.sync", "bar.warp.sync", "shfl.sync".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// elect.sync _|elected, 0xFFFFFFFF;      PTX ISA 8.0, sm_90, "elect.sync": true in one lane of a
// converged warp, the same one each time.
DUALGEMM_DEVICE bool elect_sync() {
  uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred is_elected;\n"
      "elect.sync _|is_elected, 0xFFFFFFFF;\n"
      "selp.u32 %0, 1, 0, is_elected;\n"
      "}\n"
      : "=r"(elected));
  return elected != 0;
}

// The warp's number in its CTA, in a form that the compiler knows to be the same in all lanes.
DUALGEMM_DEVICE uint32_t warp_index() { return __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0); }

// mov.u32 d, %tid.x;      PTX ISA 1.0, "%tid": threadIdx.x, which the compiler does not know to be
// the same as before, so that it keeps nothing that follows from it in registers.
DUALGEMM_DEVICE uint32_t thread_index_anew() {
  uint32_t index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}

}  // namespace dualgemm::cuda::ptx
