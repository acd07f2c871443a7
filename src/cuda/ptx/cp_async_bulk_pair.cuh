// Copies by the TMA unit for a pair of CTAs: into the shared memory of the issuing CTA, completing
// on a barrier of either of the two. PTX ISA 9.0, "cp.async.bulk.tensor", .cta_group.
#pragma once

#include <cstdint>

#include "cuda/ptx/cp_async_bulk.cuh"

namespace dualgemm::cuda::ptx {

// cp.async.bulk.tensor.3d...cta_group::2...      PTX ISA 8.6, sm_100a, "cp.async.bulk.tensor": as
// cp_async_bulk_tensor_3d; `bar` from mapa, in a CTA of this pair.
DUALGEMM_DEVICE void cp_async_bulk_tensor_3d_pair(void* destination, const void* map, int32_t c0,
                                                  int32_t c1, int32_t c2, uint32_t bar,
                                                  CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".cta_group::2.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(
          shared_address(destination)),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(bar), "l"(policy.word)
      : "memory");
}

// cp.async.bulk.tensor.4d...cta_group::2...      as above with four coordinates
DUALGEMM_DEVICE void cp_async_bulk_tensor_4d_pair(void* destination, const void* map, int32_t c0,
                                                  int32_t c1, int32_t c2, int32_t c3, uint32_t bar,
                                                  CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".cta_group::2.L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(
          shared_address(destination)),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(bar), "l"(policy.word)
      : "memory");
}

// The same into every CTA of the cluster that `ctas` names by its rank, at the same place of its
// shared memory, where its own barrier at the place of `bar` is told.
DUALGEMM_DEVICE void cp_async_bulk_tensor_4d_multicast(void* destination, const void* map,
                                                       int32_t c0, int32_t c1, int32_t c2,
                                                       int32_t c3, Barrier* bar, uint16_t ctas,
                                                       CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7, %8;" ::"r"(
          shared_address(destination)),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(shared_address(bar)), "h"(ctas),
      "l"(policy.word)
      : "memory");
}

}  // namespace dualgemm::cuda::ptx
