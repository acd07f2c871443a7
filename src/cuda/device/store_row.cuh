// One thread's run of neighbouring outputs of one row, from registers to global memory.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/ptx/math.cuh"

namespace dualgemm::cuda {

// Two outputs of 16 bits in one word, the first in the low half.
template <OutputType kType>
DUALGEMM_DEVICE uint32_t pack_pair(float low, float high) {
  return kType == OutputType::kF16 ? ptx::cvt_f16x2(low, high) : ptx::cvt_bf16x2(low, high);
}

// values[i] rounded to kType, as 32-bit words in memory order.
template <OutputType kType, int kCount>
DUALGEMM_DEVICE void pack_words(const float (&values)[kCount],
                                uint32_t (&words)[kCount * bytes_of(kType) / 4]) {
#pragma unroll
  for (int i = 0; i < kCount * bytes_of(kType) / 4; ++i) {
    if constexpr (kType == OutputType::kF32) {
      words[i] = __float_as_uint(values[i]);
    } else {
      words[i] = pack_pair<kType>(values[2 * i], values[2 * i + 1]);
    }
  }
}

// Writes the first `valid` of kCount outputs, packed in words, to `row`, which has the alignment of
// one element. Whole runs at a multiple of 16 bytes are written 16 bytes at a time.
template <OutputType kType, int kCount>
DUALGEMM_DEVICE void store_words(uint8_t* row,
                                 const uint32_t (&words)[kCount * bytes_of(kType) / 4], int valid) {
  if (valid >= kCount && reinterpret_cast<uintptr_t>(row) % 16 == 0) {
#pragma unroll
    for (int i = 0; i < kCount * bytes_of(kType) / 4; i += 4) {
      reinterpret_cast<uint4*>(row)[i / 4] =
          make_uint4(words[i], words[i + 1], words[i + 2], words[i + 3]);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (i >= valid) continue;
    if constexpr (kType == OutputType::kF32) {
      reinterpret_cast<uint32_t*>(row)[i] = words[i];
    } else {
      reinterpret_cast<uint16_t*>(row)[i] = static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16));
    }
  }
}

// The same of values that are yet to be rounded.
template <OutputType kType, int kCount>
DUALGEMM_DEVICE void store_row(uint8_t* row, const float (&values)[kCount], int valid) {
  uint32_t words[kCount * bytes_of(kType) / 4];
  pack_words<kType>(values, words);
  store_words<kType, kCount>(row, words, valid);
}

// One output at an address that suits it.
DUALGEMM_DEVICE void store_element(OutputType type, uint8_t* to, float value) {
  if (type == OutputType::kF32) {
    *reinterpret_cast<float*>(to) = value;
  } else {
    const uint32_t pair = type == OutputType::kF16 ? pack_pair<OutputType::kF16>(value, 0.0f)
                                                   : pack_pair<OutputType::kBF16>(value, 0.0f);
    *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(pair);
  }
}

}  // namespace dualgemm::cuda
