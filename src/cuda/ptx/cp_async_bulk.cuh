// Copies by the TMA unit. PTX ISA 9.0, "Data Movement and Conversion Instructions: Asynchronous
// Copy, Bulk Copy, Tensor Copy". One thread issues; data outside the tensor arrives as zeros and
// counts towards the barrier's bytes like the rest of the box.
#pragma once

#include <cstdint>

#include "cuda/ptx/cache_policy.cuh"
#include "cuda/ptx/mbarrier.cuh"

namespace dualgemm::cuda::ptx {

// prefetch.tensormap [map];      PTX ISA 8.0, sm_90, "prefetch". Performance only.
DUALGEMM_DEVICE void prefetch_tensormap(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// cp.async.bulk...      PTX ISA 8.0, sm_90, "cp.async.bulk": `bytes` bytes from `source` go to
// `destination`, all three multiples of 16; they complete on `bar`.
DUALGEMM_DEVICE void cp_async_bulk(void* destination, const void* source, uint32_t bytes,
                                   Barrier* bar, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(destination)),
      "l"(source), "r"(bytes), "r"(shared_address(bar)), "l"(policy.word)
      : "memory");
}

// cp.async.bulk.tensor.3d...      PTX ISA 8.0, sm_90, "cp.async.bulk.tensor": the box at
// coordinates (c0, c1, c2), innermost first, goes to `destination`; its bytes complete on `bar`.
DUALGEMM_DEVICE void cp_async_bulk_tensor_3d(void* destination, const void* map, int32_t c0,
                                             int32_t c1, int32_t c2, Barrier* bar,
                                             CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(destination)),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(shared_address(bar)), "l"(policy.word)
      : "memory");
}

// cp.async.bulk.tensor.4d...      as above with four coordinates
DUALGEMM_DEVICE void cp_async_bulk_tensor_4d(void* destination, const void* map, int32_t c0,
                                             int32_t c1, int32_t c2, int32_t c3, Barrier* bar,
                                             CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(shared_address(destination)),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(shared_address(bar)), "l"(policy.word)
      : "memory");
}

}  // namespace dualgemm::cuda::ptx
