// All tensor memory of one CTA, from its first use to its last.
#pragma once

#include <cstdint>

#include "cuda/kernels/blackwell/stage.hpp"
#include "cuda/ptx/tcgen05.cuh"

namespace dualgemm::cuda::blackwell {

// By all threads: the warp that owns it allocates, and everyone sees its address in `base`, in
// shared memory, and what was written before.
DUALGEMM_DEVICE void allocate_tmem(uint32_t* base, bool is_owner) {
  if (is_owner) {
    ptx::tcgen05_alloc(base, kTmemCols);
    ptx::tcgen05_relinquish_alloc_permit();
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
}

// By all threads, each when it has read what it wants.
DUALGEMM_DEVICE void free_tmem(uint32_t base, bool is_owner) {
  __syncwarp();
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (is_owner) {
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(base, kTmemCols);
  }
}

}  // namespace dualgemm::cuda::blackwell
