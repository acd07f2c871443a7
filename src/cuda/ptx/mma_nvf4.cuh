// The block-scaled product of E2M1 in registers, of sm_120a and sm_121a. PTX ISA 9.0, "mma",
// "Matrix Fragments for mma.m16n8k64 with .e2m1 type", "Block Scaling for mma.sync".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32
//     .ue4m3 d, a, b, d, sfa, {0, kPairA}, sfb, {0, kLaneB};      PTX ISA 8.7, sm_120a: d += a * b
// With g = lane / 4 and t = lane % 4, the lowest nibble of a word first:
//   a[j]  row g + 8 * (j % 2), elements 8t .. 8t+7 of the half j / 2 of k
//   b[j]  column g, the same of the half j
//   d[j]  row g + 8 * (j / 2), column 2t + j % 2
//   sfa   of lane 4g + 2 kPairA the four scales of row g, of the lane after it those of row g + 8,
//         the lowest byte for the first 16 elements; other lanes' do not count
//   sfb   of lane 4g + kLaneB the four scales of column g, likewise
template <int kPairA, int kLaneB>
DUALGEMM_DEVICE void mma_nvf4(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                              uint32_t sfa, uint32_t sfb) {
  static_assert(kPairA >= 0 && kPairA < 2 && kLaneB >= 0 && kLaneB < 4);
  asm volatile(
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
      ".f32.e2m1.e2m1.f32.ue4m3 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, "
      "{%10}, {0, %12}, {%11}, {0, %13};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(sfa), "r"(sfb),
        "n"(kPairA), "n"(kLaneB));
}

}  // namespace dualgemm::cuda::ptx
