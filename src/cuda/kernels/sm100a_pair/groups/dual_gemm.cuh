// The same for groups of experts with many rows each: persistent pairs of CTAs over the table of
// tiles (device/group_tiles.hpp), whose tiles have up to 256 rows of one expert, and 128 columns.
//
// Tiles are numbered along a band of 16 entries of the table first, then along columns; pair p
// of P has the tiles p, p + P, ... (tiles.cuh). Tiles of one expert and the same columns so run at
// about the same time, HBM gives their weights once, and A of a band stays in L2; nothing is read
// for an expert without rows. Which rows and columns a tile has depends on the table alone.
//
//   warp      role                     does
//   0-3, 8-11 finish_tiles             the epilogue, while the next tile is multiplied
//   4         load_tiles               one thread: six to nine TMA loads a stage, into its own CTA
//   5         issue_mma                as without groups (sm100a_pair/dual_gemm.cuh)
//   6, 7      arrange_tiles_of_groups  scales as the MMA wants them, stages in turns
//
//   Stages and TMEM are those of persistent pairs and unpacked weights, with room for a second row
//   of scale tiles of A: 40 960 bytes, five stages. Prepared weights arrive in the same places, by
//   maps that step over the other weight's atoms.
//
//   barrier     of      count       arrives                        waits                    first
//   sf_full[s]  each    1 (+bytes)  load_tiles, TMA of the scales  arrange_tiles_of_groups  phase 0
//   ab_full[s]  leader  4 (+bytes)  load_tiles and TMA of both, arrange_tiles_of_groups of both
//                                                                  issue_mma                phase 0
//   ab_empty, acc_gate, acc_up, gate_free, up_free, sums_read, and the cluster barriers: as
//   persistent pairs have them. A pair without tiles completes none of them.
//
// Rows of A come by their number: those behind the tile's last one are the next expert's, or zeros,
// and their sums are never stored; a CTA that has no row of a tile loads zeros. Scales of A: as
// sm100a_skinny/grouped.cuh says, one or two of their tiles of 128 rows, or 16 bytes a row, which
// is what linear scales of any operand and prepared ones have. Those that lie right are left alone.
//
// All threads wait for the grid before (griddepcontrol.wait), which makes the table, before they
// read anything of the problem.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm100a_pair/dual_gemm.cuh"
#include "cuda/kernels/sm100a_pair/groups/config.hpp"
#include "cuda/kernels/sm100a_pair/groups/params.hpp"

namespace dualgemm::cuda::sm100a_pair_groups {

inline constexpr uint32_t kScaleBytes = kMmaSteps * blackwell::kScaleTileBytes;  // of 128 rows
static_assert(kScaleBytes == kTileN * kRowScaleBytes, "scales in rows have room in their place");

}  // namespace dualgemm::cuda::sm100a_pair_groups

#include "cuda/kernels/sm100a_pair/groups/tiles.cuh"

#include "cuda/kernels/sm100a_pair/groups/arrange.cuh"
#include "cuda/kernels/sm100a_pair/groups/epilogue.cuh"
#include "cuda/kernels/sm100a_pair/groups/load.cuh"

namespace dualgemm::cuda::sm100a_pair_groups {

template <Config kCfg>
DUALGEMM_DEVICE void dual_gemm(const Params& params) {
  static_assert(sizeof(sm100a_pair::StorageRules<kCfg>) > 0);
  using B = Budget<kCfg>;
  extern __shared__ uint8_t dynamic_smem[];
  auto& smem = blackwell::storage_in<sm100a_pair::SharedStorage<kCfg>>(dynamic_smem);
  const uint32_t warp = ptx::warp_index();

  sm100a_pair::prologue(params, smem, warp);
  ptx::cluster_wait();
  ptx::tcgen05_fence_after_thread_sync();
  ptx::griddepcontrol_wait();  // the table, operands and what D was
  const Turns turns(params);
  if (B::is_epilogue(warp)) {
    ptx::setmaxnreg_inc<B::kEpilogueRegisters>();
    if (turns.has_tiles())
      finish_tiles(params, smem, turns, smem.tmem_base, B::epilogue_index(warp));
    return;
  }
  ptx::setmaxnreg_dec<B::kOtherRegisters>();
  if (warp == sm100a_pair::kMmaWarp) {
    if (turns.has_tiles()) {
      if (ptx::cluster_cta_rank() == 0 && ptx::elect_sync())
        sm100a_pair::issue_mma(params.num_k_tiles, smem, smem.tmem_base, turns);
      sm100a_pair::wait_until_sums_are_read(smem);
    }
    sm100a_pair::free_tmem(smem);
  } else if (turns.has_tiles()) {
    if (warp == sm100a_pair::kLoadWarp) {
      if (ptx::elect_sync()) load_tiles(params, smem, turns);
    } else {
      arrange_tiles_of_groups(params, smem, turns, warp - sm100a_pair::kFirstArrangeWarp);
    }
  }
}

}  // namespace dualgemm::cuda::sm100a_pair_groups
