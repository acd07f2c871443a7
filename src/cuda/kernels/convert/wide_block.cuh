// Sixteen neighbouring values of x as they lie in memory, and as FP32 with their signs apart.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/kernels/common/encode.cuh"
#include "cuda/kernels/convert/quantize_params.hpp"

namespace dualgemm::cuda {

template <WideType kType>
struct WideBlock {
  static constexpr int kWords = kBlock * bytes_of(kType) / 4;
  static constexpr int kBytes = kBlock * bytes_of(kType);
  uint32_t words[kWords];

  // From an address that suits an element.
  DUALGEMM_DEVICE void load(const uint8_t* from) {
    if (reinterpret_cast<uintptr_t>(from) % 16 == 0) {
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
      } else if constexpr (kType == WideType::kBF16) {
        out[i] = __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xFFFF0000u);
      } else {
        const auto bits = static_cast<unsigned short>(words[i / 2] >> (i % 2 * 16));
        out[i] = __half2float(__ushort_as_half(bits));
      }
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
};

// Eight bytes of codes to any address.
DUALGEMM_DEVICE void store_codes(uint8_t* to, const uint32_t (&words)[2]) {
  if (reinterpret_cast<uintptr_t>(to) % 8 == 0) {
    *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
    return;
  }
  for (int i = 0; i < 8; ++i) to[i] = static_cast<uint8_t>(words[i / 4] >> (i % 4 * 8));
}

}  // namespace dualgemm::cuda
