// Rows of A of tiles with few rows, from memory to the registers of the lane that multiplies them:
// lane 4r + q has the 16-block q of row r of each group of 8, in two words of eight numbers.
//
// The warps of a CTA need different parts of k, so nothing is won by shared memory. Through it, by
// cp.async in one ring with the weights, A of 8 rows took 6 us of 24 at (4096, 7168) on an H200.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/kernels/sm80/decode.cuh"
#include "cuda/kernels/sm80/load_values.cuh"
#include "cuda/kernels/sm80/place.cuh"
#include "cuda/ptx/global_load.cuh"

namespace dualgemm::cuda::sm80 {

// kPlain: Params::a_plain. With branches for other A in the loop over k, never taken, 16 and 32
// rows took 9 to 16 % longer (H200).
template <Config kCfg, AType kType, bool kPlain>
class LaneRows {
  static constexpr bool kDecodes = kType == AType::kE2M1;
  using Word = std::conditional_t<kDecodes, uint32_t, uint4>;
  static constexpr uint32_t kWordBytes = word_bytes_of(kType);
  static_assert(kWordBytes == sizeof(Word));

 public:
  // Nothing is loaded yet.
  DUALGEMM_DEVICE LaneRows(const Params& params, const Place& place) {
#pragma unroll
    for (int group = 0; group < kCfg.groups; ++group) {
      const RowOfA at =
          row_of_a<kDecodes>(params, place, place.m_begin + group * kGroupRows + place.row);
      if constexpr (kPlain) {
        rows_[group] =
            static_cast<uint32_t>((at.row - params.a.rows) / kWordBytes) + 2 * place.quarter;
      } else {
        rows_[group] = at.row;
      }
      if constexpr (kDecodes) scales_[group] = at.scales + (kPlain ? place.quarter : 0);
    }
  }

  // Asks for a word of a chunk, for take(): what lies at or after k is zero, or the last chunk once
  // more, which nothing takes. chunk: the same in all lanes.
  DUALGEMM_DEVICE void load(const Params& params, const Place& place, uint32_t chunk, int word) {
    if constexpr (kPlain) {
      chunk = min(chunk, params.k16 / kChunkK16 - 1);
#pragma unroll
      for (int group = 0; group < kCfg.groups; ++group) {
        raw_[group][word] = ptx::ld_global(reinterpret_cast<const Word*>(params.a.rows) +
                                           (rows_[group] + (chunk * 2 * kChunkK16 + word)));
      }
      if (word == 0) ask_for_scales(params.a.scales.place(chunk * kChunkK16));
    } else {
      const uint32_t block = chunk * kChunkK16 + place.quarter, at = 2 * block + word;
      if (params.a_aligned && (chunk + 1) * kChunkK16 <= params.k16) {
#pragma unroll
        for (int group = 0; group < kCfg.groups; ++group)
          raw_[group][word] = *reinterpret_cast<const Word*>(rows_[group] + at * kWordBytes);
      } else {
#pragma unroll
        for (int group = 0; group < kCfg.groups; ++group)
          load_rarely(raw_[group][word], rows_[group], at * kWordBytes, block < params.k16);
      }
      if (word == 0) ask_for_scales(params.a.scales.place(min(block, params.k16 - 1)));
    }
  }

  // A word of a group, first word 0, in pairs: mma's b of two steps.
  DUALGEMM_DEVICE uint4 take(int group, int word) {
    if constexpr (kDecodes) {
      if (word == 0) expanded_[group] = expand_scales<false>(raw_scales_[group] * 0x10001u);
      return decode_word_of_a(raw_[group][word], expanded_[group]);
    } else {
      return in_order_of_pairs(raw_[group][word]);
    }
  }

 private:
  static constexpr int kScales = kDecodes ? kCfg.groups : 1;

  DUALGEMM_DEVICE void ask_for_scales(uint32_t at) {
    if constexpr (kDecodes) {
#pragma unroll
      for (int group = 0; group < kCfg.groups; ++group) raw_scales_[group] = scales_[group][at];
    }
  }

  // Where rows begin; kPlain: where this lane's words of them do, in words from A's first one on.
  std::conditional_t<kPlain, uint32_t, const uint8_t*> rows_[kCfg.groups];
  const uint8_t* scales_[kScales];
  Word raw_[kCfg.groups][2];
  uint32_t raw_scales_[kScales];
  uint32_t expanded_[kScales];  // of the word 0 that was taken last
};

}  // namespace dualgemm::cuda::sm80
