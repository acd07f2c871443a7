// The tiles that a persistent CTA does, in the order of sm100a_skinny/grouped.cuh: those of a
// table, or, without one, all rows of all batches. Params: a kernel's, with `m`, `batches`,
// `groups` and `tiles_n`.
#pragma once

#include <cstdint>

#include "cuda/device/group_tiles.cuh"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda::blackwell {

template <class Params>
DUALGEMM_DEVICE bool has_table(const Params& params) {
  return params.groups.table != nullptr;
}

template <int kTileM, class Params>
DUALGEMM_DEVICE uint32_t row_tiles_of_batch(const Params& params) {
  return (params.m + kTileM - 1) / kTileM;
}

template <int kTileM, class Params>
DUALGEMM_DEVICE uint32_t count_row_tiles(const Params& params) {
  return has_table(params) ? number_of_tiles(params.groups)
                           : row_tiles_of_batch<kTileM>(params) * params.batches;
}

// Tile `index` of rows where there is no table: a batch is what an expert is in one.
template <int kTileM, class Params>
DUALGEMM_DEVICE GroupTile row_tile_at(const Params& params, uint32_t index) {
  const uint32_t of_batch = row_tiles_of_batch<kTileM>(params), batch = index / of_batch;
  const uint32_t begin = (index - batch * of_batch) * kTileM;
  const uint32_t end = min(begin + kTileM, params.m);
  return {batch, end == params.m, begin, end, begin};
}

// The tiles of this CTA, in order. Rows of the next one are asked for before a tile is worked at,
// and looked at after it.
template <int kTileM>
class GroupedTiles {
 public:
  template <class Params>
  DUALGEMM_DEVICE explicit GroupedTiles(const Params& params)
      : row_tiles_(count_row_tiles<kTileM>(params)),
        end_(row_tiles_ * params.tiles_n),
        index_(blockIdx.x) {
    if (!is_valid()) return;
    rows_ = has_table(params) ? group_tile_of(rows_at(params, index_))
                              : row_tile_at<kTileM>(params, index_ % row_tiles_);
  }

  DUALGEMM_DEVICE bool is_valid() const { return index_ < end_; }
  // Once for each tile, which is valid. Without a next one any will do: behind a branch of its own
  // the words would be waited for.
  template <class Params>
  DUALGEMM_DEVICE void ask_for_next(const Params& params) {
    if (has_table(params)) next_ = rows_at(params, min(index_ + gridDim.x, end_ - 1));
  }
  template <class Params>
  DUALGEMM_DEVICE void advance(const Params& params) {
    index_ += gridDim.x;
    rows_ =
        has_table(params) ? group_tile_of(next_) : row_tile_at<kTileM>(params, index_ % row_tiles_);
  }

  DUALGEMM_DEVICE const GroupTile& rows() const { return rows_; }
  DUALGEMM_DEVICE uint32_t column_tile() const { return index_ / row_tiles_; }

 private:
  template <class Params>
  DUALGEMM_DEVICE uint4 rows_at(const Params& params, uint32_t index) const {
    return tile_words_of(params.groups, index % row_tiles_);
  }

  uint32_t row_tiles_, end_, index_;
  GroupTile rows_{};
  uint4 next_{};
};

template <int kTileM, class Params>
DUALGEMM_DEVICE uint32_t tiles_of_cta(const Params& params) {
  const uint32_t end = count_row_tiles<kTileM>(params) * params.tiles_n;
  return blockIdx.x < end ? (end - blockIdx.x - 1) / gridDim.x + 1 : 0;
}

// By a CTA's threads before they read a table, which the grid before makes. Without one each thread
// waits by itself before it reads or writes global memory, and prepared weights need no wait.
template <class Params>
DUALGEMM_DEVICE void wait_for_table(const Params& params) {
  if (has_table(params)) ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
}

// Stages of a CTA's first tile whose weights are asked for before the grid before has ended: half
// of the ring. A queues behind them, and with the whole ring MMAs would begin 0.9 us later where
// there is nothing to wait for (by ptxsim's clock).
template <class Params>
DUALGEMM_DEVICE uint32_t early_stages(const Params& params, uint32_t ring_stages) {
  return params.prepared && !has_table(params) ? min(ring_stages / 2, params.num_k_tiles) : 0;
}

}  // namespace dualgemm::cuda::blackwell
