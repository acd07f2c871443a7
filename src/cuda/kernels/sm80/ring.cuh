// The stages that producers fill and the other warps multiply.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/config.hpp"
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/warp.cuh"

namespace dualgemm::cuda::sm80 {

// What is complete when a stage is full, and when it has been read.
struct RingBarriers {
  ptx::Barrier full[kMaxStages], empty[kMaxStages];
};

// Where a thread is in the ring, in one register. It goes on from tile to tile.
struct RingPosition {
  uint32_t bits = 0;  // the stage; 16 * the parity of its phase

  DUALGEMM_DEVICE uint32_t stage() const { return bits & 15; }
  DUALGEMM_DEVICE uint32_t parity() const { return bits >> 4; }
  DUALGEMM_DEVICE void advance(uint32_t stages) {
    bits = stage() + 1 == stages ? (bits & 16) ^ 16 : bits + 1;
  }
};

// By one thread, before a barrier of the CTA. Each warp arrives once: where each producer thread
// did, and once more for its copies, an empty ring took 800 clk a stage (H200).
template <Config kCfg>
DUALGEMM_DEVICE void init_ring(RingBarriers& barriers) {
  for (int stage = 0; stage < kMaxStages; ++stage) {
    ptx::mbarrier_init(&barriers.full[stage], kCfg.producers);
    ptx::mbarrier_init(&barriers.empty[stage], warps_of(kCfg));
  }
}

// By a warp: what its lanes have done is done.
DUALGEMM_DEVICE void arrive_as_warp(ptx::Barrier& barrier) {
  __syncwarp();
  if (ptx::thread_index_anew() % 32 == 0) ptx::mbarrier_arrive(&barrier);
  __syncwarp();  // what follows needs the whole warp
}

// Whether a warp sleeps between two looks at a barrier. With 128 sums in registers none is left for
// that: ptxas spilled some for sm_80, also where other warps sleep alone.
template <Config kCfg>
inline constexpr bool kSleeps = kCfg.units* kCfg.groups <= 16;

// Until all stages have been read, by a thread that is where a producer would be about to fill
// them.
template <Config kCfg>
DUALGEMM_DEVICE void wait_until_read(const RingBarriers& barriers, uint32_t stages,
                                     RingPosition at) {
  for (uint32_t i = 0; i < stages; ++i) {
    ptx::mbarrier_wait_parity_sm80<kSleeps<kCfg>>(&barriers.empty[at.stage()], at.parity() ^ 1);
    at.advance(stages);
  }
}

}  // namespace dualgemm::cuda::sm80
