// Blackwell's tensor core for a pair of CTAs (cta_group::2): what differs from tcgen05.cuh, whose
// fences and loads serve both. A pair are the CTAs of a cluster whose ranks differ in the last bit;
// the even one leads: one thread of it issues for both. PTX ISA 9.0, "TensorCore 5th Generation
// Family Instructions". All tcgen05 instructions of a kernel have the same cta_group.
#pragma once

#include <cstdint>

#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/tcgen05.cuh"

namespace dualgemm::cuda::ptx {

// tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [destination], columns;      PTX ISA 8.6,
// "tcgen05.alloc". A whole warp in each CTA of the pair, with the same numbers: both get the same
// columns. The other CTA must have started.
DUALGEMM_DEVICE void tcgen05_alloc_pair(uint32_t* smem_destination, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                   shared_address(smem_destination)),
               "r"(columns)
               : "memory");
}

// tcgen05.relinquish_alloc_permit.cta_group::2...      PTX ISA 8.6: the CTA allocates no more.
DUALGEMM_DEVICE void tcgen05_relinquish_alloc_permit_pair() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
}

// tcgen05.dealloc.cta_group::2.sync.aligned.b32 base, columns;      PTX ISA 8.6. A whole warp in
// each CTA; all accesses of both CTAs must be ordered before it.
DUALGEMM_DEVICE void tcgen05_dealloc_pair(uint32_t base, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(base), "r"(columns)
               : "memory");
}

// tcgen05.cp.cta_group::2.32x128b.warpx4 [tmem], descriptor;      PTX ISA 8.6, "tcgen05.cp": as for
// one CTA, in both, each from its own shared memory at the same place.
DUALGEMM_DEVICE void tcgen05_cp_32x128b_warpx4_pair(uint32_t tmem, uint64_t descriptor) {
  asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(tmem), "l"(descriptor)
               : "memory");
}

// tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16.collector::a::...      PTX ISA 8.8,
// "tcgen05.mma": as for one CTA, with M = 256 rows. Each CTA has 128 rows of A with their scales,
// half of B's rows, the scales of all of B's rows, and D of its rows of A.
template <CollectorA kCollector>
DUALGEMM_DEVICE void tcgen05_mma_mxf4nvf4_block16_pair(uint32_t tmem_d, uint64_t desc_a,
                                                       uint64_t desc_b, uint32_t instruction,
                                                       uint32_t tmem_sf_a, uint32_t tmem_sf_b,
                                                       uint32_t accumulate) {
#define DUALGEMM_MMA_PAIR(collector)                                                              \
  asm volatile(                                                                                   \
      "{\n"                                                                                       \
      ".reg .pred enable_input_d;\n"                                                              \
      "setp.ne.b32 enable_input_d, %6, 0;\n"                                                      \
      "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16.collector::a::" collector      \
      " [%0], %1, %2, %3, [%4], [%5], enable_input_d;\n"                                          \
      "}\n" ::"r"(tmem_d),                                                                        \
      "l"(desc_a), "l"(desc_b), "r"(instruction), "r"(tmem_sf_a), "r"(tmem_sf_b), "r"(accumulate) \
      : "memory")
  if constexpr (kCollector == CollectorA::kFill) {
    DUALGEMM_MMA_PAIR("fill");
  } else if constexpr (kCollector == CollectorA::kLastUse) {
    DUALGEMM_MMA_PAIR("lastuse");
  } else {
    DUALGEMM_MMA_PAIR("discard");
  }
#undef DUALGEMM_MMA_PAIR
}

// tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bar],
// mask;      PTX ISA 8.6, "tcgen05.commit": one arrival at the barrier in this place of each CTA of
// the cluster whose bit is set, once all earlier cp and mma of this thread are complete.
DUALGEMM_DEVICE void tcgen05_commit_pair(Barrier* bar, uint16_t cta_mask) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;" ::"r"(shared_address(bar)),
      "h"(cta_mask)
      : "memory");
}

}  // namespace dualgemm::cuda::ptx
