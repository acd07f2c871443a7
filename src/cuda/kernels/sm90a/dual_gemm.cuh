// D = act(alpha_gate * A * Gate^T) (*) (alpha_up * A * Up^T) on Hopper: weights stay packed NVFP4
// in memory, are decoded to fp16 or bf16 in registers and multiplied from there; decoded a comes
// from shared memory. docs/kernels/sm90a.md has the reasons.
//
//   warp                     role              does
//   0 .. 4*W-1               consume           W warpgroups: decode, wgmma, epilogue
//   4*W                      load_weights      one thread: codes and scales of Gate and Up
//   4*W + 1                  load_activations  one thread: decoded A, after the prepare kernel
//                            or, where rows of A are found by index:
//   4*W + 1                  hand_over_activations  one thread
//   4*W + 2, 4*W + 3         gather_activations     two warps: decoded rows of A
//
//   A warpgroup multiplies 64 rows: each of its warps 8 rows of Gate and the same 8 of Up, so that
//   both sums of an output are in one thread. n_warpgroups have 32 columns of D each; the
//   k_warpgroups of the same columns take turns with the k-tiles; their sums meet in shared memory.
//
//   barrier        count               arrives                           waits
//   w_full[s]      1 (+bytes)          load_weights, TMA hardware        consume (one k_warpgroup)
//   w_empty[s]     4 * n_warpgroups    lane 0 of each warp that read it  load_weights, from round 1
//                                                                        on
//   a_full[s]      1 (+bytes)          load_activations, TMA hardware    consume (one k_warpgroup)
//                                      or hand_over_activations
//   a_copied[s]    64                  threads of gather_activations     hand_over_activations
//   a_empty[s]     4 * n_warpgroups    lane 0 of each warp that read it  load_activations or
//                                                                        gather_..., likewise
//   cluster        consumers           the first k_warpgroups of both    in pairs: rings are idle,
//                                      CTAs                              sums are there
//   named 1 + n    128 * k_warpgroups  warpgroups of the same columns    sums along k: room, there
//   named 7        128 * n_warpgroups  the first k_warpgroup of each     a tile's partial sums
//                                      group of columns                  written or awaited
//   named 8 + p    64                  the two warps of 16 columns       D is NVFP4: amaxes are
//                                                                        there; a tile's last read
//
// Needs: sm_90a; PTX ISA 8.0; no cluster, or pairs of CTAs; 227 KB of shared memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/device/group_tiles.cuh"
#include "cuda/device/pipeline.cuh"
#include "cuda/kernels/sm90a/config.hpp"
#include "cuda/kernels/sm90a/params.hpp"
#include "cuda/kernels/sm90a/schedule.cuh"
#include "cuda/ptx/cp_async_bulk.cuh"
#include "cuda/ptx/grid.cuh"
#include "cuda/ptx/warp.cuh"

namespace dualgemm::cuda::sm90a {

template <Config kCfg, bool kPrepared = kCfg.prepared>
struct WeightStage {
  alignas(
      kSwizzleAlignment) uint8_t gate[Budget<kCfg>::kTileN * kRowBytes];  // (tile_n, 128), swizzled
  uint8_t up[Budget<kCfg>::kTileN * kRowBytes];
  // (tile_n, 16), or (1 or 2, 4, 512): scale tiles of 128 rows
  uint8_t sf_gate[Budget<kCfg>::kSwizzledBytes];
  uint8_t sf_up[Budget<kCfg>::kSwizzledBytes];
};

template <Config kCfg>
struct WeightStage<kCfg, true> {
  alignas(kSwizzleAlignment) PackedUnit units[kSubs][Budget<kCfg>::kUnits];
};

template <Config kCfg>
struct SharedStorage {
  using B = Budget<kCfg>;
  WeightStage<kCfg> weights[B::kWeightStages];  // the rings come first: exchange_halves
  alignas(kSwizzleAlignment) uint8_t a[B::kActStages][B::kActBytes];    // (subs, tile_m, 128) each
  alignas(16) float scratch[kCfg.n_warpgroups][4 * B::kScratchFloats];  // of each warp
  ptx::Barrier w_full[B::kWeightStages];
  ptx::Barrier w_empty[B::kWeightStages];
  ptx::Barrier a_full[B::kActStages];
  ptx::Barrier a_empty[B::kActStages];
  ptx::Barrier a_copied[B::kCanGather ? B::kActStages : 1];
  Schedule schedule;  // of groups
};

// How the work is dealt out, for all roles.
template <Config kCfg>
DUALGEMM_DEVICE const Schedule& schedule_of(const Params& params, const SharedStorage<kCfg>& smem) {
  if constexpr (kCfg.grouped) return smem.schedule;
  return params.schedule;
}

// Bytes of dynamic shared memory of a launch: the storage, and room to align it.
template <Config kCfg>
inline constexpr int kDynamicSmemBytes = sizeof(SharedStorage<kCfg>) + kSwizzleAlignment;

// How often a CTA goes along k for one tile.
template <Config kCfg>
inline constexpr uint32_t kPasses = kCfg.sequential ? 2 : 1;

template <Config kCfg>
using ParamsOf = std::conditional_t<kCfg.sequential, SequentialParams, Params>;

// Where a tile lies.
struct Tile {
  uint32_t m_begin, m_end;  // rows of A and D, which may end before the tile does
  uint32_t n_begin, batch;  // or expert
};

template <Config kCfg>
DUALGEMM_DEVICE Tile locate(const Params& params, uint32_t tile) {
  const uint32_t row = quotient(tile, params.tiles_n);
  const uint32_t n_begin = (tile - row * params.tiles_n.value) * Budget<kCfg>::kTileN;
  if constexpr (kCfg.grouped) {
    const GroupTile rows = tile_of(params.groups, row);
    return {rows.begin, rows.end, n_begin, rows.expert};
  }
  const uint32_t batch = quotient(row, params.tiles_m);
  return {(row - batch * params.tiles_m.value) * kCfg.tile_m, params.m, n_begin, batch};
}

}  // namespace dualgemm::cuda::sm90a

#include "cuda/kernels/sm90a/consume.cuh"
#include "cuda/kernels/sm90a/gather.cuh"
#include "cuda/kernels/sm90a/load.cuh"

namespace dualgemm::cuda::sm90a {

// By two threads, one a ring.
template <Config kCfg>
DUALGEMM_DEVICE void init_weight_barriers(SharedStorage<kCfg>& smem) {
  for (int i = 0; i < Budget<kCfg>::kWeightStages; ++i) {
    ptx::mbarrier_init(&smem.w_full[i], 1);
    ptx::mbarrier_init(&smem.w_empty[i], 4 * kCfg.n_warpgroups);
  }
  ptx::fence_mbarrier_init();
}

template <Config kCfg>
DUALGEMM_DEVICE void init_activation_barriers(SharedStorage<kCfg>& smem) {
  for (int i = 0; i < Budget<kCfg>::kActStages; ++i) {
    ptx::mbarrier_init(&smem.a_full[i], 1);
    ptx::mbarrier_init(&smem.a_empty[i], 4 * kCfg.n_warpgroups);
    if constexpr (Budget<kCfg>::kCanGather)
      ptx::mbarrier_init(&smem.a_copied[i], 32 * kGatherWarps);
  }
  ptx::fence_mbarrier_init();
}

// The units that copy fetch these maps while barriers are made.
template <Config kCfg>
DUALGEMM_DEVICE void prefetch_maps(const Params& params) {
  ptx::prefetch_tensormap(&params.map_a);
  if constexpr (!kCfg.prepared) {
    ptx::prefetch_tensormap(&params.map_gate);
    ptx::prefetch_tensormap(&params.map_up);
    ptx::prefetch_tensormap(&params.map_sf_gate);
    ptx::prefetch_tensormap(&params.map_sf_up);
  }
}

// The CTA's storage, at an address that the compiler has to keep and knows to be the same in all
// lanes. It made the address from a special register in front of every wait.
template <Config kCfg>
DUALGEMM_DEVICE SharedStorage<kCfg>& storage() {
  extern __shared__ uint8_t dynamic_smem[];
  constexpr uint32_t kUnaligned = kSwizzleAlignment - 1;
  const uint32_t aligned = (ptx::shared_address(dynamic_smem) + kUnaligned) & ~kUnaligned;
  const uint32_t kept = __shfl_sync(0xFFFFFFFFu, aligned, 0);
  return *static_cast<SharedStorage<kCfg>*>(__cvta_shared_to_generic(kept));
}

template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const ParamsOf<kCfg>& params) {
  using B = Budget<kCfg>;
  static_assert(kDynamicSmemBytes<kCfg> <= kSmemBytes, "one CTA fits an SM");
  SharedStorage<kCfg>& smem = storage<kCfg>();
  const uint32_t warp = ptx::warp_index();
  constexpr uint32_t kWeightsWarp = 4 * B::kWarpgroups, kActivationsWarp = kWeightsWarp + 1;

  if (warp == kWeightsWarp && ptx::elect_sync()) init_weight_barriers(smem);
  if (warp == kActivationsWarp && ptx::elect_sync()) init_activation_barriers(smem);
  if (warp == kActivationsWarp + 1 && ptx::elect_sync()) prefetch_maps<kCfg>(params);
  if constexpr (kCfg.grouped) {
    ptx::griddepcontrol_wait();  // the table says whose weights are read
    if (warp == kActivationsWarp + 2 && ptx::elect_sync()) {
      smem.schedule =
          deal_out(number_of_tiles(params.groups) * params.tiles_n.value, params.schedule.k_tiles,
                   params.schedule.ctas, params.whole_tiles_only);
    }
    __syncwarp();
  }
  __syncthreads();
  if (warp < kWeightsWarp) {
    ptx::setmaxnreg_inc<B::kConsumerRegisters>();
    consume(params, smem, warp);
  } else {
    ptx::setmaxnreg_dec<B::kProducerRegisters>();
    if (warp == kWeightsWarp) {
      if (ptx::elect_sync()) load_weights(params, smem);
    } else if (B::kCanGather && params.activations != nullptr) {
      if constexpr (B::kCanGather) {
        if (warp > kActivationsWarp) {
          gather_activations(params, smem, warp - kActivationsWarp - 1);
        } else if (ptx::elect_sync()) {
          hand_over_activations(params, smem);
        }
      }
    } else if (warp == kActivationsWarp) {
      if (ptx::elect_sync()) load_activations(params, smem);
    }
  }
}

}  // namespace dualgemm::cuda::sm90a
