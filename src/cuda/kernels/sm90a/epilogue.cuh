// From accumulators to d: the sums of phases and of other CTAs are added in a fixed order, then
// scaled and activated. Part of dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/device/activation.cuh"
#include "cuda/device/factors.cuh"
#include "cuda/device/store_row.cuh"
#include "cuda/kernels/sm90a/decode.cuh"
#include "cuda/ptx/cluster.cuh"

namespace dualgemm::cuda::sm90a {

// Sums of a thread's outputs: neighbouring columns of one row.
struct Sums {
  float gate[kWarpCols], up[kWarpCols];
};

// A thread's outputs: row of the tile, first column of the tile.
struct Item {
  uint32_t token, col;
};

DUALGEMM_DEVICE float4& four_at(float* floats, uint32_t index) {
  return reinterpret_cast<float4*>(floats)[index];
}

// A warp's sums, four at a time and lane beside lane: 16-byte accesses without bank conflicts,
// coalesced. kCount * 32 floats.
template <int kFirst, int kCount, int kAll>
DUALGEMM_DEVICE void write_sums(float* to, const float (&acc)[kAll]) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    four_at(to, i / 4 * 32 + lane) =
        make_float4(acc[kFirst + i], acc[kFirst + i + 1], acc[kFirst + i + 2], acc[kFirst + i + 3]);
  }
}

template <int kFirst, int kCount, int kAll>
DUALGEMM_DEVICE void add_sums(float* from, float (&acc)[kAll]) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    const float4 four = four_at(from, i / 4 * 32 + lane);
    acc[kFirst + i] += four.x, acc[kFirst + i + 1] += four.y;
    acc[kFirst + i + 2] += four.z, acc[kFirst + i + 3] += four.w;
  }
}

// To the shared memory of another CTA, in the order of write_sums.
template <int kFirst, int kCount, int kAll>
DUALGEMM_DEVICE void send_sums(uint32_t to, const float (&acc)[kAll]) {
  constexpr uint32_t kBytes = 16;
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    ptx::st_shared_cluster(to + (i / 4 * 32 + lane) * kBytes, acc[kFirst + i], acc[kFirst + i + 1],
                           acc[kFirst + i + 2], acc[kFirst + i + 3]);
  }
}

// Adds the sums of the later phases to those of the first, kExchange of each thread at a time,
// through the warp's scratch: what is read there was written by the same warp of other phases.
template <Config kCfg, int kFirst = 0>
DUALGEMM_DEVICE void add_phases(float* exchange, uint32_t group, uint32_t phase,
                                float (&acc)[kCfg.tokens / 2]) {
  using B = Budget<kCfg>;
  constexpr int kFloats = B::kExchange * 32;  // of one phase
  ptx::barrier_sync(1 + group, kCfg.phases * kWarpgroup);
  if (phase != 0) write_sums<kFirst, B::kExchange>(exchange + (phase - 1) * kFloats, acc);
  __syncwarp();
  ptx::barrier_sync(1 + group, kCfg.phases * kWarpgroup);
  if (phase == 0) {
#pragma unroll
    for (int other = 0; other < kCfg.phases - 1; ++other)
      add_sums<kFirst, B::kExchange>(exchange + other * kFloats, acc);
  }
  __syncwarp();
  if constexpr (kFirst + B::kExchange < B::kSums)
    add_phases<kCfg, kFirst + B::kExchange>(exchange, group, phase, acc);
}

// Where the partial sums of a warp of the CTA of `range` lie.
template <Config kCfg>
DUALGEMM_DEVICE float* partials_of(const Params& params, uint32_t range, uint32_t group) {
  constexpr uint64_t kFloats = Budget<kCfg>::kSums * 32, kWarps = 4 * kCfg.groups;
  return params.partials + (range * kWarps + group * 4 + threadIdx.x / 32 % 4) * kFloats;
}

// Between the CTAs of a cluster, which have half of a tile's k each: both leave the sums of half of
// the tokens to the other one, in its idle rings, and add what they get. first + second = second +
// first: the same bits as in one order.
template <Config kCfg>
DUALGEMM_DEVICE void exchange_halves(SharedStorage<kCfg>& smem, uint32_t group, bool is_second,
                                     float (&acc)[kCfg.tokens / 2]) {
  constexpr int kHalf = Budget<kCfg>::kSums / 2;
  constexpr uint32_t kBytes = kCfg.groups * kHalf * kWarpgroup * sizeof(float);
  static_assert(kBytes <= sizeof(smem.weights) + sizeof(smem.a));
  float* const received =
      reinterpret_cast<float*>(&smem) + (group * 4 + threadIdx.x / 32 % 4) * (kHalf * 32);
  const uint32_t to = ptx::mapa(received, is_second ? 0 : 1);
  ptx::cluster_sync();  // all MMAs are done: both CTAs' rings are idle
  if (is_second) {
    send_sums<0, kHalf>(to, acc);
  } else {
    send_sums<kHalf, kHalf>(to, acc);
  }
  ptx::cluster_sync();
  if (is_second) {
    add_sums<kHalf, kHalf>(received, acc);
  } else {
    add_sums<0, kHalf>(received, acc);
  }
}

// 8 gate and 8 up sums of each token of chunk `chunk`, one row of the warp's scratch per token.
template <Config kCfg>
DUALGEMM_DEVICE void write_scratch(float* scratch, uint32_t chunk,
                                   const float (&acc)[kCfg.tokens / 2]) {
  constexpr int kValues = Budget<kCfg>::kChunk / 2;  // of a thread
  const uint32_t lane = threadIdx.x % 32;
  float* const base = scratch + lane % 4 * 2 * kScratchPitch + lane / 4;
#pragma unroll
  for (int part = 0; part < kCfg.tokens / Budget<kCfg>::kChunk; ++part) {
    if (part != chunk) continue;  // registers have no index: a branch for each
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      const int token = i / 4 * 8 + i % 2;
      base[token * kScratchPitch + (i % 4 < 2 ? 0 : kWarpCols)] = acc[part * kValues + i];
    }
  }
}

DUALGEMM_DEVICE Sums read_scratch(float* scratch) {
  Sums sums;
#pragma unroll
  for (int i = 0; i < kWarpCols; i += 4) {
    const float4 gate = four_at(scratch, i / 4), up = four_at(scratch, (kWarpCols + i) / 4);
    sums.gate[i] = gate.x, sums.gate[i + 1] = gate.y, sums.gate[i + 2] = gate.z;
    sums.gate[i + 3] = gate.w;
    sums.up[i] = up.x, sums.up[i + 1] = up.y, sums.up[i + 2] = up.z, sums.up[i + 3] = up.w;
  }
  return sums;
}

template <Config kCfg>
DUALGEMM_DEVICE void store_outputs(const Params& params, const Tile& tile, const Item& item,
                                   Sums& sums) {
  const uint32_t row = tile.m_begin + item.token, col = tile.n_begin + item.col;
  if (row >= params.m || col >= params.n) return;
  const float row_scale = row_scale_of(params, tile.batch, row);
  const Alphas alphas = alphas_of(params, tile.batch);
#pragma unroll
  for (int i = 0; i < kWarpCols; ++i) {
    sums.gate[i] = sums.gate[i] * kWeightUnit<kCfg.bf16> * alphas.gate * row_scale;
    sums.up[i] = sums.up[i] * kWeightUnit<kCfg.bf16> * alphas.up * row_scale;
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

// Until the part of `range` is in memory. By the first phase's warpgroups.
template <Config kCfg>
DUALGEMM_DEVICE void await_partials(const Params& params, uint32_t range) {
  if (threadIdx.x == 0) {
    while (ptx::ld_acquire_gpu(params.flags + range) == 0) {
    }
  }
  ptx::barrier_sync(7, kCfg.groups * kWarpgroup);
}

// Adds the other parts of the tile, in ascending order of k.
template <Config kCfg>
DUALGEMM_DEVICE void add_partials(const Params& params, const Ending& ending, uint32_t group,
                                  float (&acc)[kCfg.tokens / 2]) {
#pragma unroll 1
  for (uint32_t range = ending.range + 1; range < ending.others_end; ++range) {
    if (range_begin(params.schedule, range) == range_begin(params.schedule, range + 1)) continue;
    await_partials<kCfg>(params, range);
    add_sums<0, Budget<kCfg>::kSums>(partials_of<kCfg>(params, range, group), acc);
  }
}

// Leaves the sums to the CTA that finishes the tile.
template <Config kCfg>
DUALGEMM_DEVICE void leave_partials(const Params& params, const Ending& ending, uint32_t group,
                                    const float (&acc)[kCfg.tokens / 2]) {
  write_sums<0, Budget<kCfg>::kSums>(partials_of<kCfg>(params, ending.range, group), acc);
  ptx::barrier_sync(7, kCfg.groups * kWarpgroup);
  if (threadIdx.x == 0) ptx::st_release_gpu(params.flags + ending.range, 1);
}

// By all consumers, each with its accumulators.
template <Config kCfg>
DUALGEMM_DEVICE void finish_segment(const Params& params, SharedStorage<kCfg>& smem,
                                    const Segment& segment, const Tile& tile, uint32_t group,
                                    uint32_t phase, float (&acc)[kCfg.tokens / 2]) {
  using B = Budget<kCfg>;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  float* const scratch = smem.scratch[group] + warp * B::kScratchFloats;
  if constexpr (kCfg.phases > 1) {
    add_phases<kCfg>(scratch, group, phase, acc);
    if (phase != 0) return;
    __syncwarp();  // the sums are read
  }
  constexpr uint32_t kChunks = kCfg.tokens / B::kChunk;
  uint32_t chunk = 0, chunks_end = kChunks;
  if (params.schedule.paired) {
    if constexpr (B::kCanPair) {
      const bool is_second = blockIdx.x % 2 != 0;
      exchange_halves<kCfg>(smem, group, is_second, acc);
      (is_second ? chunk : chunks_end) = kChunks / 2;
    }
  } else {
    const Ending ending = ending_of(params.schedule, segment);
    if (!ending.begins) return leave_partials<kCfg>(params, ending, group, acc);
    if (!ending.is_whole) add_partials<kCfg>(params, ending, group, acc);
  }
#pragma unroll 1
  for (; chunk < chunks_end; ++chunk) {
    write_scratch<kCfg>(scratch, chunk, acc);
    __syncwarp();
    if (lane < B::kChunk) {
      Sums sums = read_scratch(scratch + lane * kScratchPitch);
      store_outputs<kCfg>(params, tile,
                          {chunk * B::kChunk + lane, group * kGroupCols + warp * kWarpCols}, sums);
    }
    __syncwarp();  // the scratch is read
  }
}

}  // namespace dualgemm::cuda::sm90a
