// The ring of stages in shared memory: a stage is full once every thread's copies to it are
// complete, and empty once every warp has read it. No barrier of the whole CTA: warps may be as far
// apart as the ring lets them, so that the tensor cores have work while a warp begins a stage.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm120a/config.hpp"
#include "cuda/ptx/cp_async.cuh"
#include "cuda/ptx/mbarrier.cuh"

namespace dualgemm::cuda::sm120a {

// A place in the ring and the parity of its round. It goes on from tile to tile.
struct RingPlace {
  uint32_t slot = 0, parity = 0;

  DUALGEMM_DEVICE void advance(uint32_t stages) {
    if (++slot == stages) slot = 0, parity ^= 1;
  }
  // The place stages - 1 before this one: what is read while this one is filled.
  DUALGEMM_DEVICE RingPlace behind(uint32_t stages) const {
    return slot + 1 == stages ? RingPlace{0, parity} : RingPlace{slot + 1, parity ^ 1};
  }
};

template <Config kCfg>
struct Ring {
  uint8_t* smem;  // kBarrierBytes, then the stages

  DUALGEMM_DEVICE uint32_t stage(uint32_t slot) const {
    return ptx::shared_address(smem) + kBarrierBytes + slot * stage_bytes_of(kCfg);
  }
  DUALGEMM_DEVICE ptx::Barrier* full(uint32_t slot) const {
    return reinterpret_cast<ptx::Barrier*>(smem) + slot;
  }
  DUALGEMM_DEVICE ptx::Barrier* empty(uint32_t slot) const { return full(kMaxStages + slot); }

  // By all threads; a barrier of the CTA must follow.
  DUALGEMM_DEVICE void make(uint32_t stages) const {
    if (threadIdx.x >= stages) return;
    ptx::mbarrier_init(full(threadIdx.x), threads_of(kCfg));
    ptx::mbarrier_init(empty(threadIdx.x), threads_of(kCfg) / 32);
  }
};

}  // namespace dualgemm::cuda::sm120a
