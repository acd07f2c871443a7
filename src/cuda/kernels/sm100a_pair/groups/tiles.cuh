// Which tiles of groups a pair computes. Part of dual_gemm.cuh.
#pragma once

#include "cuda/device/group_tiles.cuh"
#include "cuda/kernels/sm100a_pair/tiles.cuh"

namespace dualgemm::cuda::sm100a_pair_groups {

// The tiles of this pair, one after the other: their numbers, as sm100a_pair::Turns has them
// without groups. Rows of tiles are the entries of the table, in bands. A pair may have none.
class Turns {
 public:
  DUALGEMM_DEVICE explicit Turns(const Params& params)
      : row_tiles_(number_of_tiles(params.groups)),
        columns_(params.tiles_n),
        num_k_tiles_(params.num_k_tiles),
        index_(blockIdx.x / kPairCtas) {}

  DUALGEMM_DEVICE bool has_tiles() const { return index_ < num_tiles(); }
  DUALGEMM_DEVICE sm100a_pair::Place place() const { return place_of(index_); }
  // The place of the next tile, or of some tile where there is no next one.
  DUALGEMM_DEVICE sm100a_pair::Place next_place() const {
    return place_of(min(index_ + num_pairs(), num_tiles() - 1));
  }

  // The parity of the turn, counted from 0: the phase that barriers of accumulators complete in it.
  DUALGEMM_DEVICE uint32_t parity() const { return parity_; }
  DUALGEMM_DEVICE bool is_last() const { return num_tiles() - index_ <= num_pairs(); }
  // Stages that are filled in later turns, as far as they matter: at most a ring of turns.
  DUALGEMM_DEVICE uint32_t stages_behind() const {
    constexpr uint32_t kStages = Budget<config_of(OutputType::kF16)>::kStages;
    return min((num_tiles() - 1 - index_) / num_pairs(), kStages) * num_k_tiles_;
  }
  DUALGEMM_DEVICE void advance() {
    index_ += num_pairs();
    parity_ ^= 1;
  }

 private:
  static DUALGEMM_DEVICE uint32_t num_pairs() { return gridDim.x / kPairCtas; }
  DUALGEMM_DEVICE uint32_t num_tiles() const { return row_tiles_ * columns_; }
  DUALGEMM_DEVICE sm100a_pair::Place place_of(uint32_t index) const {
    return sm100a_pair::place_in_bands(index, row_tiles_, columns_);
  }

  uint32_t row_tiles_, columns_, num_k_tiles_, index_, parity_ = 0;
};

// The same with their rows, for the warps that need them: the next tile's are loaded before a tile
// is worked at, and used after it. Precondition: the pair has tiles.
class Tiles {
 public:
  DUALGEMM_DEVICE Tiles(const Params& params, const Turns& turns)
      : groups_(params.groups),
        turns_(turns),
        place_(turns.place()),
        rows_(tile_of(groups_, place_.row)) {}

  // Once for each tile, before advance().
  DUALGEMM_DEVICE void ask_for_next() {
    next_place_ = turns_.next_place();
    next_ = tile_words_of(groups_, next_place_.row);
  }
  DUALGEMM_DEVICE void advance() {
    turns_.advance();
    place_ = next_place_;
    rows_ = group_tile_of(next_);
  }

  DUALGEMM_DEVICE const Turns& turns() const { return turns_; }
  DUALGEMM_DEVICE bool is_last() const { return turns_.is_last(); }
  DUALGEMM_DEVICE const GroupTile& rows() const { return rows_; }
  DUALGEMM_DEVICE uint32_t n_begin() const { return place_.column * kTileN; }

 private:
  const GroupTiles& groups_;
  Turns turns_;
  sm100a_pair::Place place_, next_place_{};
  GroupTile rows_;
  uint4 next_{};
};

// A CTA's rows of a tile's.
struct CtaRows {
  uint32_t begin, count;  // of A's batch; the second CTA may have none

  static DUALGEMM_DEVICE CtaRows of(const GroupTile& rows, uint32_t rank) {
    const uint32_t begin = rows.begin + rank * kCtaRows;
    return {begin, begin < rows.end ? min(rows.end - begin, uint32_t{kCtaRows}) : 0};
  }
};

// Where their scales lie, if not in rows as A itself.
struct ScalesOfA {
  uint32_t tile;   // first row of scale tiles
  uint32_t first;  // row in it
  bool in_two;     // the rest is in the next one

  static DUALGEMM_DEVICE ScalesOfA of(const Params& params, const GroupTile& rows, uint32_t rank) {
    const uint32_t begin =
        (params.padded_scales_of_a ? rows.padded_begin : rows.begin) + rank * kCtaRows;
    const uint32_t first = begin % kScaleTileRows;
    return {begin / kScaleTileRows, first, first + CtaRows::of(rows, rank).count > kScaleTileRows};
  }
};

}  // namespace dualgemm::cuda::sm100a_pair_groups
