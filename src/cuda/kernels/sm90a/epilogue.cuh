// From accumulators to d: the sums of phases and of other CTAs are added in a fixed order, then
// scaled and activated. Part of dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/device/activation.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/sm90a/decode.cuh"

namespace dualgemm::cuda::sm90a {

inline constexpr int kRun = 8;  // neighbouring columns of d that one thread finishes
inline constexpr int kRuns = kGroupCols / kRun;

// Sums of kRun outputs of one row.
struct Sums {
  float gate[kRun], up[kRun];
};

// One thread's outputs of a chunk, and where it takes part.
struct Item {
  uint32_t token;  // of the tile
  uint32_t col;    // of the tile: the first of kRun
};

// 32 gate and 32 up sums of each token of chunk `chunk`, one row of scratch per token.
template <Config kCfg>
DUALGEMM_DEVICE void write_scratch(float* scratch, uint32_t chunk,
                                   const float (&acc)[kCfg.tokens / 2]) {
  constexpr int kValues = Budget<kCfg>::kChunk / 2;  // of a thread
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  float* const base = scratch + lane % 4 * 2 * kScratchPitch + warp * 8 + lane / 4;
#pragma unroll
  for (int part = 0; part < kCfg.tokens / Budget<kCfg>::kChunk; ++part) {
    if (part != chunk) continue;  // registers have no index: a branch for each
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      const int token = i / 4 * 8 + i % 2;
      base[token * kScratchPitch + (i % 4 < 2 ? 0 : kGroupCols)] = acc[part * kValues + i];
    }
  }
}

// Adds eight floats at `from` to `sums`.
DUALGEMM_DEVICE void add_run(const float* from, float (&sums)[kRun]) {
#pragma unroll
  for (int i = 0; i < kRun; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(from + i);
    sums[i] += four.x, sums[i + 1] += four.y, sums[i + 2] += four.z, sums[i + 3] += four.w;
  }
}

DUALGEMM_DEVICE void store_run(float* to, const float (&sums)[kRun]) {
#pragma unroll
  for (int i = 0; i < kRun; i += 4) {
    *reinterpret_cast<float4*>(to + i) =
        make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
  }
}

// Partial sums of one CTA: (groups, tokens, 4 runs, 16) floats.
template <Config kCfg>
DUALGEMM_DEVICE float* partial_of(const Params& params, uint32_t range, const Item& item) {
  const uint32_t group = item.col / kGroupCols, run = item.col % kGroupCols / kRun;
  const uint64_t tile = kCfg.groups * kCfg.tokens * kRuns * 2 * kRun;
  return params.partials + range * tile +
         ((group * kCfg.tokens + item.token) * kRuns + run) * (2 * kRun);
}

DUALGEMM_DEVICE float scale_of_row(const Params& params, uint32_t batch, uint32_t row) {
  return params.a_row_scale == nullptr
             ? 1.0f
             : params.a_row_scale[static_cast<uint64_t>(batch) * params.m + row];
}

template <Config kCfg>
DUALGEMM_DEVICE void store_outputs(const Params& params, const Tile& tile, const Item& item,
                                   Sums& sums) {
  const uint32_t row = tile.m_begin + item.token, col = tile.n_begin + item.col;
  if (row >= params.m || col >= params.n) return;
  const float row_scale = scale_of_row(params, tile.batch, row);
  const float alpha_gate = params.alpha_gate_per_batch != nullptr
                               ? params.alpha_gate_per_batch[tile.batch]
                               : params.alpha_gate;
  const float alpha_up = params.alpha_up_per_batch != nullptr
                             ? params.alpha_up_per_batch[tile.batch]
                             : params.alpha_up;
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    sums.gate[i] = sums.gate[i] * kWeightUnit<kCfg.bf16> * alpha_gate * row_scale;
    sums.up[i] = sums.up[i] * kWeightUnit<kCfg.bf16> * alpha_up * row_scale;
  }
  activate_all(params.act, sums.gate, sums.up);
  const int valid = static_cast<int>(params.n - col);
  uint8_t* const to = params.d + tile.batch * params.d_batch_bytes + row * params.d_row_bytes +
                      static_cast<uint64_t>(col) * bytes_of(params.output);
  if (params.output == OutputType::kF16) {
    store_row<OutputType::kF16>(to, sums.gate, valid);
  } else if (params.output == OutputType::kBF16) {
    store_row<OutputType::kBF16>(to, sums.gate, valid);
  } else {
    store_row<OutputType::kF32>(to, sums.gate, valid);
  }
}

// What becomes of a segment's sums, and which ranges hold the rest of its tile.
struct Ending {
  bool is_whole;        // no other CTA has a part of the tile
  bool begins;          // it holds the tile's first block, so this CTA finishes the tile
  uint32_t range;       // this CTA's
  uint32_t others_end;  // ranges range+1 .. others_end-1 hold the rest
};

DUALGEMM_DEVICE Ending ending_of(const Schedule& schedule, const Segment& segment) {
  Ending ending{segment.k_begin == 0 && segment.k_end == schedule.k_blocks, segment.k_begin == 0,
                range_of_cta(schedule), 0};
  if (ending.is_whole || !ending.begins) return ending;
  const uint32_t tile_end = (segment.tile - schedule.whole_tiles + 1) * schedule.k_blocks;
  ending.others_end = ending.range + 1;
  while (ending.others_end < schedule.ctas && range_begin(schedule, ending.others_end) < tile_end) {
    ++ending.others_end;
  }
  return ending;
}

// Until all other parts of the tile are in memory. By all consumers.
template <Config kCfg>
DUALGEMM_DEVICE void await_partials(const Params& params, const Ending& ending) {
  if (threadIdx.x == 0) {
    for (uint32_t range = ending.range + 1; range < ending.others_end; ++range) {
      if (range_begin(params.schedule, range) == range_begin(params.schedule, range + 1)) continue;
      while (ptx::ld_acquire_gpu(params.flags + range) == 0) {
      }
    }
  }
  ptx::barrier_sync(7, Budget<kCfg>::kConsumers);
}

// One thread's item: this CTA's sum, then either to memory as a part, or with the other parts to d.
template <Config kCfg>
DUALGEMM_DEVICE void finish_item(const Params& params, const SharedStorage<kCfg>& smem,
                                 const Tile& tile, const Ending& ending, uint32_t group,
                                 uint32_t chunk_token, const Item& item) {
  Sums sums{};
#pragma unroll
  for (int phase = 0; phase < kCfg.phases; ++phase) {
    const float* const from = smem.scratch[phase * kCfg.groups + group] +
                              chunk_token * kScratchPitch + item.col % kGroupCols;
    add_run(from, sums.gate);
    add_run(from + kGroupCols, sums.up);
  }
  if (!ending.begins) {
    float* const to = partial_of<kCfg>(params, ending.range, item);
    store_run(to, sums.gate);
    store_run(to + kRun, sums.up);
    return;
  }
#pragma unroll 1
  for (uint32_t range = ending.range + 1; range < ending.others_end; ++range) {
    if (range_begin(params.schedule, range) == range_begin(params.schedule, range + 1)) continue;
    const float* const from = partial_of<kCfg>(params, range, item);
    add_run(from, sums.gate);
    add_run(from + kRun, sums.up);
  }
  store_outputs<kCfg>(params, tile, item, sums);
}

// By all consumers, each with its accumulators.
template <Config kCfg>
DUALGEMM_DEVICE void finish_segment(const Params& params, SharedStorage<kCfg>& smem,
                                    const Segment& segment, const Tile& tile, uint32_t group,
                                    uint32_t phase, const float (&acc)[kCfg.tokens / 2]) {
  using B = Budget<kCfg>;
  const Ending ending = ending_of(params.schedule, segment);
  if (ending.begins && !ending.is_whole) await_partials<kCfg>(params, ending);
  const uint32_t thread = phase * kWarpgroup + threadIdx.x % kWarpgroup;  // of the group
  const uint32_t barrier = 1 + group;
#pragma unroll 1
  for (uint32_t chunk = 0; chunk < kCfg.tokens / B::kChunk; ++chunk) {
    ptx::barrier_sync(barrier, kCfg.phases * kWarpgroup);  // scratch is read
    write_scratch<kCfg>(smem.scratch[phase * kCfg.groups + group], chunk, acc);
    ptx::barrier_sync(barrier, kCfg.phases * kWarpgroup);
    if (thread < B::kChunk * kRuns) {
      const uint32_t token = thread / kRuns;
      const Item item{chunk * B::kChunk + token, group * kGroupCols + thread % kRuns * kRun};
      finish_item(params, smem, tile, ending, group, token, item);
    }
    __syncwarp();
  }
  if (ending.begins) return;
  ptx::barrier_sync(7, B::kConsumers);
  if (threadIdx.x == 0) ptx::st_release_gpu(params.flags + ending.range, 1);
}

}  // namespace dualgemm::cuda::sm90a
