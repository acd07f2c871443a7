// Sixteen neighbouring values of x as they lie in memory, and as FP32 with their signs apart.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/kernels/common/encode.cuh"
#include "cuda/kernels/convert/quantize_params.hpp"
#include "cuda/ptx/float_range.cuh"

namespace dualgemm::cuda {

template <WideType kType>
struct WideBlock {
  static constexpr int kWords = kBlock * bytes_of(kType) / 4;
  static constexpr int kBytes = kBlock * bytes_of(kType);
  uint32_t words[kWords];

  // From an address that suits an element.
  DUALGEMM_DEVICE void load(const uint8_t* from) {
    load(from, reinterpret_cast<uintptr_t>(from) % 16 == 0);
  }
  // aligned: to 16.
  DUALGEMM_DEVICE void load(const uint8_t* from, bool aligned) {
    if (aligned) {
#pragma unroll
      for (int i = 0; i < kWords; i += 4) {
        const uint4 four = reinterpret_cast<const uint4*>(from)[i / 4];
        words[i] = four.x, words[i + 1] = four.y, words[i + 2] = four.z, words[i + 3] = four.w;
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      if constexpr (kType == WideType::kF32) {
        words[i] = reinterpret_cast<const uint32_t*>(from)[i];
      } else {
        const auto* const halves = reinterpret_cast<const uint16_t*>(from);
        words[i] = halves[2 * i] | static_cast<uint32_t>(halves[2 * i + 1]) << 16;
      }
    }
  }

  DUALGEMM_DEVICE void values(float (&out)[kBlock]) const {
#pragma unroll
    for (int i = 0; i < kBlock; ++i) {
      if constexpr (kType == WideType::kF32) {
        out[i] = __uint_as_float(words[i]);
      } else {
        out[i] = half_of(words[i / 2], i % 2);
      }
    }
  }

  // The largest magnitude; NaN if there is one. Types of 16 bits take two at a time: it is exact in
  // FP32.
  DUALGEMM_DEVICE float amax() const {
    if constexpr (kType == WideType::kF32) {
      float x[kBlock];
      values(x);
      return amax_of_block(x);
    } else {
      uint32_t most = abs_of(words[0]);
#pragma unroll
      for (int i = 1; i < kWords; ++i) {
        const uint32_t magnitudes = abs_of(words[i]);
        most = kType == WideType::kBF16 ? ptx::max_nan_bf16x2(most, magnitudes)
                                        : ptx::max_nan_f16x2(most, magnitudes);
      }
      return ptx::max_nan(half_of(most, 0), half_of(most, 1));
    }
  }

  // The sign of value i of eight in bit 4i + 3.
  DUALGEMM_DEVICE void signs(uint32_t (&out)[2]) const {
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      uint32_t even, odd;  // the bytes that hold the signs of values 0, 2, 4, 6 and 1, 3, 5, 7
      if constexpr (kType == WideType::kF32) {
        const uint32_t* const w = words + 8 * word;
        even =
            __byte_perm(__byte_perm(w[0], w[2], 0x0073), __byte_perm(w[4], w[6], 0x0073), 0x5410);
        odd = __byte_perm(__byte_perm(w[1], w[3], 0x0073), __byte_perm(w[5], w[7], 0x0073), 0x5410);
      } else {
        const uint32_t* const w = words + 4 * word;
        const uint32_t low = __byte_perm(w[0], w[1], 0x7351),
                       high = __byte_perm(w[2], w[3], 0x7351);
        even = __byte_perm(low, high, 0x5410);
        odd = __byte_perm(low, high, 0x7632);
      }
      out[word] = (even >> 4 & 0x08080808u) | (odd & 0x80808080u);
    }
  }

 private:
  // An instruction of the pipe that multiplies (HFMA2); a mask would be one of the busier other
  // one.
  static DUALGEMM_DEVICE uint32_t abs_of(uint32_t pair) {
    return kType == WideType::kBF16 ? ptx::abs_bf16x2(pair) : ptx::abs_f16x2(pair);
  }
  static DUALGEMM_DEVICE float half_of(uint32_t pair, int half) {
    if constexpr (kType == WideType::kBF16)
      return __uint_as_float(half == 0 ? pair << 16 : pair & 0xFFFF0000u);
    return __half2float(__ushort_as_half(static_cast<unsigned short>(pair >> (half * 16))));
  }
};

// A word of values with each NaN the quiet one without a sign, which the CPU writes, too.
template <WideType kType>
DUALGEMM_DEVICE uint32_t canonical(uint32_t word) {
  if constexpr (kType == WideType::kF32) {
    return (word & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : word;
  } else {
    constexpr uint32_t kInfinity = kType == WideType::kF16 ? 0x7C00u : 0x7F80u;
    constexpr uint32_t kNan = kType == WideType::kF16 ? 0x7E00u : 0x7FC0u;
    uint32_t low = word & 0xFFFFu, high = word >> 16;
    if ((low & 0x7FFFu) > kInfinity) low = kNan;
    if ((high & 0x7FFFu) > kInfinity) high = kNan;
    return low | high << 16;
  }
}

// Eight bytes of codes to any address. aligned: to 8.
DUALGEMM_DEVICE void store_codes(uint8_t* to, const uint32_t (&words)[2], bool aligned) {
  if (aligned) {
    *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
    return;
  }
  for (int i = 0; i < 8; ++i) to[i] = static_cast<uint8_t>(words[i / 4] >> (i % 4 * 8));
}
DUALGEMM_DEVICE void store_codes(uint8_t* to, const uint32_t (&words)[2]) {
  store_codes(to, words, reinterpret_cast<uintptr_t>(to) % 8 == 0);
}

}  // namespace dualgemm::cuda
