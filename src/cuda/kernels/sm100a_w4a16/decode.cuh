// NVFP4 codes and scales to pairs of fp16 or bf16, exactly (docs/numerics.md, fact 3), neighbours
// along k side by side as the tensor core wants them.
//
//   fp16: the code as fp16, times the scale
//   bf16: the code as fp16, its exponent and mantissa moved to the places that they have in bf16
//         (2^-112 of the number), times 2^112 of the scale
#pragma once

#include <cstdint>

#include "cuda/ptx/half2.cuh"
#include "cuda/ptx/math.cuh"
#include "cuda/ptx/tcgen05_f16.cuh"

namespace dualgemm::cuda::sm100a_w4a16 {

// Four scales of a word, neighbours along k, each in both halves; their signs count for nothing.
template <bool kBf16>
DUALGEMM_DEVICE void expand_scales(uint32_t scales, uint32_t (&pairs)[4]) {
  scales &= 0x7F7F7F7Fu;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t two = ptx::cvt_f16x2_e4m3x2(static_cast<uint16_t>(scales >> (16 * i)));
    if constexpr (kBf16) {
      const float low = ptx::cvt_f32_f16(static_cast<uint16_t>(two)) * 0x1p112f;
      const float high = ptx::cvt_f32_f16(static_cast<uint16_t>(two >> 16)) * 0x1p112f;
      pairs[2 * i] = ptx::cvt_bf16x2(low, low);
      pairs[2 * i + 1] = ptx::cvt_bf16x2(high, high);
    } else {
      pairs[2 * i] = __byte_perm(two, 0, 0x1010);
      pairs[2 * i + 1] = __byte_perm(two, 0, 0x3232);
    }
  }
}

// The eight codes of a word.
template <bool kBf16>
DUALGEMM_DEVICE void decode_word(uint32_t codes, uint32_t scale, uint32_t* pairs) {
  uint32_t plain[4];
  ptx::cvt_f16x2_e2m1x2(codes, plain);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kBf16) {
      const uint32_t small = (plain[i] >> 3 & 0x0FFF0FFFu) | (plain[i] & 0x80008000u);
      pairs[i] = ptx::mul_bf16x2(small, scale);
    } else {
      pairs[i] = ptx::mul_f16x2(plain[i], scale);
    }
  }
}

}  // namespace dualgemm::cuda::sm100a_w4a16
