// A warp's weights of a chunk along k, from memory to a stage of its own, and from there, decoded,
// to registers.
//
// Lane 4r + q needs the 16-block q of row r of each unit's two halves: 8 rows of Gate and the same
// of Up, or rows r and r + 8 of one matrix. A stage of prepared weights has PackedUnits as they
// are, [lane][half]; else 512 bytes of codes a unit and then 64 of scales a unit, [half][lane].
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/kernels/sm80/decode.cuh"
#include "cuda/kernels/sm80/load_values.cuh"
#include "cuda/kernels/sm80/place.cuh"
#include "cuda/ptx/cp_async.cuh"

namespace dualgemm::cuda::sm80 {

// The row that half `half` of unit `unit` has in lanes that have row `row` of eight. Rows at or
// after n are the last one, whose products are no columns of D there. matrix: of kSequential.
struct WeightRow {
  const OperandView& view;
  uint32_t row;
};
template <Config kCfg>
DUALGEMM_DEVICE WeightRow weight_row(const Params& params, const Place& place,
                                     const OperandView& matrix, uint32_t unit, uint32_t half,
                                     uint32_t row) {
  if constexpr (kCfg.pass == Pass::kSequential) {
    return {matrix, min(place.col + unit * kMmaRows + half * kHalfCols + row, params.n - 1)};
  } else {
    const uint32_t behind = half == 0 ? 0 : params.unit_cols - kHalfCols;
    return {half == 0 ? params.gate : params.up,
            min(place.col + unit * params.unit_cols + behind + row, params.n - 1)};
  }
}

// Where a lane finds what it copies of a chunk of weights as they lie: 16 bytes of a row of each
// unit, and words of four scales. What lies at or after k is zero, scales included: 0 * NaN would
// be NaN.
template <Config kCfg>
class RowCursor {
  static constexpr int kUnits = loop_units_of(kCfg);
  static constexpr int kScaleWords = kUnits * 2 * kHalfCols / 32;  // of this lane

 public:
  // matrix: of kSequential.
  DUALGEMM_DEVICE RowCursor(const Params& params, const Place& place, const OperandView& matrix,
                            uint32_t chunk) {
    const uint32_t lane = threadIdx.x % 32;
    const WeightRow at = weight_row<kCfg>(params, place, matrix, 0, lane / 16, lane % 16 / 2);
    const uint32_t after = params.n - 1 - at.row;
    last_unit_ =
        min(unit_cols(params) == kMmaRows ? after / kMmaRows : after / kHalfCols, kUnits - 1u);
    codes_ = at.view.row(place.batch, at.row) + (chunk * kChunkK16 + lane % 2 * 2) * 8;
    row_bytes_ = static_cast<uint32_t>(at.view.row_bytes);
#pragma unroll
    for (int i = 0; i < kScaleWords; ++i) {
      const uint32_t word = lane + i * 32;
      const WeightRow of_word =
          weight_row<kCfg>(params, place, matrix, word / 16, word / 8 % 2, word % 8);
      scales_[i] = of_word.view.scales.row(place.batch, of_word.row) +
                   of_word.view.scales.place(chunk * kChunkK16);
    }
  }

  // Starts the copies of the chunk, number `chunk`, to shared memory.
  DUALGEMM_DEVICE void copy(const Params& params, uint32_t chunk, uint32_t to) const {
    const uint32_t left = params.k16 - chunk * kChunkK16;
    const uint32_t lane = threadIdx.x % 32, first = lane % 2 * 2;
    const uint32_t bytes = first < left ? min(left - first, 2u) * 8 : 0;
    const uint32_t to_codes = to + lane * 16;
    if (params.weights_aligned == 16) {
#pragma unroll
      for (int unit = 0; unit < kUnits; ++unit)
        ptx::cp_async_16(to_codes + unit * kCodeBytes, codes_of_unit(params, unit), bytes);
    } else {
#pragma unroll 1
      for (uint32_t unit = 0; unit < kUnits; ++unit)
        copy_rarely(params, to_codes + unit * kCodeBytes, codes_of_unit(params, unit), bytes);
    }
    const uint32_t count = min(left, static_cast<uint32_t>(kChunkK16));
#pragma unroll
    for (int i = 0; i < kScaleWords; ++i) {
      const uint32_t to_word = to + kUnits * kCodeBytes + (lane + i * 32) * 4;
      if (params.scales_aligned) {
        ptx::cp_async_4(to_word, scales_[i], count);
      } else {
        uint32_t four = 0;
#pragma unroll 1
        for (uint32_t j = count; j > 0; --j) four = four << 8 | scales_[i][j - 1];
        *static_cast<uint32_t*>(__cvta_shared_to_generic(to_word)) = four;
      }
    }
  }

  // On to the next chunk.
  DUALGEMM_DEVICE void advance(const Params& params, const OperandView& matrix) {
    codes_ += kChunkK16 * 8;
    const OperandView& of_words = kCfg.pass == Pass::kSequential     ? matrix
                                  : threadIdx.x / kHalfCols % 2 == 0 ? params.gate
                                                                     : params.up;
#pragma unroll
    for (int i = 0; i < kScaleWords; ++i) scales_[i] += of_words.scales.place(kChunkK16);
  }

 private:
  DUALGEMM_DEVICE static uint32_t unit_cols(const Params& params) {
    return kCfg.pass == Pass::kSequential ? uint32_t{kMmaRows} : params.unit_cols;
  }
  DUALGEMM_DEVICE const uint8_t* codes_of_unit(const Params& params, uint32_t unit) const {
    return codes_ + uint64_t{min(unit, last_unit_) * unit_cols(params)} * row_bytes_;
  }
  // 16 bytes of codes, those from `bytes` on zero, at an address that does not suit so many.
  DUALGEMM_DEVICE static void copy_rarely(const Params& params, uint32_t to, const uint8_t* from,
                                          uint32_t bytes) {
#pragma unroll 1
    for (uint32_t at = 0; at < 16; at += 8) {
      const bool exists = at < bytes;
      if (params.weights_aligned == 8) {
        ptx::cp_async_8(to + at, from + at, exists ? 8 : 0);
      } else {
        *static_cast<uint2*>(__cvta_shared_to_generic(to + at)) =
            exists ? load_8_bytes(from + at) : make_uint2(0, 0);
      }
    }
  }

  const uint8_t* codes_;  // of unit 0; rows lie row_bytes_ apart
  uint32_t row_bytes_;
  uint32_t last_unit_;  // with a row of its own
  const uint8_t* scales_[kScaleWords];
};

// Where a warp's stages are.
class WarpStages {
 public:
  // first: the address of its first stage.
  DUALGEMM_DEVICE explicit WarpStages(uint32_t first) : first_(first) {}

  DUALGEMM_DEVICE uint8_t* stage(uint32_t offset) const {
    return static_cast<uint8_t*>(__cvta_shared_to_generic(first_ + offset));
  }

 protected:
  uint32_t first_;
};

// A warp's ring of stages, and what it copies to them, chunk by chunk: weights as they lie.
template <Config kCfg>
class RowRing : public WarpStages {
 public:
  // Copies will begin with `chunk`. matrix: of
  // kSequential.
  DUALGEMM_DEVICE RowRing(const Params& params, const Place& place, const OperandView& matrix,
                          uint32_t chunk, uint32_t first)
      : WarpStages(first), next_(params, place, matrix, chunk) {}

  // Starts the copies of the next chunk, number `chunk`.
  DUALGEMM_DEVICE void copy(const Params& params, const Place& place, const OperandView& matrix,
                            uint32_t chunk, uint32_t offset) {
    if constexpr (keeps_cursor(kCfg)) {
      next_.copy(params, chunk, first_ + offset);
      next_.advance(params, matrix);
    } else {
      RowCursor<kCfg>(params, place, matrix, chunk).copy(params, chunk, first_ + offset);
    }
  }

 private:
  RowCursor<kCfg> next_;
};

// Prepared weights, likewise.
template <Config kCfg>
class PackedRing : public WarpStages {
  static constexpr int kUnits = loop_units_of(kCfg);

 public:
  DUALGEMM_DEVICE PackedRing(const Params& params, const Place& place, const OperandView&,
                             uint32_t chunk, uint32_t first)
      : WarpStages(first) {
    // Where tiles are wider than what prepared weights are filled up to, warps beyond the last
    // column have its units: what they multiply is no column of D.
    const uint32_t last = (params.n - 1) / kMmaRows * kMmaRows;
    const uint32_t col = fills_tiles(kCfg) ? place.col : min(place.col, last);
    // The lane anew: else the compiler keeps its place for the other types' loops, and spills it.
    from_ = params.packed.unit(place.batch, chunk, col / kUnitCols) +
            ptx::thread_index_anew() % 32 * 16;
  }

  // The warp's units lie one behind the other, codes and scales, in a stage as in memory.
  DUALGEMM_DEVICE void copy(const Params& params, const Place&, const OperandView&, uint32_t,
                            uint32_t offset) {
    constexpr uint32_t kBytes = kUnits * kUnitBytes, kAtOnce = 32 * 16, kRest = kBytes % kAtOnce;
    static_assert(weights_bytes_of(kCfg) == kBytes && kRest > 0);
    const uint32_t thread = lacks_registers(kCfg) ? ptx::thread_index_anew() : threadIdx.x;
    const uint32_t lane = thread % 32, to = first_ + offset + lane * 16;
#pragma unroll
    for (uint32_t at = 0; at + kAtOnce <= kBytes; at += kAtOnce)
      ptx::cp_async_16(to + at, from_ + at);
    ptx::cp_async_16_if(lane < kRest / 16, to + kBytes - kRest, from_ + kBytes - kRest);
    from_ += params.packed.chunk_bytes;
  }

 private:
  const uint8_t* from_;  // what this lane copies next
};

template <Config kCfg>
using WeightRing = std::conditional_t<kCfg.prepared, PackedRing<kCfg>, RowRing<kCfg>>;

// Eight neighbours along k of a lane's two rows of a unit: mma's a of two steps.
struct Decoded {
  uint32_t low[4], high[4];
};

// A lane's two scales of a unit of a stage, one for each half, as expand_scales() makes them.
template <Config kCfg, bool kBf16>
DUALGEMM_DEVICE uint32_t load_scales(const uint8_t* stage, int unit) {
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
template <Config kCfg, bool kBf16>
DUALGEMM_DEVICE Decoded decode(const uint8_t* stage, int unit, int word, uint32_t scales) {
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
