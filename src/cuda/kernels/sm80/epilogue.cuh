// What is particular to this kernel's way from complete sums to D, or to R1; the rest is
// common/finish_pairs.cuh.
#pragma once

#include <cstdint>

#include "cuda/kernels/common/finish_pairs.cuh"
#include "cuda/kernels/sm80/decode.cuh"
#include "cuda/kernels/sm80/place.cuh"

namespace dualgemm::cuda::sm80 {

// What a sum of decoded numbers must be multiplied with.
template <Config kCfg>
inline constexpr float kSumUnit = kDecodedUnit<kCfg.a_type == AType::kBF16>*(
    kCfg.a_type == AType::kE2M1 ? kDecodedUnit<false> : 1.0f);

// Where the product of a row with Gate's row `col` lies; null: nowhere.
DUALGEMM_DEVICE float* r1_at(const Params& params, const Place& place, uint32_t group, uint32_t col,
                             int i) {
  const uint32_t row = output_row(place, group, i);
  if (row >= place.m_end || col >= params.n) return nullptr;
  return params.r1 + (static_cast<int64_t>(place.batch) * params.m + row) * params.r1_ld + col;
}

DUALGEMM_DEVICE void store_r1(const Params& params, const Place& place, uint32_t group,
                              uint32_t col, const float (&g)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float* const to = r1_at(params, place, group, col, i);
    if (to != nullptr) *to = g[i];
  }
}

DUALGEMM_DEVICE void load_r1(const Params& params, const Place& place, uint32_t group, uint32_t col,
                             float (&g)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float* const from = r1_at(params, place, group, col, i);
    g[i] = from == nullptr ? 0.0f : *from;
  }
}

}  // namespace dualgemm::cuda::sm80
