// Warp-wide products in registers. PTX ISA 9.0, "mma", "Matrix Fragments for mma.m16n8k16 with
// floating point type"; "Half Precision Floating Point Instructions: fma".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// mma.sync.aligned.m16n8k16.row.col.f32.{f16,bf16}.{f16,bf16}.f32 d, a, b, d;
//                                                         PTX ISA 7.0, sm_80, "mma": d += a * b
// With g = lane / 4 and t = lane % 4:
//   a[j]  row g + 8 * (j % 2), columns 2t and 2t+1 of the half j / 2 of k
//   b[j]  column g, the same of the half j
//   d[j]  row g + 8 * (j / 2), column 2t + j % 2
template <bool kBf16>
DUALGEMM_DEVICE void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (kBf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

// mul.rn.f16x2 d, a, b;      PTX ISA 4.2, sm_53, "mul": subnormals count
DUALGEMM_DEVICE uint32_t mul_rn_f16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// fma.rn.bf16x2 d, a, b, -0;      PTX ISA 7.0, sm_80, "fma": subnormals count. a * b with its sign
// also where it is 0; mul.bf16x2 needs sm_90.
DUALGEMM_DEVICE uint32_t product_bf16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(0x80008000u));
  return d;
}

}  // namespace dualgemm::cuda::ptx
