// The tiles of groups that a persistent CTA does, in the order of grouped.cuh. Params: a kernel's,
// with `groups` and `tiles_n`.
#pragma once

#include <cstdint>

#include "cuda/device/group_tiles.cuh"

namespace dualgemm::cuda::sm100a_skinny {

// The tiles of this CTA, in order. Rows of the next one are asked for before a tile is worked at, and
// looked at after it.
class GroupedTiles {
 public:
  template <class Params>
  DUALGEMM_DEVICE explicit GroupedTiles(const Params& params)
      : row_tiles_(number_of_tiles(params.groups)),
        end_(row_tiles_ * params.tiles_n),
        index_(blockIdx.x) {
    if (is_valid()) rows_ = group_tile_of(rows_at(params, index_));
  }

  DUALGEMM_DEVICE bool is_valid() const { return index_ < end_; }
  // Once for each tile, which is valid. Without a next one any will do: behind a branch the words
  // would be waited for.
  template <class Params>
  DUALGEMM_DEVICE void ask_for_next(const Params& params) {
    next_ = rows_at(params, min(index_ + gridDim.x, end_ - 1));
  }
  DUALGEMM_DEVICE void advance() {
    index_ += gridDim.x;
    rows_ = group_tile_of(next_);
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
  uint4 next_;
};

template <class Params>
DUALGEMM_DEVICE uint32_t tiles_of_cta(const Params& params) {
  const uint32_t end = number_of_tiles(params.groups) * params.tiles_n;
  return blockIdx.x < end ? (end - blockIdx.x - 1) / gridDim.x + 1 : 0;
}

}  // namespace dualgemm::cuda::sm100a_skinny
