// Blackwell's tensor core and tensor memory (TMEM: 128 lanes x 512 columns of 32 bits per CTA), for
// one CTA (cta_group::1). PTX ISA 9.0, "TensorCore 5th Generation Family Instructions". Only for
// images in which DUALGEMM_TARGET_SM100 is 1.
#pragma once

#include <cstdint>

#include "cuda/ptx/mbarrier.cuh"

namespace dualgemm::cuda::ptx {

// tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [destination], columns;      PTX ISA 8.6,
// "tcgen05.alloc". A whole warp; columns a power of two in 32 .. 512; the base address is written
// to shared memory.
DUALGEMM_DEVICE void tcgen05_alloc(uint32_t* smem_destination, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                   shared_address(smem_destination)),
               "r"(columns)
               : "memory");
}

// tcgen05.relinquish_alloc_permit...      PTX ISA 8.6: the CTA allocates no more.
DUALGEMM_DEVICE void tcgen05_relinquish_alloc_permit() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

// tcgen05.dealloc.cta_group::1.sync.aligned.b32 base, columns;      PTX ISA 8.6. A whole warp; all
// accesses of all warps must be ordered before it.
DUALGEMM_DEVICE void tcgen05_dealloc(uint32_t base, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(base), "r"(columns)
               : "memory");
}

// tcgen05.fence::before_thread_sync;      PTX ISA 8.6, "tcgen05.fence": earlier tcgen05 operations
// of this thread are ordered before what other threads do after the next synchronisation.
DUALGEMM_DEVICE void tcgen05_fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

// tcgen05.fence::after_thread_sync;      the other half, behind the synchronisation.
DUALGEMM_DEVICE void tcgen05_fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// tcgen05.cp.cta_group::1.32x128b.warpx4 [tmem], descriptor;      PTX ISA 8.6, "tcgen05.cp": 32
// rows of 16 bytes to 4 columns, repeated in all four 32-lane quarters. Ordered before later MMAs
// of the same thread.
DUALGEMM_DEVICE void tcgen05_cp_32x128b_warpx4(uint32_t tmem, uint64_t descriptor) {
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(tmem), "l"(descriptor)
               : "memory");
}

// What becomes of A in the collector buffer; kDiscard: nothing.
enum class CollectorA { kFill, kLastUse, kDiscard };

// tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16.collector::a::...      PTX ISA
// 8.8 (with .scale_vec::4X for .block16, which family targets do not know: 8.6), "tcgen05.mma".
// D[tmem] = A*B + (accumulate ? D : 0) with one UE4M3 scale per 16 elements along K. kLastUse: A
// must be that of the kFill before it.
template <CollectorA kCollector>
DUALGEMM_DEVICE void tcgen05_mma_mxf4nvf4_block16(uint32_t tmem_d, uint64_t desc_a, uint64_t desc_b,
                                                  uint32_t instruction, uint32_t tmem_sf_a,
                                                  uint32_t tmem_sf_b, uint32_t accumulate) {
  if constexpr (kCollector == CollectorA::kFill) {
    asm volatile(
        "{\n"
        ".reg .pred enable_input_d;\n"
        "setp.ne.b32 enable_input_d, %6, 0;\n"
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16.collector::a::fill "
        "[%0], %1, %2, %3, [%4], [%5], enable_input_d;\n"
        "}\n" ::"r"(tmem_d),
        "l"(desc_a), "l"(desc_b), "r"(instruction), "r"(tmem_sf_a), "r"(tmem_sf_b), "r"(accumulate)
        : "memory");
  } else {
    asm volatile(
        "{\n"
        ".reg .pred enable_input_d;\n"
        "setp.ne.b32 enable_input_d, %6, 0;\n"
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16.collector::a::lastuse "
        "[%0], %1, %2, %3, [%4], [%5], enable_input_d;\n"
        "}\n" ::"r"(tmem_d),
        "l"(desc_a), "l"(desc_b), "r"(instruction), "r"(tmem_sf_a), "r"(tmem_sf_b), "r"(accumulate)
        : "memory");
  }
}

// tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];      PTX ISA 8.6,
// "tcgen05.commit": one arrival once all earlier cp and mma of this thread are complete. Includes
// fence::before_thread_sync.
DUALGEMM_DEVICE void tcgen05_commit(Barrier* bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                   shared_address(bar))
               : "memory");
}

#define DUALGEMM_OUT_16(values)                                                                 \
  "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3]), "=f"(values[4]),          \
      "=f"(values[5]), "=f"(values[6]), "=f"(values[7]), "=f"(values[8]), "=f"(values[9]),      \
      "=f"(values[10]), "=f"(values[11]), "=f"(values[12]), "=f"(values[13]), "=f"(values[14]), \
      "=f"(values[15])

// tcgen05.ld.sync.aligned.32x32b.x16.b32 x2, tcgen05.wait::ld.sync.aligned;      PTX ISA 8.6,
// "tcgen05.ld", "tcgen05.wait". A whole warp with the same addresses, whose lane field is the
// warp's own quarter; thread t gets 16 columns of lane t, of two places. One statement, because
// nothing else keeps the compiler from using the registers before the wait.
DUALGEMM_DEVICE void tcgen05_ld_32x32b_x16_pair(uint32_t tmem_p, uint32_t tmem_q, float (&p)[16],
                                                float (&q)[16]) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
      "%12, %13, %14, %15}, [%32];\n"
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 {%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "
      "%26, %27, %28, %29, %30, %31}, [%33];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : DUALGEMM_OUT_16(p), DUALGEMM_OUT_16(q)
      : "r"(tmem_p), "r"(tmem_q)
      : "memory");
}

// The same of one place.
DUALGEMM_DEVICE void tcgen05_ld_32x32b_x16(uint32_t tmem, float (&values)[16]) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
      "%12, %13, %14, %15}, [%16];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : DUALGEMM_OUT_16(values)
      : "r"(tmem)
      : "memory");
}
#undef DUALGEMM_OUT_16

}  // namespace dualgemm::cuda::ptx
