// From a tile's sums to D: scaled, activated and stored. Part of dual_gemm.cuh, which has the
// tables.
//
// An accumulator tile is (weights, rows of A): in each 8 rows, lane 4r + q has Gate and Up of
// column r for rows 2q and 2q + 1. All arithmetic is done there. Only D's 16-bit types then need
// neighbouring columns in one thread; stmatrix turns them.
#pragma once

#include "cuda/device/activation.cuh"
#include "cuda/device/combine.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/common/store_nvfp4.cuh"
#include "cuda/kernels/hopper/decode.cuh"
#include "cuda/kernels/sm90a/reduction.cuh"
#include "cuda/ptx/stmatrix.cuh"

namespace dualgemm::cuda::sm90a {

// The chunk's row that output `i` of a thread belongs to.
DUALGEMM_DEVICE uint32_t row_of(int i, uint32_t thread) {
  return i / 2 * 8 + thread % 4 * 2 + i % 2;
}

// Gate and Up of a thread's outputs of a chunk of rows, in the order of row_of().
template <Config kCfg>
struct Outputs {
  static constexpr int kCount = Budget<kCfg>::kChunk / 4;
  float gate[kCount], up[kCount];
};

// A warp's part of D: its tile, its first column and a chunk's first row.
struct WarpPlace {
  uint32_t batch, row, rows_end, col;
};

// col: of D, counted from the place's.
DUALGEMM_DEVICE uint8_t* address_of(const Params& params, const WarpPlace& place, uint32_t row,
                                    uint32_t col) {
  return params.d + place.batch * params.d_batch_bytes + (place.row + row) * params.d_row_bytes +
         static_cast<uint64_t>(place.col + col) * bytes_of(params.output);
}

template <Config kCfg, int kChunk>
DUALGEMM_DEVICE void take_chunk(const float (&acc)[kCfg.tile_m / 2], Outputs<kCfg>& outputs) {
  if constexpr (kChunk < kCfg.tile_m / Budget<kCfg>::kChunk) {
    constexpr int kValues = Budget<kCfg>::kChunk / 2;  // of a thread
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      (i % 4 < 2 ? outputs.gate : outputs.up)[i / 4 * 2 + i % 2] = acc[kChunk * kValues + i];
  }
}

// Registers have no index: a jump. (Comparing the number with each chunk's becomes a selection for
// each register and chunk: 128 instructions a chunk with 256 rows.)
template <Config kCfg>
DUALGEMM_DEVICE Outputs<kCfg> take_chunk(uint32_t chunk, const float (&acc)[kCfg.tile_m / 2]) {
  static_assert(kCfg.tile_m / Budget<kCfg>::kChunk <= 8);
  Outputs<kCfg> outputs{};
  switch (chunk) {
    case 0:
      take_chunk<kCfg, 0>(acc, outputs);
      break;
    case 1:
      take_chunk<kCfg, 1>(acc, outputs);
      break;
    case 2:
      take_chunk<kCfg, 2>(acc, outputs);
      break;
    case 3:
      take_chunk<kCfg, 3>(acc, outputs);
      break;
    case 4:
      take_chunk<kCfg, 4>(acc, outputs);
      break;
    case 5:
      take_chunk<kCfg, 5>(acc, outputs);
      break;
    case 6:
      take_chunk<kCfg, 6>(acc, outputs);
      break;
    default:
      take_chunk<kCfg, 7>(acc, outputs);
      break;
  }
  return outputs;
}

template <Config kCfg>
DUALGEMM_DEVICE bool is_side_by_side(const Params& params) {
  return Budget<kCfg>::kSideBySide && params.combine.side_by_side;
}

// By the decoder's unit, alphas and row scales, and biases of column `col` of `end`.
template <Config kCfg>
DUALGEMM_DEVICE void scale(const Params& params, const Alphas& alphas, const WarpPlace& place,
                           uint32_t col, uint32_t end, Outputs<kCfg>& outputs) {
  constexpr int kCount = Outputs<kCfg>::kCount;
  const uint32_t thread = ptx::thread_index_anew();
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    outputs.gate[i] = outputs.gate[i] * hopper::kWeightUnit<kCfg.bf16> * alphas.gate;
    outputs.up[i] = outputs.up[i] * hopper::kWeightUnit<kCfg.bf16> * alphas.up;
  }
  if (params.a_row_scale != nullptr) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const uint32_t row = place.row + row_of(i, thread);
      const float scale = row < place.rows_end ? row_scale_of(params, place.batch, row) : 1.0f;
      outputs.gate[i] *= scale, outputs.up[i] *= scale;
    }
  }
  if (col < end) add_column_bias(params, place.batch, col, outputs.gate, outputs.up);
}

// gate[i] becomes the output of `product`.
template <Config kCfg>
DUALGEMM_DEVICE void scale_and_activate(const Params& params, const Alphas& alphas,
                                        const WarpPlace& place, int product,
                                        Outputs<kCfg>& outputs) {
  constexpr int kCount = Outputs<kCfg>::kCount;
  scale(params, alphas, place, place.col + ptx::thread_index_anew() % 32 / 4, params.n, outputs);
  if (is_side_by_side<kCfg>(params)) {
    if (product == 1) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) outputs.gate[i] = outputs.up[i];
    }
    if (!params.combine.activates_each) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) outputs.up[i] = 1.0f;  // the factor of g alone
  }
  activate_all_silu_first(params.act, outputs.gate, outputs.up);
}

// A column in each lane: 16 bytes of 16-bit numbers of a row at a time.
template <Config kCfg>
DUALGEMM_DEVICE void add_residual(const Params& params, const WarpPlace& place,
                                  const Columns& columns, Outputs<kCfg>& outputs) {
  const uint32_t thread = ptx::thread_index_anew(), col = thread % 32 / 4;
  if (place.col + col >= columns.end) return;
#pragma unroll
  for (int i = 0; i < Outputs<kCfg>::kCount; ++i) {
    const uint32_t row = row_of(i, thread);
    if (place.row + row >= place.rows_end) continue;
    outputs.gate[i] =
        with_residual(params, params.output, address_of(params, place, row, col + columns.shift),
                      outputs.gate[i]);
  }
}

// Up's sums become outputs by what lies in memory of Gate's.
template <Config kCfg>
DUALGEMM_DEVICE void activate_with_r1(const Params& params, const WarpPlace& place,
                                      const Columns& columns, Outputs<kCfg>& outputs) {
  constexpr int kCount = Outputs<kCfg>::kCount;
  const uint32_t thread = ptx::thread_index_anew(), col = place.col + thread % 32 / 4;
  const uint64_t columns_of_d = params.n + params.combine.up_column;
  float gate[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const uint32_t row = place.row + row_of(i, thread);
    gate[i] = 0.0f;
    if (col < columns.end && row < place.rows_end) {
      gate[i] =
          params.r1[(uint64_t{place.batch} * params.m + row) * columns_of_d + col + columns.shift];
    }
  }
  activate_all_silu_first(params.act, gate, outputs.gate);
#pragma unroll
  for (int i = 0; i < kCount; ++i) outputs.gate[i] = gate[i];
}

// 8 neighbours of a row in each lane, through the warp's scratch.
template <Config kCfg, OutputType kType>
DUALGEMM_DEVICE void store_halves(const Params& params, const WarpPlace& place,
                                  const Columns& columns, uint4* scratch,
                                  const Outputs<kCfg>& outputs) {
  constexpr int kChunk = Budget<kCfg>::kChunk, kMatrices = kChunk / 8;
  const uint32_t lane = ptx::thread_index_anew() % 32;
  uint32_t words[kMatrices];
#pragma unroll
  for (int i = 0; i < kMatrices; ++i)
    words[i] = pack_pair<kType>(outputs.gate[2 * i], outputs.gate[2 * i + 1]);
  __syncwarp();  // what was in the scratch is read
  ptx::stmatrix_transposed(ptx::shared_address(scratch + lane % kChunk), words);
  __syncwarp();
  if (lane >= kChunk || place.row + lane >= place.rows_end || place.col >= columns.end) return;
  const uint4 row = scratch[lane];
  const uint32_t eight[4] = {row.x, row.y, row.z, row.w};
  store_words<kType, kWarpCols>(address_of(params, place, lane, columns.shift), eight,
                                static_cast<int>(columns.end - place.col));
}

// 32 bits are stored as they lie: eight lanes write 32 bytes of a row.
template <Config kCfg>
DUALGEMM_DEVICE void store_floats(const Params& params, const WarpPlace& place,
                                  const Columns& columns, const Outputs<kCfg>& outputs) {
  const uint32_t thread = ptx::thread_index_anew(), col = thread % 32 / 4;
  if (place.col + col >= columns.end) return;
#pragma unroll
  for (int i = 0; i < Outputs<kCfg>::kCount; ++i) {
    const uint32_t row = row_of(i, thread);
    if (place.row + row >= place.rows_end) continue;
    *reinterpret_cast<float*>(address_of(params, place, row, col + columns.shift)) =
        outputs.gate[i];
  }
}

// Between the two warps that have a block of 16 columns, 8 each. Barriers 8 .. 15: 1 .. 7 have
// other uses.
DUALGEMM_DEVICE void sync_pair(uint32_t group, uint32_t pair) {
  ptx::barrier_sync(8 + group * 2 + pair, 64);
}

// The largest magnitude of 8 neighbours.
DUALGEMM_DEVICE uint32_t amax_of_row(const float (&x)[kWarpCols]) {
  uint32_t amax = 0;
#pragma unroll
  for (int i = 0; i < kWarpCols; ++i) amax = max(amax, magnitude_bits(x[i]));
  return amax;
}

// The 8 x 8 numbers x[row][lane / 4] of the lanes that have the same lane % 4: then lane r of them
// has x[r] of all columns.
DUALGEMM_DEVICE void gather_row(float (&x)[kWarpCols]) {
  const uint32_t column = column_of_lane();
#pragma unroll
  for (int step = 1; step < kWarpCols; step *= 2) {
    const bool odd = (column & step) != 0;
#pragma unroll
    for (int i = 0; i < kWarpCols; ++i) {
      if ((i & step) != 0) continue;
      const float other = __shfl_xor_sync(0xFFFFFFFFu, odd ? x[i] : x[i + step], 4 * step);
      x[i] = odd ? other : x[i], x[i + step] = odd ? x[i + step] : other;
    }
  }
}

// To D as NVFP4. Lanes exchange outputs until each has a row of the warp's 8 columns, the warps of
// a block tell each other their rows' largest magnitudes through slot `slot` (0, 1) of their
// scratch, and each encodes its columns. The next chunk takes the other slot: one barrier a chunk.
// What follows from the thread's number is found anew each time: kept over the loop along k it
// makes t64 spill.
template <Config kCfg>
DUALGEMM_DEVICE void store_codes_and_scales(const Params& params, const WarpPlace& place,
                                            const OutputRows& rows, const Columns& columns,
                                            uint32_t group, uint32_t slot, float* scratches,
                                            const Outputs<kCfg>& outputs) {
  using B = Budget<kCfg>;
  constexpr int kCount = Outputs<kCfg>::kCount;
  static_assert(2 * 32 <= B::kScratchFloats && kCount <= kWarpCols);
  const uint32_t thread = ptx::thread_index_anew();
  const uint32_t warp = thread / 32 % 4, half = warp % 2, lane = thread % 32;
  const uint32_t block = block_of(params, columns, place.col - half * kWarpCols);
  float x[kWarpCols];
#pragma unroll
  for (int i = 0; i < kWarpCols; ++i) x[i] = i < kCount ? outputs.gate[i] : 0.0f;
  gather_row(x);
  auto* const amaxes = reinterpret_cast<uint32_t*>(scratches) + slot * 32 + lane;
  uint32_t amax = amax_of_row(x);
  amaxes[warp * B::kScratchFloats] = amax;
  __syncwarp();
  sync_pair(group, warp / 2);
  amax = max(amax, amaxes[(warp ^ 1) * B::kScratchFloats]);
  const uint32_t i = lane / 4, row = place.row + row_of(static_cast<int>(i), thread);
  if (i < kCount && row < rows.end && block < params.nvfp4.blocks) {
    const BlockEncoder encoder = encoder_of(amax, params.nvfp4.quantize);
    const uint32_t codes =
        encoder.rare ? encode_row<true>(encoder, x) : encode_row<false>(encoder, x);
    store_codes(params, rows.batch, row, block, half, codes);
    if (half == 0) store_scale(params, rows.batch, row + rows.scale_shift, block, encoder.scale);
  }
  if (half == 0) clear_scales_below(params, rows, place.row, B::kChunk, block);
}

// Where D's rows are, of NVFP4; from the table of groups, each time: it is seldom asked for.
template <Config kCfg>
DUALGEMM_DEVICE OutputRows output_rows(const Params& params, uint32_t tile, uint32_t batch) {
  if constexpr (kCfg.grouped)
    return rows_of_group(params, tile_of(params.groups, quotient(tile, params.tiles_n)));
  return rows_of_batch(params, batch);
}

// Behind the last chunk of a tile: the slots have been read.
DUALGEMM_DEVICE void end_stores(const Params& params, uint32_t group) {
  __syncwarp();
  if (params.output == OutputType::kE2M1) sync_pair(group, ptx::thread_index_anew() / 32 % 4 / 2);
}

// The outputs of one product: as columns_of() has them. The caller's number `step` of a tile.
template <Config kCfg>
DUALGEMM_DEVICE void store_product(const Params& params, SharedStorage<kCfg>& smem,
                                   const WarpPlace& place, uint32_t tile, uint32_t group,
                                   uint32_t step, int product, Outputs<kCfg>& outputs) {
  const Columns columns =
      Budget<kCfg>::kSideBySide ? columns_of(params, product) : Columns{0, params.n};
  auto* const rows = reinterpret_cast<uint4*>(
      smem.scratch[group] + ptx::thread_index_anew() / 32 % 4 * Budget<kCfg>::kScratchFloats);
  if constexpr (Budget<kCfg>::kSideBySide) {
    if (params.r1 != nullptr) activate_with_r1<kCfg>(params, place, columns, outputs);
    if (params.combine.residual != nullptr) add_residual<kCfg>(params, place, columns, outputs);
  }
  __syncwarp();
  if (params.output == OutputType::kE2M1) {
    store_codes_and_scales<kCfg>(params, place, output_rows<kCfg>(params, tile, place.batch),
                                 columns, group, step % 2, smem.scratch[group], outputs);
  } else if (params.output == OutputType::kF16) {
    store_halves<kCfg, OutputType::kF16>(params, place, columns, rows, outputs);
  } else if (params.output == OutputType::kBF16) {
    store_halves<kCfg, OutputType::kBF16>(params, place, columns, rows, outputs);
  } else {
    store_floats<kCfg>(params, place, columns, outputs);
  }
}

// By all consumers, each with the sums of its columns in both halves of D: those of Gate, those of
// Up.
template <Config kCfg>
DUALGEMM_DEVICE void finish_sequential(const Params& params, SharedStorage<kCfg>& smem,
                                       const Segment& segment, const Tile& tile, uint32_t group,
                                       const float (&gate)[kCfg.tile_m / 2],
                                       const float (&up)[kCfg.tile_m / 2]) {
  using B = Budget<kCfg>;
#pragma unroll 1
  for (uint32_t step = 0; step < 2 * (kCfg.tile_m / B::kChunk); ++step) {
    const uint32_t chunk = step / 2;
    const auto half = static_cast<int>(step % 2);
    const uint32_t thread = ptx::thread_index_anew();
    const WarpPlace place{tile.batch, tile.m_begin + chunk * B::kChunk, tile.m_end,
                          tile.n_begin + group * kWarpgroupCols + thread / 32 % 4 * kWarpCols};
    const Columns columns = columns_of(params, half);
    Outputs<kCfg> outputs = take_chunk<kCfg>(chunk, gate);
    const Outputs<kCfg> others = take_chunk<kCfg>(chunk, up);
#pragma unroll
    for (int i = 0; i < Outputs<kCfg>::kCount; ++i) {
      if (half == 1) outputs.gate[i] = outputs.up[i];
      outputs.up[i] = half == 0 ? others.gate[i] : others.up[i];
    }
    scale<kCfg>(params, alphas_of(params, tile.batch), place,
                place.col + thread % 32 / 4 + columns.shift, columns.end + columns.shift, outputs);
    activate_all_silu_first(params.act, outputs.gate, outputs.up);
    store_product<kCfg>(params, smem, place, segment.tile, group, step, half, outputs);
  }
  end_stores(params, group);
}

// By all consumers, each with its accumulators.
template <Config kCfg>
DUALGEMM_DEVICE void finish_segment(const Params& params, SharedStorage<kCfg>& smem,
                                    const Segment& segment, const Tile& tile, uint32_t group,
                                    uint32_t k_warpgroup, float (&acc)[kCfg.tile_m / 2]) {
  using B = Budget<kCfg>;
  const uint32_t warp = threadIdx.x / 32 % 4;
  float* const scratch = smem.scratch[group] + warp * B::kScratchFloats;
  if constexpr (kCfg.k_warpgroups > 1) {
    add_k_warpgroups<kCfg>(scratch, group, k_warpgroup, acc);
    if (k_warpgroup != 0) return;
    __syncwarp();  // the sums are read
  }
  constexpr uint32_t kChunks = kCfg.tile_m / B::kChunk;
  uint32_t chunk = 0, chunks_end = kChunks;
  const Schedule& schedule = schedule_of<kCfg>(params, smem);
  if (!kCfg.grouped && schedule.paired) {
    if constexpr (B::kCanPair) {
      const bool is_second = blockIdx.x % 2 != 0;
      exchange_halves<kCfg>(smem, group, is_second, acc);
      (is_second ? chunk : chunks_end) = kChunks / 2;
    }
  } else {
    const Ending ending = ending_of(schedule, segment);
    if (!ending.begins) return leave_partials<kCfg>(params, ending, group, acc);
    if (!ending.is_whole) add_partials<kCfg>(params, schedule, ending, group, acc);
  }
  // One loop over chunks and, where they stand side by side, both products of each: with one in the
  // other ptxas keeps more over it, and t64 spills.
  const uint32_t two = is_side_by_side<kCfg>(params) ? 1 : 0;
#pragma unroll 1
  for (uint32_t step = chunk << two; step < chunks_end << two; ++step) {
    const uint32_t row = (step >> two) * B::kChunk;
    const auto product = static_cast<int>(step & two);
    const WarpPlace place{
        tile.batch, tile.m_begin + row, tile.m_end,
        tile.n_begin + group * kWarpgroupCols + ptx::thread_index_anew() / 32 % 4 * kWarpCols};
    if (kCfg.grouped && place.row >= place.rows_end) break;
    Outputs<kCfg> outputs = take_chunk<kCfg>(row / B::kChunk, acc);
    scale_and_activate<kCfg>(params, alphas_of(params, tile.batch), place, product, outputs);
    store_product<kCfg>(params, smem, place, segment.tile, group, step, product, outputs);
  }
  end_stores(params, group);
}

}  // namespace dualgemm::cuda::sm90a
