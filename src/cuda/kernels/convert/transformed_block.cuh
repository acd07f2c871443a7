// A block of 16 times factors of its columns, then times a Hadamard matrix, with the blocks that
// the neighbouring lanes hold. The bits are those of core/row_transform.cpp.
#pragma once

#include "cuda/device/store_row.cuh"
#include "cuda/kernels/convert/wide_block.cuh"

namespace dualgemm::cuda {

DUALGEMM_DEVICE void load_factors(const float* from, float (&factors)[kBlock]) {
  if (reinterpret_cast<uintptr_t>(from) % 16 != 0) {
#pragma unroll
    for (int i = 0; i < kBlock; ++i) factors[i] = from[i];
    return;
  }
#pragma unroll
  for (int i = 0; i < kBlock; i += 4) {
    const float4 four = reinterpret_cast<const float4*>(from)[i / 4];
    factors[i] = four.x, factors[i + 1] = four.y, factors[i + 2] = four.z, factors[i + 3] = four.w;
  }
}

// By all lanes of a warp: lane i holds block i of 32 that begin at a multiple of 32. `exists`: the
// row has the block; what the others hold does not matter.
template <WideType kType>
DUALGEMM_DEVICE void transform_block(const TransformedParams& p, uint32_t block, bool exists,
                                     WideBlock<kType>& raw) {
  float x[kBlock];
  if (p.column_factors != nullptr && exists) {
    float factors[kBlock];
    load_factors(p.column_factors + static_cast<int64_t>(block) * kBlock, factors);
    raw.values(x);
#pragma unroll
    for (int i = 0; i < kBlock; ++i) x[i] = __fmul_rn(x[i], factors[i]);
    pack_words<kType>(x, raw.words);
  }
  if (p.hadamard == 0) return;
  raw.values(x);
#pragma unroll
  for (int apart = 1; apart < kBlock; apart *= 2) {
#pragma unroll
    for (int i = 0; i < kBlock; ++i) {
      if (i & apart) continue;
      const float low = x[i], high = x[i + apart];
      x[i] = low + high;
      x[i + apart] = low - high;
    }
  }
  for (uint32_t lanes = 1; lanes < p.hadamard / kBlock; lanes *= 2) {
    const bool is_high = (threadIdx.x & lanes) != 0;
#pragma unroll
    for (int i = 0; i < kBlock; ++i) {
      const float other = __shfl_xor_sync(0xFFFFFFFFu, x[i], static_cast<int>(lanes));
      x[i] = is_high ? other - x[i] : x[i] + other;
    }
  }
#pragma unroll
  for (int i = 0; i < kBlock; ++i) x[i] = __fmul_rn(x[i], p.factor);
  pack_words<kType>(x, raw.words);
}

}  // namespace dualgemm::cuda
