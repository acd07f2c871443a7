// What a kernel needs of Blackwell's tensor core if it writes one operand of 16-bit numbers into
// tensor memory itself. PTX ISA 9.0, "TensorCore 5th Generation Family Instructions". Only for
// images in which DUALGEMM_TARGET_SM100 is 1.
#pragma once

#include <cstdint>

#include "cuda/ptx/tcgen05.cuh"

namespace dualgemm::cuda::ptx {

// tcgen05.mma.cta_group::1.kind::f16 [d], [a], b-desc, instruction, enable-input-d;      PTX ISA
// 8.6, "tcgen05.mma": D[tmem] = A*B + (accumulate ? D : 0) over K = 16; A is 8 columns of tensor
// memory, two numbers in each, a row in the lane of D's.
DUALGEMM_DEVICE void tcgen05_mma_f16(uint32_t tmem_d, uint32_t tmem_a, uint64_t desc_b,
                                     uint32_t instruction, uint32_t accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred enable_input_d;\n"
      "setp.ne.b32 enable_input_d, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, enable_input_d;\n"
      "}\n" ::"r"(tmem_d),
      "r"(tmem_a), "l"(desc_b), "r"(instruction), "r"(accumulate)
      : "memory");
}

#define DUALGEMM_IN_8(values, first)                                                          \
  "r"(values[first]), "r"(values[first + 1]), "r"(values[first + 2]), "r"(values[first + 3]), \
      "r"(values[first + 4]), "r"(values[first + 5]), "r"(values[first + 6]),                 \
      "r"(values[first + 7])

// tcgen05.st.sync.aligned.32x32b.x32.b32 [to], {...};      PTX ISA 8.6, "tcgen05.st". A whole warp
// with the same address, whose lane field is the warp's own quarter; thread t writes 32 columns of
// lane t.
DUALGEMM_DEVICE void tcgen05_st_32x32b(uint32_t to, const uint32_t (&values)[32]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
      "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, "
      "%29, %30, %31};" ::DUALGEMM_IN_8(values, 0),
      DUALGEMM_IN_8(values, 8), DUALGEMM_IN_8(values, 16), DUALGEMM_IN_8(values, 24), "r"(to)
      : "memory");
}
#undef DUALGEMM_IN_8

// tcgen05.wait::st.sync.aligned;      PTX ISA 8.6, "tcgen05.wait": the warp's earlier stores are
// complete.
DUALGEMM_DEVICE void tcgen05_wait_st() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

// cvt.rn.f16x2.e2m1x2 d, byte;      PTX ISA 8.6, sm_100a, "cvt": the two E2M1 codes of each byte of
// `codes`, the one of the low nibble in the low half; exact.
DUALGEMM_DEVICE void cvt_f16x2_e2m1x2(uint32_t codes, uint32_t (&pairs)[4]) {
  asm("{\n.reg .b8 b0, b1, b2, b3;\n"
      "mov.b32 {b0, b1, b2, b3}, %4;\n"
      "cvt.rn.f16x2.e2m1x2 %0, b0;\n"
      "cvt.rn.f16x2.e2m1x2 %1, b1;\n"
      "cvt.rn.f16x2.e2m1x2 %2, b2;\n"
      "cvt.rn.f16x2.e2m1x2 %3, b3;\n}\n"
      : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
      : "r"(codes));
}

}  // namespace dualgemm::cuda::ptx
