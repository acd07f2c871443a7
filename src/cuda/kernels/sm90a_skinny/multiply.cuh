// One k-tile of one warp. Part of dual_gemm.cuh.
#pragma once

#include "cuda/kernels/hopper/decode.cuh"
#include "cuda/ptx/global_load.cuh"
#include "cuda/ptx/mma_sync.cuh"

namespace dualgemm::cuda::sm90a_skinny {

// A thread's 32 neighbours along k of one row of A, as they come from memory. What lies at or after
// k is zero, scales included.
template <AType kType>
struct RawRow {
  uint4 halves[4];
};
template <>
struct RawRow<AType::kE2M1> {
  uint2 codes[2];
  uint32_t scales[2];
};

// Where a thread reads its row of A, lane / 4. In each half of a k-tile it takes the neighbours
// 32q .. 32q+31, q = lane % 4, as of the weights.
struct RowCursor {
  const uint8_t* data;    // at this thread's part of the warp's k-tile; null: no such row
  const uint8_t* scales;  // the same of the scales
};

// Where row `row` of a tile begins: its data, its scales (halves: null).
template <Config kCfg>
DUALGEMM_DEVICE RowCursor row_of_a(const Params& params, const Tiles<kCfg>& tiles, const Tile& tile,
                                   uint32_t row) {
  const PackedView& a = params.a;
  uint32_t of_a = tile.m_begin + row;
  uint32_t of_scales = (a.swizzled ? tile.padded_begin : tile.m_begin) + row;
  if constexpr (kCfg.grouped) {
    if (params.row_index.of_a != nullptr) of_a = of_scales = tiles.row_by_index(params, of_a);
  }
  const uint8_t* const data = a.codes + tile.batch * a.batch_bytes + of_a * a.row_bytes;
  if constexpr (kCfg.a_type != AType::kE2M1) return {data, nullptr};
  return {data, a.scales + tile.batch * a.scale_batch_bytes + scale_offset(a, of_scales)};
}

template <Config kCfg>
DUALGEMM_DEVICE RowCursor row_cursor(const Params& params, const Tiles<kCfg>& tiles,
                                     const Tile& tile, uint32_t k_tile) {
  const uint32_t row = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  if (row >= tile.rows) return {nullptr, nullptr};
  RowCursor cursor = row_of_a<kCfg>(params, tiles, tile, row);
  if constexpr (kCfg.a_type != AType::kE2M1) {
    cursor.data += k_tile * (2 * kTileK) + q * 64;
  } else {
    cursor.data += k_tile * kTileRowBytes + q * 16;
    cursor.scales += (k_tile * 4 + q / 2) * scale_step(params.a) + q % 2 * 2;
  }
  return cursor;
}

// Not as constant data (ld.global.nc): the grid before this one may have written it while this one
// was already there. Through L1: docs/kernels/sm90a_skinny.md, "Tried and lost".
template <AType kType>
DUALGEMM_DEVICE RawRow<kType> load_row(const Params& params, const RowCursor& cursor, bool valid,
                                       uint32_t half) {
  RawRow<kType> raw{};
  if (!valid) return raw;
  if constexpr (kType == AType::kE2M1) {
    const auto* const codes = reinterpret_cast<const uint2*>(cursor.data + half * 64);
    const uint8_t* const scales = cursor.scales + half * (2 * scale_step(params.a));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      raw.codes[i] = ptx::ld_global(codes + i);
      raw.scales[i] = ptx::ld_global(scales + i);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      raw.halves[i] = ptx::ld_global(reinterpret_cast<const uint4*>(cursor.data + half * 256) + i);
  }
  return raw;
}

// What a decoded number must be multiplied with: exact in the FP32 sum.
//   fp16: (c * 2^-14) * s            = c*s * 2^-14: a multiple of 2^-24, subnormals count
//   bf16: (c * 2^-126) * (s * 2^112) = c*s * 2^-14
inline constexpr float kDecodedUnit = 0x1p14f;

// Two neighbouring scales, ready for the multiplication: both halves alike. Their signs count for
// nothing.
template <bool kBf16>
DUALGEMM_DEVICE void expand_two(uint32_t bytes, uint32_t (&pairs)[2]) {
  const uint32_t two = ptx::abs_f16x2(ptx::cvt_f16x2_e4m3x2(static_cast<uint16_t>(bytes)));
  if constexpr (kBf16) {
    const float low = ptx::cvt_f32_f16(static_cast<uint16_t>(two)) * 0x1p112f;
    const float high = ptx::cvt_f32_f16(static_cast<uint16_t>(two >> 16)) * 0x1p112f;
    pairs[0] = ptx::cvt_bf16x2(low, low);
    pairs[1] = ptx::cvt_bf16x2(high, high);
  } else {
    pairs[0] = ptx::broadcast_low(two);
    pairs[1] = ptx::broadcast_high(two);
  }
}

// Eight codes of one row, decoded.
template <bool kBf16, bool kPrepared>
DUALGEMM_DEVICE void decode_word(const Params& params, uint32_t word, uint32_t scale,
                                 uint32_t (&pairs)[4]) {
  if constexpr (kPrepared) {
    place_packed_word<kBf16>(params.shifts, word, pairs);
  } else {
    // bf16 has no register left for products.
    place_word<kBf16>(kBf16 ? hopper::Shifts{} : params.shifts, word, pairs);
  }
#pragma unroll
  for (uint32_t& pair : pairs) pair = hopper::multiply<kBf16>(pair, scale);
}

// b operands of the k-tile's 8 steps: [step][half of k].
using Steps = uint32_t[8][2];

// Eight codes of a in two steps.
DUALGEMM_DEVICE void decode_steps(const Params& params, uint32_t word, uint32_t scale,
                                  uint32_t (*steps)[2]) {
  uint32_t pairs[4];
  decode_word<false, false>(params, word, scale, pairs);
#pragma unroll
  for (int j = 0; j < 4; ++j) steps[j / 2][j % 2] = pairs[j];
}

// Eight neighbours in two steps: i and i + 4 make a pair, as codes do.
DUALGEMM_DEVICE void pair_halves(const uint4& eight, uint32_t (*steps)[2]) {
  steps[0][0] = __byte_perm(eight.x, eight.z, 0x5410);
  steps[0][1] = __byte_perm(eight.x, eight.z, 0x7632);
  steps[1][0] = __byte_perm(eight.y, eight.w, 0x5410);
  steps[1][1] = __byte_perm(eight.y, eight.w, 0x7632);
}

template <AType kType>
DUALGEMM_DEVICE void decode_row(const Params& params, const RawRow<kType>& raw, Steps& steps) {
  if constexpr (kType == AType::kE2M1) {
    const uint32_t words[4] = {raw.codes[0].x, raw.codes[0].y, raw.codes[1].x, raw.codes[1].y};
    uint32_t scales[2];
    expand_two<false>(raw.scales[0] | raw.scales[1] << 8, scales);
#pragma unroll
    for (int i = 0; i < 4; ++i) decode_steps(params, words[i], scales[i / 2], &steps[2 * i]);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) pair_halves(raw.halves[i], &steps[2 * i]);
  }
}

// A warp's part of A, loaded ahead of its use, half a k-tile at a time.
template <Config kCfg>
struct Activations {
  static constexpr AType kType = kCfg.a_type;
  RowCursor row;
  uint32_t k;  // where this thread's part of the k-tile at `row` begins
  RawRow<kType> raw[2];

  // Reads nothing yet.
  DUALGEMM_DEVICE void find(const Params& params, const Tiles<kCfg>& tiles, const Tile& tile,
                            uint32_t warp) {
    row = row_cursor<kCfg>(params, tiles, tile, warp);
    k = row.data == nullptr ? params.k : warp * kTileK + threadIdx.x % 4 * 32;
  }
  DUALGEMM_DEVICE void load_both(const Params& params) { load(params, 0), load(params, 1); }

  DUALGEMM_DEVICE void load(const Params& params, int half) {
    raw[half] = load_row<kType>(params, row, k + half * 128 < params.k, half);
  }

  DUALGEMM_DEVICE void advance(const Params& params) {
    row.data += kWarps * (kType == AType::kE2M1 ? kTileRowBytes : 2 * kTileK);
    if constexpr (kType == AType::kE2M1) row.scales += kWarps * 4 * scale_step(params.a);
    k += kWarps * kTileK;
  }
};

// One lane's part of half a k-tile of one unit.
struct RawUnit {
  uint32_t words[2][4];   // Gate, Up: of row lane / 4
  uint32_t scales[2][2];  // expanded
};

template <bool kBf16>
DUALGEMM_DEVICE void load_unit(const UnitStorage& from, uint32_t half, RawUnit& unit) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint4 codes = from.codes[i][swizzled_chunk(lane / 4, half * 4 + lane % 4)];
    unit.words[i][0] = codes.x, unit.words[i][1] = codes.y;
    unit.words[i][2] = codes.z, unit.words[i][3] = codes.w;
    expand_two<kBf16>(
        reinterpret_cast<const uint16_t*>(from.scales[i])[lane / 4 * 8 + half * 4 + lane % 4],
        unit.scales[i]);
  }
}

// acc[group] += a word of Gate and one of Up, with each group of rows of A: two steps along k,
// `first` and the next of steps[group].
template <Config kCfg, size_t kSteps>
DUALGEMM_DEVICE void multiply_word(const Params& params, uint32_t gate, uint32_t up,
                                   uint32_t gate_scale, uint32_t up_scale,
                                   const uint32_t (*steps)[kSteps][2], int first, float (*acc)[4]) {
  constexpr bool kBf16 = kCfg.a_type == AType::kBF16;
  uint32_t gates[4], ups[4];
  decode_word<kBf16, kCfg.prepared>(params, gate, gate_scale, gates);
  decode_word<kBf16, kCfg.prepared>(params, up, up_scale, ups);
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const uint32_t pairs[4] = {gates[2 * j], ups[2 * j], gates[2 * j + 1], ups[2 * j + 1]};
#pragma unroll
    for (int group = 0; group < Budget<kCfg>::kGroups; ++group)
      ptx::mma_m16n8k16<kBf16>(acc[group], pairs, steps[group][first + j]);
  }
}

// acc += the products of one half of a k-tile of one unit.
template <Config kCfg>
DUALGEMM_DEVICE void multiply_half(const Params& params, const UnitStorage& from, uint32_t half,
                                   const Steps& steps, float (&acc)[4]) {
  RawUnit raw;
  load_unit<kCfg.a_type == AType::kBF16>(from, half, raw);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    multiply_word<kCfg>(params, raw.words[0][i], raw.words[1][i], raw.scales[0][i / 2],
                        raw.scales[1][i / 2], &steps, 2 * i, &acc);
  }
}

// acc += the products of a k-tile, of the units from kUnit on, each as soon as it has come.
// Then the copies of the second one after it are asked for. The next k-tile's part of A is loaded
// as soon as this one's has been used.
template <Config kCfg, int kUnit = 0>
DUALGEMM_DEVICE void multiply_k_tile(const Params& params, UnitStorage (&units)[kCfg.units],
                                     Activations<kCfg>& a, Steps (&steps)[2],
                                     Accumulators<kCfg>& acc, WeightCopier<kCfg>& ahead) {
  constexpr bool kLast = kUnit + 1 == kCfg.units;
  if constexpr (kUnit == 0) decode_row<kCfg.a_type>(params, a.raw[0], steps[0]);
  ptx::cp_async_wait_group<kUnitsAhead - 1>();
  __syncwarp();  // what other lanes have copied
  if constexpr (kLast) a.advance(params);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (kUnit == 0 && half == 1) decode_row<kCfg.a_type>(params, a.raw[1], steps[1]);
    multiply_half<kCfg>(params, units[kUnit], half, steps[half], acc[kUnit]);
    if constexpr (kLast) a.load(params, half);
    __syncwarp();  // the loads have branches, mma needs the whole warp; all have used their words
  }
  constexpr int kNext = (kUnit + kUnitsAhead) % kCfg.units;
  ahead.copy_unit(params, units[kNext], kNext);
  if constexpr (!kLast) multiply_k_tile<kCfg, kUnit + 1>(params, units, a, steps, acc, ahead);
}

// What a warp does, with weights as NVFP4 has them.
template <Config kCfg>
class CopyingWarp {
 public:
  // Makes addresses; reads nothing.
  DUALGEMM_DEVICE CopyingWarp(const Params& params, SharedStorage<kCfg>& smem, uint32_t warp,
                              const Tiles<kCfg>& tiles)
      : storage_(smem.rings[warp]), warp_(warp), ahead_(params, warp, tiles) {
    a_.find(params, tiles, tiles.locate(params, blockIdx.x), warp);
  }

  // The first loads. A before the weights, which would hold it up.
  DUALGEMM_DEVICE void begin(const Params& params) {
    a_.load_both(params);
#pragma unroll
    for (int i = 0; i < kUnitsAhead; ++i)
      ahead_.copy_unit(params, storage_.units[i / kCfg.units][i % kCfg.units], i % kCfg.units);
  }

  // acc += this warp's part of a tile's sums. Tiles come in the order of the CTA.
  DUALGEMM_DEVICE void multiply_tile(const Params& params, const Tile& tile, uint32_t, bool first,
                                     Accumulators<kCfg>& acc) {
    if (!first) {
      a_.find(params, ahead_.tiles(), tile, warp_);
      a_.load_both(params);
    }
#pragma unroll 1
    for (uint32_t k_tile = warp_; k_tile < params.k_tiles; k_tile += kWarps) {
      Steps steps[2];
      multiply_k_tile<kCfg>(params, storage_.units[stage_], a_, steps, acc, ahead_);
      if (++stage_ == Budget<kCfg>::kStages) stage_ = 0;
    }
  }

 private:
  RingStorage<kCfg>& storage_;
  uint32_t warp_, stage_ = 0;
  WeightCopier<kCfg> ahead_;
  Activations<kCfg> a_;
};

}  // namespace dualgemm::cuda::sm90a_skinny
