// A tile's weights of a chunk along k, decoded once for all warps that multiply them: from memory
// to registers, a chunk ahead of the decoding, and from there to shared memory as mma wants them.
// Each producer has some units of the tile: lane 4r + q the 16-block q of row r of both halves.
//
// Decoded, a row of weights is 128 bytes: pieces of eight neighbours along k in the order that A's
// rows have in their stage, at the places of piece_place().
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/load_a.cuh"
#include "cuda/kernels/sm80/load_weights.cuh"

namespace dualgemm::cuda::sm80 {

// Units that a producer decodes.
template <Config kCfg>
inline constexpr int kOwnUnits = kCfg.warps_n* loop_units_of(kCfg) / kCfg.producers;

struct RawUnit {
  uint32_t codes[2][2];  // [half][word of eight neighbours]
  uint32_t scales[2];    // as loaded: prepared, both in the first
};

// What lies at or after n or k is zero. Nothing that is loaded is used here, which would wait for
// it.
template <Config kCfg>
DUALGEMM_DEVICE void load_unit(const Params& params, const Place& place, const OperandView& matrix,
                               uint32_t chunk, uint32_t unit, RawUnit& raw) {
  if constexpr (kCfg.prepared) {
    const uint32_t lane = threadIdx.x % 32;
    const uint8_t* const from =
        params.packed.unit(place.batch, chunk, place.tile_col / kUnitCols) + unit * kUnitBytes;
    const uint4 codes = reinterpret_cast<const uint4*>(from)[lane];
    raw.codes[0][0] = codes.x, raw.codes[0][1] = codes.y;
    raw.codes[1][0] = codes.z, raw.codes[1][1] = codes.w;
    raw.scales[0] = reinterpret_cast<const uint16_t*>(from + kCodeBytes)[lane];
  } else {
    const uint32_t k16 = chunk * kChunkK16 + place.quarter;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      raw.codes[half][0] = raw.codes[half][1] = raw.scales[half] = 0;
      const WeightRow at = weight_row<kCfg>(params, matrix, place.tile_col, unit, half, place.row);
      if (at.row >= params.n || k16 >= params.k16) continue;
      const uint8_t* const from = at.view.rows + place.batch * at.view.batch_bytes +
                                  static_cast<int64_t>(at.row) * at.view.row_bytes + k16 * 8;
      const uint2 codes =
          params.weights_aligned >= 8 ? *reinterpret_cast<const uint2*>(from) : load_8_bytes(from);
      raw.codes[half][0] = codes.x, raw.codes[half][1] = codes.y;
      raw.scales[half] = at.view.scales.row(place.batch, at.row)[at.view.scales.place(k16)];
    }
  }
}

// Eight neighbours along k as they stand in a stage of A: halves in their own order, decoded codes
// in that of pairs.
template <Config kCfg>
DUALGEMM_DEVICE uint4 in_order_of_a(const uint32_t (&pairs)[4]) {
  if constexpr (kCfg.a_type == AType::kE2M1) {
    return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  } else {
    return make_uint4(
        __byte_perm(pairs[0], pairs[1], 0x5410), __byte_perm(pairs[2], pairs[3], 0x5410),
        __byte_perm(pairs[0], pairs[1], 0x7632), __byte_perm(pairs[2], pairs[3], 0x7632));
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void store_unit(const Place& place, const RawUnit& raw, uint32_t unit,
                                uint8_t* decoded) {
  constexpr bool kBf16 = kCfg.a_type == AType::kBF16;
  uint32_t scales[2];
  const uint32_t first = raw.scales[0];
  expand_scales<kBf16>(kCfg.prepared ? first & 0xFF : first,
                       kCfg.prepared ? first >> 8 : raw.scales[1], scales[0], scales[1]);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t row = unit * kMmaRows + half * kHalfCols + place.row;
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      uint32_t pairs[4];
      decode_word<kBf16, kCfg.prepared>(raw.codes[half][word], scales[half], pairs);
      *reinterpret_cast<uint4*>(decoded + piece_place(row, 2 * place.quarter + word)) =
          in_order_of_a<kCfg>(pairs);
    }
  }
}

}  // namespace dualgemm::cuda::sm80
