// A warp's weights of a chunk along k, from memory to a stage of its own, and from there, decoded,
// to registers.
//
// Lane 4r + q needs the 16-block q of row r of each unit's two halves: 8 rows of Gate and the same
// of Up, or rows r and r + 8 of one matrix. A stage of prepared weights has PackedUnits as they
// are, [lane][half]; else 512 bytes of codes a unit and then 64 of scales a unit, [half][lane].
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/decode.cuh"
#include "cuda/kernels/sm80/load_values.cuh"
#include "cuda/kernels/sm80/place.cuh"
#include "cuda/ptx/cp_async.cuh"

namespace dualgemm::cuda::sm80 {

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

// A warp's stages of weights, and what it copies to them, chunk by chunk.
template <Config kCfg>
class WeightRing {
  static constexpr int kUnits = loop_units_of(kCfg);

 public:
  // first: address of the warp's first stage. Copies will begin with `chunk`.
  DUALGEMM_DEVICE WeightRing(const Params& params, const Place& place, uint32_t chunk,
                             uint32_t first)
      : first_(first) {
    if constexpr (kCfg.prepared) {
      // Where tiles are wider than what prepared weights are filled up to, warps beyond the last
      // column have its units: what they multiply is no column of D.
      const uint32_t last = (params.n - 1) / kMmaRows * kMmaRows;
      const uint32_t col = fills_tiles(kCfg) ? place.col : min(place.col, last);
      from_ = params.packed.unit(place.batch, chunk, col / kUnitCols) + threadIdx.x % 32 * 16;
    }
  }

  DUALGEMM_DEVICE uint8_t* stage(uint32_t offset) const {
    return static_cast<uint8_t*>(__cvta_shared_to_generic(first_ + offset));
  }

  // Starts the copies of the next chunk, number `chunk`, in a group of their own. What lies at or
  // after n or k is zero, scales included: 0 * NaN would be NaN.
  DUALGEMM_DEVICE void copy(const Params& params, const Place& place, const OperandView& matrix,
                            uint32_t chunk, uint32_t offset) {
    if constexpr (kCfg.prepared) {
      copy_packed(params, offset);
    } else {
      copy_codes<kCfg>(params, place, matrix, chunk, stage(offset));
      copy_scales<kCfg>(params, place, matrix, chunk, stage(offset) + kUnits * kCodeBytes);
    }
  }

 private:
  // The warp's units lie one behind the other, codes and scales, in a stage as in memory.
  DUALGEMM_DEVICE void copy_packed(const Params& params, uint32_t offset) {
    constexpr uint32_t kBytes = kUnits * kUnitBytes, kAtOnce = 32 * 16, kRest = kBytes % kAtOnce;
    static_assert(weights_bytes_of(kCfg) == kBytes && kRest > 0);
    const uint32_t lane = threadIdx.x % 32, to = first_ + offset + lane * 16;
#pragma unroll
    for (uint32_t at = 0; at + kAtOnce <= kBytes; at += kAtOnce)
      ptx::cp_async_16(to + at, from_ + at);
    ptx::cp_async_16_if(lane < kRest / 16, to + kBytes - kRest, from_ + kBytes - kRest);
    from_ += params.packed.chunk_bytes;
  }

  uint32_t first_;
  const uint8_t* from_;  // where weights are prepared: what this lane copies next
};

// Eight neighbours along k of a lane's two rows of a unit: mma's a of two steps.
struct Decoded {
  uint32_t low[4], high[4];
};

// A lane's two scales of a unit of a stage, one for each half, as expand_scales() makes them.
template <Config kCfg>
DUALGEMM_DEVICE uint32_t load_scales(const uint8_t* stage, int unit) {
  constexpr bool kBf16 = kCfg.a_type == AType::kBF16;
  const uint32_t lane = threadIdx.x % 32;
  if constexpr (kCfg.prepared) {
    const uint8_t* const scales = stage + unit * kUnitBytes + kCodeBytes;
    const uint32_t two = reinterpret_cast<const uint16_t*>(scales)[lane];
    return expand_scales<kBf16>(__byte_perm(two, 0, 0x4140));
  } else {
    const uint8_t* const scales = stage + loop_units_of(kCfg) * kCodeBytes + unit * kScaleBytes;
    return expand_scales<kBf16>(__byte_perm(scales[lane], scales[32 + lane], 0x0400));
  }
}

// Word `word` of a unit of a stage.
template <Config kCfg>
DUALGEMM_DEVICE Decoded decode(const uint8_t* stage, int unit, int word, uint32_t scales) {
  constexpr bool kBf16 = kCfg.a_type == AType::kBF16;
  const uint32_t lane = threadIdx.x % 32;
  uint32_t low, high;
  if constexpr (kCfg.prepared) {
    const uint4 all = reinterpret_cast<const uint4*>(stage + unit * kUnitBytes)[lane];
    low = word == 0 ? all.x : all.y, high = word == 0 ? all.z : all.w;
  } else {
    const auto* const codes = reinterpret_cast<const uint2*>(stage + unit * kCodeBytes);
    const uint2 lows = codes[lane], highs = codes[32 + lane];
    low = word == 0 ? lows.x : lows.y, high = word == 0 ? highs.x : highs.y;
  }
  Decoded decoded;
  decode_word<kBf16, kCfg.prepared>(low, __byte_perm(scales, 0, 0x1010), decoded.low);
  decode_word<kBf16, kCfg.prepared>(high, __byte_perm(scales, 0, 0x3232), decoded.high);
  return decoded;
}

// One step of a word of weights and one of rows of A.
template <bool kBf16>
DUALGEMM_DEVICE void multiply_step(const Decoded& weights, const uint4& rows, int step,
                                   float (&sums)[4]) {
  const uint32_t a[4] = {weights.low[2 * step], weights.high[2 * step], weights.low[2 * step + 1],
                         weights.high[2 * step + 1]};
  const uint32_t b[2] = {step == 0 ? rows.x : rows.z, step == 0 ? rows.y : rows.w};
  ptx::mma_m16n8k16<kBf16>(sums, a, b);
}

}  // namespace dualgemm::cuda::sm80
