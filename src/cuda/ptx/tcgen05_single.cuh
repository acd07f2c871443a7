// What a kernel with one accumulator needs of Blackwell's tensor core: an MMA whose A is not kept
// for another, and loads from one place. PTX ISA 9.0, "TensorCore 5th Generation Family
// Instructions". Only for images in which DUALGEMM_TARGET_SM100 is 1.
#pragma once

#include <cstdint>

#include "cuda/ptx/tcgen05.cuh"

namespace dualgemm::cuda::ptx {

// tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16;      PTX ISA 8.8, "tcgen05.mma": as
// tcgen05_mma_mxf4nvf4_block16, with the collector's default, which drops A.
DUALGEMM_DEVICE void tcgen05_mma_mxf4nvf4_block16_once(uint32_t tmem_d, uint64_t desc_a,
                                                       uint64_t desc_b, uint32_t instruction,
                                                       uint32_t tmem_sf_a, uint32_t tmem_sf_b,
                                                       uint32_t accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred enable_input_d;\n"
      "setp.ne.b32 enable_input_d, %6, 0;\n"
      "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 "
      "[%0], %1, %2, %3, [%4], [%5], enable_input_d;\n"
      "}\n" ::"r"(tmem_d),
      "l"(desc_a), "l"(desc_b), "r"(instruction), "r"(tmem_sf_a), "r"(tmem_sf_b), "r"(accumulate)
      : "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x8.b32, tcgen05.wait::ld.sync.aligned;      PTX ISA 8.6,
// "tcgen05.ld", "tcgen05.wait". A whole warp with the same address, whose lane field is the warp's
// own quarter; thread t gets 8 columns of lane t. One statement, because nothing else keeps the
// compiler from using the registers before the wait.
DUALGEMM_DEVICE void tcgen05_ld_32x32b(uint32_t tmem, float (&d)[8]) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]),
        "=f"(d[7])
      : "r"(tmem)
      : "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x16.b32, the same of 16 columns.
DUALGEMM_DEVICE void tcgen05_ld_32x32b(uint32_t tmem, float (&d)[16]) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
      "%12, %13, %14, %15}, [%16];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]),
        "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]),
        "=f"(d[14]), "=f"(d[15])
      : "r"(tmem)
      : "memory");
}

}  // namespace dualgemm::cuda::ptx
