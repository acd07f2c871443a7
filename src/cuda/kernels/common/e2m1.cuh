// E2M1 codes and E4M3 scales to FP32, exactly, on any GPU.
#pragma once

#include <cstdint>

#include "cuda/ptx/half2.cuh"
#include "cuda/ptx/math.cuh"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

constexpr int kChunk = 8;  // neighbouring codes that a thread takes: one word, half of a 16-block

// E4M3 without its sign: 4 exponent bits with bias 7, 3 mantissa bits, 0x7F is NaN, no infinities.
DUALGEMM_DEVICE float decode_scale(uint8_t bits) {
  const uint32_t magnitude = bits & 0x7F;
  if (magnitude == 0x7F) return __uint_as_float(0x7FC00000u);
  // As the top bits of a float it is 2^-120 of its value; subnormal ones are subnormal floats then.
  return __uint_as_float(magnitude << 20) * 0x1p120f;
}

// values[i] = code i of the word (lowest nibble first) * scale. A code's three lower bits are the
// last two of an exponent and the first of a mantissa: as those of a float, 2^-126 of its value.
DUALGEMM_DEVICE void decode_chunk(uint32_t codes, float scale, float (&values)[kChunk]) {
#pragma unroll
  for (int i = 0; i < kChunk; ++i) {
    const uint32_t code = codes >> (4 * i);
    const float small = __uint_as_float((code & 7) << 22 | (code & 8) << 28);
    values[i] = small * 0x1p126f * scale;
  }
}

// The same in pairs of fp16. With bits 1-3 for the magnitude and bit 7 for the sign, a byte is the
// upper half of an fp16 number that is 2^-14 of the code's value.
DUALGEMM_DEVICE void decode_chunk_f16(uint32_t codes, uint32_t scale_pair,
                                      uint32_t (&pairs)[kChunk / 2]) {
  constexpr uint32_t kTwoTo14 = 0x74007400;  // in both halves
  const uint32_t even = (codes << 1 & 0x0E0E0E0E) | (codes << 4 & 0x80808080);
  const uint32_t odd = (codes >> 3 & 0x0E0E0E0E) | (codes & 0x80808080);
#pragma unroll
  for (int i = 0; i < kChunk / 2; ++i) {  // byte i of even and of odd
    const uint32_t small = __byte_perm(even, odd, 0x4000 + i * 0x1010) & 0xFF00FF00;
    pairs[i] = ptx::mul_f16x2(ptx::mul_f16x2(small, kTwoTo14), scale_pair);
  }
}

// Four bytes at any address.
DUALGEMM_DEVICE uint32_t load_word(const uint8_t* from) {
  if (reinterpret_cast<uintptr_t>(from) % 4 == 0) return *reinterpret_cast<const uint32_t*>(from);
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= static_cast<uint32_t>(from[i]) << (8 * i);
  return word;
}

}  // namespace dualgemm::cuda
