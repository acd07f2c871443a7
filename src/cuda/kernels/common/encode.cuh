// Sixteen values to NVFP4, bit for bit as core/quantize_block.hpp has it, without its divisions.
//
// The recipe divides twice: s = e4m3(y / 6) and code = e2m1(y / s), each quotient rounded to FP32
// before it is rounded to the format. What counts is on which side of a midpoint T of two codes the
// rounded quotient lies. With y in FP32, d = 6 or a block scale (at most 4 significant bits) and T
// (at most 5), T * d has at most 9 bits and is exact, and:
// - y = T * d: the quotient is T, no rounding needed.
// - y next to T * d: the quotient differs from T by the last place of T * d, divided by d, which is
//   more than 0.53 of a last place of T (d's significand is at most 15/8), so it rounds to another
//   number than T, on its side.
// So any quotient with an error below 0.03 of its last place, rounded once, gives the same code. It
// is y * high + y * low, where high + low is 1 / d to 2^-44, in one multiplication and one fused
// multiply-add.
#pragma once

#include <cstdint>

#include "cuda/kernels/common/e2m1.cuh"
#include "cuda/ptx/float_range.cuh"
#include "cuda/ptx/math.cuh"

namespace dualgemm::cuda {

constexpr int kBlock = 16;
constexpr float kLargestFloat = 0x1.fffffep127f;

// What x is multiplied by, and what the reader multiplies by.
struct GlobalFactor {
  float quantize, dequantize;
};

// core::global_scale_given(); NaN for what is none.
DUALGEMM_DEVICE float factor_of_given(float global_scale) {
  const bool usable = global_scale > 0.0f && global_scale <= kLargestFloat;
  return usable ? fminf(__fdiv_rn(1.0f, global_scale), kLargestFloat)
                : __uint_as_float(0x7FC00000u);
}

// core::global_scale_of_bits(): the bits of a largest magnitude.
DUALGEMM_DEVICE GlobalFactor factor_of_amax(uint32_t bits) {
  constexpr float kRange = 2688.0f, kSmallest = 0x1p-126f;
  const float nan = __uint_as_float(0x7FC00000u), amax = __uint_as_float(bits);
  if (bits >= 0x7F800000u) return {nan, nan};
  if (bits == 0) return {1.0f, 1.0f};
  const float scale = __fdiv_rn(amax, kRange);
  if (scale < kSmallest) return {0x1p126f, kSmallest};
  return {__fdiv_rn(kRange, amax), scale};
}

// Nearest even, 448 at the most, NaN is 0x7F; value is not negative.
DUALGEMM_DEVICE uint32_t encode_scale(float value) {
  const float clamped = fminf(value, 448.0f);
  const uint32_t exact = __float_as_uint(clamped);
  // Half of the 20 dropped bits, to even.
  const uint32_t normal = ((exact + 0x7FFFFu + (exact >> 20 & 1u)) >> 20) - (120u << 3);
  // The quantum 2^-9 is the last place of a float in [2^14, 2^15): the addition itself rounds.
  const uint32_t subnormal =
      __float_as_uint(__fadd_rn(clamped, 0x1p14f)) - __float_as_uint(0x1p14f);
  const uint32_t code = clamped < 0x1p-6f ? subnormal : normal;
  return value == value ? code : 0x7Fu;
}

// e4m3(y / 6), in the sense above. high is cut off, so that low is positive and infinity stays.
DUALGEMM_DEVICE uint32_t encode_sixth(float y) {
  constexpr float kHigh = 0x1.555554p-3f, kLow = static_cast<float>(1.0 / 6 - 0x1.555554p-3);
  return encode_scale(__fmaf_rn(y, kHigh, __fmul_rn(y, kLow)));
}

// The codes of a block whose scale is 0 or NaN are 0.
DUALGEMM_DEVICE uint32_t kept_codes(uint32_t scale) {
  return scale == 0 || scale == 0x7F ? 0u : ~0u;
}

struct EncodedBlock {
  uint32_t words[2];  // eight codes each, the first in the lowest nibble, without signs
  uint32_t scale;
  float error;  // if asked for
};

// Half of 1 / s, in two pieces.
struct HalfReciprocal {
  float high, low;
};

DUALGEMM_DEVICE HalfReciprocal half_reciprocal(float s) {
  const float high = ptx::rcp_approx_ftz(s);  // whatever its error, low makes up for it
  const float low = __fmul_rn(__fmaf_rn(-s, high, 1.0f), high);
  return {0.5f * high, 0.5f * low};
}

constexpr float kCodeRounder = 0x1.8p23f;

// 1.5 * 2^23 + the code of y = |x| * G. The code of a quotient v is what
//   f(v) = min(2v, v + 2, v/2 + 4)
// rounds to, since E2M1 counts in steps of 1/2 up to 2, of 1 up to 4, of 2 up to 6. Each of the
// three is exact but for one rounding, to even, at the addition of 1.5 * 2^23.
// kRare: v may be 7 or more, where f leaves the codes, or y infinite, whose product with `low`
// would be NaN, or NaN. The same f as a sum of ramps from 0 to 1 then, of which only one is
// neither:
//   4 * sat(v/2) + 2 * sat(v/2 - 1) + sat(v/2 - 2); NaN counts 0
template <bool kRare>
DUALGEMM_DEVICE float round_to_code(float y, const HalfReciprocal& half) {
  const float finite = kRare ? fminf(y, kLargestFloat) : y;
  const float half_v = __fmaf_rn(finite, half.high, __fmul_rn(finite, half.low));
  if constexpr (kRare) {
    const float ramps[3] = {ptx::add_sat(half_v, 0.0f), ptx::add_sat(half_v, -1.0f),
                            ptx::add_sat(half_v, -2.0f)};
    return __fmaf_rn(4.0f, ramps[0], __fmaf_rn(2.0f, ramps[1], __fadd_rn(ramps[2], kCodeRounder)));
  }
  // Positive numbers are in the order of their bits, of which sm_90 has a minimum of three.
  const int least = min(min(__float_as_int(__fmaf_rn(4.0f, half_v, kCodeRounder)),
                            __float_as_int(__fmaf_rn(2.0f, half_v, kCodeRounder + 2.0f))),
                        __float_as_int(__fadd_rn(half_v, kCodeRounder + 4.0f)));
  return __int_as_float(least);
}

template <bool kError, bool kRare>
DUALGEMM_DEVICE void encode_magnitudes(const float (&x)[kBlock], float quantize,
                                       EncodedBlock& out) {
  constexpr uint32_t kRounderInAllNibbles = 0x4B400000u * 0x11111111u;
  const float s = decode_scale(static_cast<uint8_t>(out.scale));
  const HalfReciprocal half = half_reciprocal(s);
  out.error = 0.0f;
#pragma unroll
  for (int word = 0; word < 2; ++word) {
    uint32_t codes = 0u - kRounderInAllNibbles;
#pragma unroll
    for (int i = 0; i < kBlock / 2; ++i) {
      const float y = __fmul_rn(fabsf(x[word * (kBlock / 2) + i]), quantize);
      const uint32_t bits = __float_as_uint(round_to_code<kRare>(y, half));
      codes += bits << (4 * i);
      if constexpr (kError) {
        // The code's bits as the upper ones of a float are 2^-126 of its value; value * s is exact.
        const float value = __fmul_rn(__uint_as_float(bits << 22), 0x1p126f);
        out.error = __fadd_rn(out.error, fabsf(__fmaf_rn(-value, s, y)));
      }
    }
    out.words[word] = codes;
  }
}

// Whether the quotient of `largest`, a block's amax * G, and its scale, which was made of it, may
// be 7 or more. A scale that is neither cut off at 448 nor subnormal is at most 1/17 below what was
// wanted. NaN: yes.
DUALGEMM_DEVICE bool is_rare(float largest, float scale) { return !(largest <= 6.5f * scale); }

// largest: amax * G.
template <bool kError>
DUALGEMM_DEVICE EncodedBlock encode_with(const float (&x)[kBlock], float quantize, float largest,
                                         uint32_t scale) {
  EncodedBlock out;
  out.scale = scale;
  if (!is_rare(largest, decode_scale(static_cast<uint8_t>(scale)))) {
    encode_magnitudes<kError, false>(x, quantize, out);
  } else {
    encode_magnitudes<kError, true>(x, quantize, out);
  }
  return out;
}

// The largest magnitude; NaN if there is one.
DUALGEMM_DEVICE float amax_of_block(const float (&x)[kBlock]) {
  float amax = 0.0f;
#pragma unroll
  for (int i = 0; i < kBlock; ++i) amax = ptx::max_nan(amax, fabsf(x[i]));
  return amax;
}

// amax: amax_of_block(x). signs: bits 3, 7, ... of each word.
template <bool kFourOverSix>
DUALGEMM_DEVICE EncodedBlock encode_block(const float (&x)[kBlock], const uint32_t (&signs)[2],
                                          float amax, float quantize) {
  const float largest = __fmul_rn(amax, quantize);
  EncodedBlock best = encode_with<kFourOverSix>(x, quantize, largest, encode_sixth(largest));
  if constexpr (kFourOverSix) {
    const EncodedBlock four =
        encode_with<true>(x, quantize, largest, encode_scale(__fmul_rn(largest, 0.25f)));
    if (four.error < best.error) best = four;
  }
  const uint32_t keep = kept_codes(best.scale);
#pragma unroll
  for (int word = 0; word < 2; ++word) best.words[word] = (best.words[word] | signs[word]) & keep;
  return best;
}

}  // namespace dualgemm::cuda
