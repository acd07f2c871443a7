// D as NVFP4: a kernel's outputs, in FP32 and in registers, to codes and scales in memory, with the
// bits of core/quantize_block.hpp. Params: a kernel's, set by set_epilogue().
#pragma once

#include <cstdint>

#include "cuda/device/combine.cuh"
#include "cuda/device/nvfp4_output.hpp"
#include "cuda/device/scale_offset.cuh"
#include "cuda/kernels/common/encode.cuh"

namespace dualgemm::cuda {

// Where the tensor cores leave sums, lane 4r + q has column r of eight: these eight lanes have
// something of one row. By whole warps.
DUALGEMM_DEVICE uint32_t column_of_lane() { return threadIdx.x % 32 / 4; }

// The magnitudes' bits: they order as the magnitudes do, and NaN lies above infinity.
DUALGEMM_DEVICE uint32_t magnitude_bits(float x) { return __float_as_uint(x) & 0x7FFFFFFFu; }

// What all values of a block are encoded with.
struct BlockEncoder {
  uint32_t scale, keep;
  float quantize;
  HalfReciprocal half;
  bool rare;  // round_to_code()
};

// amax: bits of the block's largest magnitude.
DUALGEMM_DEVICE BlockEncoder encoder_of(uint32_t amax, float quantize) {
  const float largest = __fmul_rn(__uint_as_float(amax), quantize);
  const uint32_t scale = encode_sixth(largest);
  const float decoded = decode_scale(static_cast<uint8_t>(scale));
  return {scale, kept_codes(scale), quantize, half_reciprocal(decoded), is_rare(largest, decoded)};
}

template <bool kRare = true>
DUALGEMM_DEVICE uint32_t encode_value(const BlockEncoder& encoder, float x) {
  const float y = __fmul_rn(fabsf(x), encoder.quantize);
  const uint32_t code = __float_as_uint(round_to_code<kRare>(y, encoder.half)) & 7u;
  return (code | (__float_as_uint(x) >> 28 & 8u)) & encoder.keep;
}

// The eight codes of this lane's neighbours. Where encoder.rare is false kRare may be, too: a third
// fewer instructions.
template <bool kRare = true>
DUALGEMM_DEVICE uint32_t encode_row(const BlockEncoder& encoder, const float (&x)[8]) {
  uint32_t word = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) word |= encode_value<kRare>(encoder, x[i]) << (4 * i);
  return word;
}

// Half of a block's codes, at any address.
template <class Params>
DUALGEMM_DEVICE void store_codes(const Params& params, uint32_t batch, uint32_t row, uint32_t block,
                                 uint32_t half, uint32_t word) {
  uint8_t* const to = params.d + batch * params.d_batch_bytes + row * params.d_row_bytes +
                      static_cast<uint64_t>(block) * (kBlock / 2) + half * 4;
  if (reinterpret_cast<uintptr_t>(to) % 4 == 0) {
    *reinterpret_cast<uint32_t*>(to) = word;
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = static_cast<uint8_t>(word >> (8 * i));
}

// A block's scale, and after the last one of a row zeros up to the end of its tile.
template <class Params>
DUALGEMM_DEVICE void store_scale(const Params& params, uint32_t batch, uint32_t scale_row,
                                 uint32_t block, uint32_t scale) {
  const Nvfp4Output& out = params.nvfp4;
  const uint32_t tile_cols = (out.blocks + kTileCols - 1) / kTileCols;
  uint8_t* const scales = out.scales + batch * out.scale_batch_bytes;
  scales[scale_offset(out.scale_ld, tile_cols, scale_row, block)] = static_cast<uint8_t>(scale);
  if (out.scale_ld != 0 || block + 1 != out.blocks) return;
  for (uint32_t col = out.blocks; col < tile_cols * kTileCols; ++col)
    scales[scale_offset(0, tile_cols, scale_row, col)] = 0;
}

// The rows of D that a tile has.
struct OutputRows {
  uint32_t batch;
  uint32_t end;          // behind the last row
  uint32_t scale_shift;  // from a row to its row of scales
  // Swizzled scales: padding rows begin here, and end with their tile of 128 rows. They become
  // zeros with the tile's last row. kNoPadding: another tile sees to them.
  uint32_t padding;
};
constexpr uint32_t kNoPadding = ~0u;

// Without groups.
template <class Params>
DUALGEMM_DEVICE OutputRows rows_of_batch(const Params& params, uint32_t batch) {
  return {batch, params.m, 0, params.m};
}

// The rows of a tile of groups. A masked expert has scales for m rows, however many of them exist,
// and so have experts together whose scales are those of one matrix.
template <class Params, class Tile>
DUALGEMM_DEVICE OutputRows rows_of_group(const Params& params, const Tile& tile) {
  const uint32_t shift = params.nvfp4.scale_ld == 0 ? tile.padded_begin - tile.begin : 0;
  return {params.groups.one_batch ? 0u : static_cast<uint32_t>(tile.expert), tile.end, shift,
          !tile.last             ? kNoPadding
          : params.groups.padded ? tile.end + shift
                                 : params.m};
}

// Below the last row, up to the end of its tile: zeros in a block's column. By the `lanes` lanes
// that have the last row among `first` .. first + count - 1; this one is number `lane` of them.
template <class Params>
DUALGEMM_DEVICE void clear_scales_below(const Params& params, const OutputRows& rows,
                                        uint32_t first, uint32_t count, uint32_t block,
                                        uint32_t lane, uint32_t lanes) {
  const uint32_t last = rows.end - 1;
  if (params.nvfp4.scale_ld != 0 || last < first || last - first >= count) return;
  if (block >= params.nvfp4.blocks || rows.padding == kNoPadding) return;
  const uint32_t end = (rows.padding + kTileRows - 1) / kTileRows * kTileRows;
#pragma unroll 1
  for (uint32_t row = rows.padding + lane; row < end; row += lanes)
    store_scale(params, rows.batch, row, block, 0);
}
// By a warp.
template <class Params>
DUALGEMM_DEVICE void clear_scales_below(const Params& params, const OutputRows& rows,
                                        uint32_t first, uint32_t count, uint32_t block) {
  clear_scales_below(params, rows, first, count, block, threadIdx.x % 32, 32);
}

// Rows `row` and row + 1 of block `block`, of which this lane has columns column_of_lane(), `low`,
// and 8 more, `high`. The rows or the block need not exist. Each of the eight lanes that have the
// same rows encodes four numbers of one of them: the first four lanes columns c, c + 4, c + 8 and
// c + 12 of the first row. Before it the warp meets, so that the compiler does not mix the work of
// several rows: ptxas takes 30 registers more for that.
template <class Params>
DUALGEMM_DEVICE void store_two_rows(const Params& params, const OutputRows& rows, uint32_t row,
                                    uint32_t block, const float (&low)[2], const float (&high)[2]) {
  constexpr uint32_t kAll = 0xFFFFFFFFu;
  __syncwarp();
  const uint32_t lane = column_of_lane(), column = lane % 4;
  const bool second = lane >= 4;
  const float low_of_other = __shfl_xor_sync(kAll, second ? low[0] : low[1], 16);
  const float high_of_other = __shfl_xor_sync(kAll, second ? high[0] : high[1], 16);
  const float x[4] = {second ? low_of_other : low[0], second ? low[1] : low_of_other,
                      second ? high_of_other : high[0], second ? high[1] : high_of_other};
  uint32_t amax = max(max(magnitude_bits(x[0]), magnitude_bits(x[1])),
                      max(magnitude_bits(x[2]), magnitude_bits(x[3])));
  amax = max(amax, __shfl_xor_sync(kAll, amax, 4));
  amax = max(amax, __shfl_xor_sync(kAll, amax, 8));
  const BlockEncoder encoder = encoder_of(amax, params.nvfp4.quantize);
  uint32_t words[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    words[half] =
        (encode_value(encoder, x[2 * half]) | encode_value(encoder, x[2 * half + 1]) << 16)
        << (4 * column);
  }
  // Two lanes have the first word, two the other one.
  const uint32_t half = column / 2;
  uint32_t word = half == 0 ? words[0] : words[1];
  word |= __shfl_xor_sync(kAll, half == 0 ? words[1] : words[0], 8);
  word |= __shfl_xor_sync(kAll, word, 4);
  if (second) ++row;
  if (row >= rows.end || block >= params.nvfp4.blocks) return;
  if (column % 2 == 0) store_codes(params, rows.batch, row, block, half, word);
  if (column == 1) store_scale(params, rows.batch, row + rows.scale_shift, block, encoder.scale);
}

// Column `col` of a product as a block of D; one that does not exist if D does not have it.
template <class Params>
DUALGEMM_DEVICE uint32_t block_of(const Params& params, const Columns& columns, uint32_t col) {
  return col < columns.end ? (col + columns.shift) / kBlock : params.nvfp4.blocks;
}

}  // namespace dualgemm::cuda
