// A warp's weights of a chunk along k, from memory to its part of a stage.
//
// Lane 4r + q needs the 16-block q of row r of each unit's two halves: 8 rows of Gate and the same
// of Up, or rows r and r + 8 of one matrix. In a stage stand 512 bytes of codes a unit and
// then 64 of scales a unit: of prepared weights [lane][half], else [half][lane].
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/place.cuh"
#include "cuda/ptx/cp_async.cuh"

namespace dualgemm::cuda::sm80 {

// Eight bytes from anywhere.
DUALGEMM_DEVICE uint2 load_8_bytes(const uint8_t* from) {
  if (reinterpret_cast<uintptr_t>(from) % 8 == 0) return *reinterpret_cast<const uint2*>(from);
  uint32_t words[2] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) words[i / 4] |= static_cast<uint32_t>(from[i]) << (8 * (i % 4));
  return make_uint2(words[0], words[1]);
}

// Which matrix and row half `half` of unit `unit` has in this lane. matrix: of passes that multiply
// one of them.
struct WeightRow {
  const OperandView& view;
  uint32_t row;
};
template <Config kCfg>
DUALGEMM_DEVICE WeightRow weight_row(const Params& params, const OperandView& matrix,
                                     uint32_t first_col, int unit, int half, uint32_t row) {
  if constexpr (kCfg.pass == Pass::kFused) {
    return {half == 0 ? params.gate : params.up, first_col + unit * kHalfCols + row};
  } else {
    return {matrix, first_col + unit * kMmaRows + half * kHalfCols + row};
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void copy_packed(const Params& params, const Place& place, uint32_t chunk,
                                 uint8_t* to) {
  constexpr int kUnits = loop_units_of(kCfg);
  const uint32_t lane = threadIdx.x % 32;
  const uint8_t* const from = params.packed.unit(place.batch, chunk, place.col / kUnitCols);
#pragma unroll
  for (int unit = 0; unit < kUnits; ++unit) {
    ptx::cp_async_16(to + unit * kCodeBytes + lane * 16, from + unit * kUnitBytes + lane * 16, 16);
  }
  if (lane < kUnits * 4) {
    ptx::cp_async_16(to + kUnits * kCodeBytes + lane * 16,
                     from + lane / 4 * kUnitBytes + kCodeBytes + lane % 4 * 16, 16);
  }
}

template <Config kCfg>
DUALGEMM_DEVICE void copy_codes(const Params& params, const Place& place, const OperandView& matrix,
                                uint32_t chunk, uint8_t* to) {
  const uint32_t lane = threadIdx.x % 32, k16 = chunk * kChunkK16 + place.quarter;
  if (params.weights_aligned == 16) {
    const uint32_t first = chunk * kChunkK16 + lane % 2 * 2;
    const uint32_t bytes = first < params.k16 ? min(params.k16 - first, 2u) * 8 : 0;
#pragma unroll
    for (int unit = 0; unit < loop_units_of(kCfg); ++unit) {
      const WeightRow at =
          weight_row<kCfg>(params, matrix, place.col, unit, lane / 16, lane % 16 / 2);
      const bool exists = at.row < params.n && bytes > 0;
      const uint8_t* const from = at.view.rows + place.batch * at.view.batch_bytes +
                                  static_cast<int64_t>(at.row) * at.view.row_bytes + first * 8;
      ptx::cp_async_16(to + unit * kCodeBytes + lane * 16, exists ? from : at.view.rows,
                       exists ? bytes : 0);
    }
    return;
  }
#pragma unroll 1
  for (int unit = 0; unit < loop_units_of(kCfg); ++unit) {
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      const WeightRow at = weight_row<kCfg>(params, matrix, place.col, unit, half, place.row);
      const bool exists = at.row < params.n && k16 < params.k16;
      const uint8_t* const from = at.view.rows + place.batch * at.view.batch_bytes +
                                  static_cast<int64_t>(at.row) * at.view.row_bytes + k16 * 8;
      uint8_t* const place_of_lane = to + unit * kCodeBytes + half * 256 + lane * 8;
      if (params.weights_aligned == 8) {
        ptx::cp_async_8(place_of_lane, exists ? from : at.view.rows, exists ? 8 : 0);
      } else {
        *reinterpret_cast<uint2*>(place_of_lane) = exists ? load_8_bytes(from) : make_uint2(0, 0);
      }
    }
  }
}

// Four scales of a row of a half of a unit for each lane and turn.
template <Config kCfg>
DUALGEMM_DEVICE void copy_scales(const Params& params, const Place& place,
                                 const OperandView& matrix, uint32_t chunk, uint8_t* to) {
  constexpr int kWords = loop_units_of(kCfg) * 2 * kHalfCols;
  const uint32_t k16 = chunk * kChunkK16;
  const uint32_t left = min(params.k16 - k16, static_cast<uint32_t>(kChunkK16));
#pragma unroll
  for (int turn = 0; turn < kWords / 32; ++turn) {
    const uint32_t word = threadIdx.x % 32 + turn * 32;
    const WeightRow at =
        weight_row<kCfg>(params, matrix, place.col, word / 16, word / 8 % 2, word % 8);
    const uint32_t count = at.row < params.n ? left : 0;
    const ScaleView& view = at.view.scales;
    const uint8_t* const from = view.row(place.batch, count > 0 ? at.row : 0) + view.place(k16);
    if (params.scales_aligned) {
      ptx::cp_async_4(to + word * 4, from, count);
    } else {
      uint32_t four = 0;
#pragma unroll 1
      for (uint32_t i = 0; i < kChunkK16; ++i)
        if (i < count) four |= static_cast<uint32_t>(from[i]) << (8 * i);
      *reinterpret_cast<uint32_t*>(to + word * 4) = four;
    }
  }
}

// Starts the copies; what lies at or after n or k is zero, scales included: 0 * NaN would be NaN.
template <Config kCfg>
DUALGEMM_DEVICE void copy_weights(const Params& params, const Place& place,
                                  const OperandView& matrix, uint32_t chunk, uint8_t* to) {
  if constexpr (kCfg.prepared) {
    copy_packed<kCfg>(params, place, chunk, to);
  } else {
    copy_codes<kCfg>(params, place, matrix, chunk, to);
    copy_scales<kCfg>(params, place, matrix, chunk, to + loop_units_of(kCfg) * kCodeBytes);
  }
}

}  // namespace dualgemm::cuda::sm80
