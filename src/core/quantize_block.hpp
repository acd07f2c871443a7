// The NVFP4 recipe for one block of 16: shared by the quantiser, the oracle and the epilogues that
// write NVFP4. docs/formats.md, "Quantisation recipe".
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/e2m1.hpp"
#include "core/e4m3.hpp"

namespace dualgemm::core {

// The two directions of a tensor's global scale: w = e2m1 * e4m3 * dequantize; the recipe
// multiplies by quantize.
struct GlobalScale {
  float dequantize;
  float quantize;  // finite and > 0, so that 0 * quantize is 0 and never NaN
};

inline constexpr float kGlobalRange =
    2688.0f;  // 6 * 448: the largest product of a code and a block scale

// For the largest magnitude of a tensor, finite. An all-zero tensor gets 1. Below 2688 * 2^-126
// (3.2e-35) the global scale stays at 2^-126: a smaller one would be subnormal, lose bits, and its
// reciprocal would soon overflow; the block scales take over the rest.
[[gnu::always_inline]] constexpr GlobalScale global_scale_of_amax(float amax) noexcept {
  if (amax == 0.0f) return {1.0f, 1.0f};
  const float scale = amax / kGlobalRange;
  if (scale < 0x1p-126f) return {0x1p-126f, 0x1p126f};
  return {scale, kGlobalRange / amax};
}

// For a given dequantising scale, finite and > 0. 1/g is capped at the largest float, which it
// would exceed for g <= 2^-128.
[[gnu::always_inline]] constexpr GlobalScale global_scale_given(float dequantize) noexcept {
  return {dequantize, std::min(1.0f / dequantize, std::numeric_limits<float>::max())};
}

// The same for the bits of any largest magnitude: an infinity or a NaN leaves NaN in every block.
[[gnu::always_inline]] constexpr GlobalScale global_scale_of_bits(int32_t amax) noexcept {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (amax >= 0x7F800000) return {kNan, kNan};
  return global_scale_of_amax(std::bit_cast<float>(amax));
}

namespace detail {

// Largest magnitude of the block as an integer: magnitudes order like their bits, and any NaN lies
// above infinity.
[[gnu::always_inline]] inline float block_amax(const float* x) noexcept {
  int32_t amax = 0;
  for (int i = 0; i < 16; ++i) amax = std::max(amax, std::bit_cast<int32_t>(x[i]) & 0x7FFFFFFF);
  return std::bit_cast<float>(amax);
}

// `target`: the code that the largest magnitude maps to, 6 or 4. NaN gives 0x7F.
[[gnu::always_inline]] inline uint8_t block_scale(float amax, float quantize,
                                                  float target) noexcept {
  return encode_e4m3(quantize * amax / target) & 0x7F;
}

// One code for each of the 16; all 0 when the scale is 0 or NaN. The sign is x's own.
[[gnu::always_inline]] inline void block_codes(const float* x, float quantize, uint8_t scale,
                                               uint32_t* codes) noexcept {
  const float s = kE4M3Values[scale];
  const bool usable = s > 0.0f;
  const float divisor = usable ? s : 1.0f;
  const uint32_t keep = usable ? 0xFu : 0u;
  for (int i = 0; i < 16; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]);
    const float magnitude = std::bit_cast<float>(bits & 0x7FFFFFFFu);
    codes[i] = (encode_e2m1_magnitude(magnitude * quantize / divisor) | (bits >> 28 & 8u)) & keep;
  }
}

// Sum of |x*G - code*s| in FP32 in the order of the index; the product code*s is exact.
[[gnu::always_inline]] inline float block_error(const float* x, float quantize, uint8_t scale,
                                                const uint32_t* codes) noexcept {
  const float s = kE4M3Values[scale];
  float error = 0.0f;
  for (int i = 0; i < 16; ++i) error += std::fabs(x[i] * quantize - kE2M1Values[codes[i]] * s);
  return error;
}

[[gnu::always_inline]] inline void pack_codes(const uint32_t* codes, uint8_t* packed) noexcept {
  for (int i = 0; i < 8; ++i)
    packed[i] = static_cast<uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
}

}  // namespace detail

// x[16] -> 8 bytes of codes and the scale byte:
//   s = e4m3(min(G*amax/6, 448)),  code = e2m1(x*G/s), 0 when s = 0
// with every operation rounded to FP32, in this order.
// A NaN in the block gives the scale 0x7F, so that it is not lost, and codes 0. Infinities
// saturate: scale 448, codes +-6.
[[gnu::always_inline]] inline uint8_t quantize_block(const float* x, float quantize,
                                                     uint8_t* packed) noexcept {
  uint32_t codes[16];
  const uint8_t scale = detail::block_scale(detail::block_amax(x), quantize, 6.0f);
  detail::block_codes(x, quantize, scale, codes);
  detail::pack_codes(codes, packed);
  return scale;
}

// The same with a second candidate, s = e4m3(min(G*amax/4, 448)): the one with the smaller error
// sum wins, a tie goes to the first; so does a NaN or an infinity, whose sums are none.
[[gnu::always_inline]] inline uint8_t quantize_block_four_over_six(const float* x, float quantize,
                                                                   uint8_t* packed) noexcept {
  uint32_t codes_6[16], codes_4[16];
  const float amax = detail::block_amax(x);
  const uint8_t scale_6 = detail::block_scale(amax, quantize, 6.0f);
  const uint8_t scale_4 = detail::block_scale(amax, quantize, 4.0f);
  detail::block_codes(x, quantize, scale_6, codes_6);
  detail::block_codes(x, quantize, scale_4, codes_4);
  const bool four = detail::block_error(x, quantize, scale_4, codes_4) <
                    detail::block_error(x, quantize, scale_6, codes_6);
  detail::pack_codes(four ? codes_4 : codes_6, packed);
  return four ? scale_4 : scale_6;
}

}  // namespace dualgemm::core
