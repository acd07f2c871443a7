// A tile's sums from those of its k-warpgroups and of other CTAs, added in a fixed order. Part of
// dual_gemm.cuh, which has the tables.
#pragma once

#include "cuda/ptx/cluster.cuh"

namespace dualgemm::cuda::sm90a {

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

// Adds the sums of the later k-warpgroups to those of the first, kExchange of each thread at a
// time, through the warp's scratch: what is read there was written by the same warp of other
// k-warpgroups.
template <Config kCfg, int kFirst = 0>
DUALGEMM_DEVICE void add_k_warpgroups(float* exchange, uint32_t group, uint32_t k_warpgroup,
                                      float (&acc)[kCfg.tile_m / 2]) {
  using B = Budget<kCfg>;
  constexpr int kFloats = B::kExchange * 32;  // of one k-warpgroup
  ptx::barrier_sync(1 + group, kCfg.k_warpgroups * kWarpgroup);
  if (k_warpgroup != 0)
    write_sums<kFirst, B::kExchange>(exchange + (k_warpgroup - 1) * kFloats, acc);
  __syncwarp();
  ptx::barrier_sync(1 + group, kCfg.k_warpgroups * kWarpgroup);
  if (k_warpgroup == 0) {
#pragma unroll
    for (int other = 0; other < kCfg.k_warpgroups - 1; ++other)
      add_sums<kFirst, B::kExchange>(exchange + other * kFloats, acc);
  }
  __syncwarp();
  if constexpr (kFirst + B::kExchange < B::kSums)
    add_k_warpgroups<kCfg, kFirst + B::kExchange>(exchange, group, k_warpgroup, acc);
}

// Where the partial sums of a warp of the CTA of `range` lie.
template <Config kCfg>
DUALGEMM_DEVICE float* partials_of(const Params& params, uint32_t range, uint32_t group) {
  constexpr uint64_t kFloats = Budget<kCfg>::kSums * 32, kWarps = 4 * kCfg.n_warpgroups;
  return params.partials + (range * kWarps + group * 4 + threadIdx.x / 32 % 4) * kFloats;
}

// Between the CTAs of a cluster, which have half of a tile's k each: both leave the sums of half of
// the rows to the other one, in its idle rings, and add what they get. first + second = second +
// first: the same bits as in one order.
template <Config kCfg>
DUALGEMM_DEVICE void exchange_halves(SharedStorage<kCfg>& smem, uint32_t group, bool is_second,
                                     float (&acc)[kCfg.tile_m / 2]) {
  constexpr int kHalf = Budget<kCfg>::kSums / 2;
  constexpr uint32_t kBytes = kCfg.n_warpgroups * kHalf * kWarpgroup * sizeof(float);
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

// What becomes of a segment's sums, and which ranges hold the rest of its tile.
struct Ending {
  bool is_whole;        // no other CTA has a part of the tile
  bool begins;          // it holds the tile's first k-tile, so this CTA finishes the tile
  uint32_t range;       // this CTA's
  uint32_t others_end;  // ranges range+1 .. others_end-1 hold the rest
};

DUALGEMM_DEVICE Ending ending_of(const Schedule& schedule, const Segment& segment) {
  Ending ending{segment.k_begin == 0 && segment.k_end == schedule.k_tiles.value,
                segment.k_begin == 0, range_of_cta(schedule), 0};
  if (ending.is_whole || !ending.begins) return ending;
  const uint32_t tile_end = (segment.tile - schedule.whole_tiles + 1) * schedule.k_tiles.value;
  ending.others_end = ending.range + 1;
  while (ending.others_end < schedule.ctas && range_begin(schedule, ending.others_end) < tile_end) {
    ++ending.others_end;
  }
  return ending;
}

// Until the part of `range` is in memory. By the first k-warpgroups.
template <Config kCfg>
DUALGEMM_DEVICE void await_partials(const Params& params, uint32_t range) {
  if (threadIdx.x == 0) {
    while (ptx::ld_acquire_gpu(params.flags + range) == 0) {
    }
  }
  ptx::barrier_sync(7, kCfg.n_warpgroups * kWarpgroup);
}

// Adds the other parts of the tile, in ascending order of k.
template <Config kCfg>
DUALGEMM_DEVICE void add_partials(const Params& params, const Schedule& schedule,
                                  const Ending& ending, uint32_t group,
                                  float (&acc)[kCfg.tile_m / 2]) {
#pragma unroll 1
  for (uint32_t range = ending.range + 1; range < ending.others_end; ++range) {
    if (range_begin(schedule, range) == range_begin(schedule, range + 1)) continue;
    await_partials<kCfg>(params, range);
    add_sums<0, Budget<kCfg>::kSums>(partials_of<kCfg>(params, range, group), acc);
  }
}

// Leaves the sums to the CTA that finishes the tile.
template <Config kCfg>
DUALGEMM_DEVICE void leave_partials(const Params& params, const Ending& ending, uint32_t group,
                                    const float (&acc)[kCfg.tile_m / 2]) {
  write_sums<0, Budget<kCfg>::kSums>(partials_of<kCfg>(params, ending.range, group), acc);
  ptx::barrier_sync(7, kCfg.n_warpgroups * kWarpgroup);
  if (threadIdx.x == 0) ptx::st_release_gpu(params.flags + ending.range, 1);
}

}  // namespace dualgemm::cuda::sm90a
