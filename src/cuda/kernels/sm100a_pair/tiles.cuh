// Which tiles of D a pair computes. Part of dual_gemm.cuh.
#pragma once

namespace dualgemm::cuda::sm100a_pair {

// A tile of a pair, and this CTA's part of it.
struct Tile {
  uint32_t rank;            // of this CTA in its pair; 0 leads
  uint32_t m_begin;         // of this CTA's rows
  uint32_t n_begin, batch;  // of the pair's columns
};

// The place of tile `index` of persistent pairs among `rows` x `columns` tiles: along rows first,
// of a band of them.
struct Place {
  uint32_t row, column;
};
DUALGEMM_DEVICE Place place_in_bands(uint32_t index, uint32_t rows, uint32_t columns) {
  const uint32_t band = index / (kBandTiles * columns) * kBandTiles;
  const uint32_t band_rows = min(rows - band, static_cast<uint32_t>(kBandTiles));
  const uint32_t in_band = index - band * columns;
  const uint32_t column = in_band / band_rows;
  return {band + in_band - column * band_rows, column};
}

// The tiles of this pair, one after the other: every number of them that is the pair's, modulo
// their count. One, where pairs are not persistent. A pair has at least one.
template <Config kCfg>
class Turns {
 public:
  DUALGEMM_DEVICE explicit Turns(const Params& params)
      : params_(params), index_(blockIdx.x / kPairCtas) {}

  // Numbers go along the m of a batch first, or along that of a band of it.
  DUALGEMM_DEVICE Tile tile() const {
    uint32_t tile_m, tile_n, batch;
    if constexpr (kCfg.persistent) {
      const uint32_t tiles_of_batch = params_.tiles_m * params_.tiles_n;
      batch = index_ / tiles_of_batch;
      const Place place =
          place_in_bands(index_ - batch * tiles_of_batch, params_.tiles_m, params_.tiles_n);
      tile_m = place.row;
      tile_n = place.column;
    } else {
      const uint32_t column = index_ / params_.tiles_m;
      tile_m = index_ - column * params_.tiles_m;
      batch = column / params_.tiles_n;
      tile_n = column - batch * params_.tiles_n;
    }
    const uint32_t rank = ptx::cluster_cta_rank();
    return {rank, tile_m * kTileM + rank * kCtaRows, tile_n * kCfg.tile_n, batch};
  }

  // The parity of the turn, counted from 0: the phase that barriers of accumulators complete in it.
  DUALGEMM_DEVICE uint32_t parity() const { return parity_; }
  DUALGEMM_DEVICE bool is_last() const {
    return !kCfg.persistent || params_.num_tiles - index_ <= num_pairs();
  }
  // Stages that are filled in later turns, as far as they matter: at most a ring of turns.
  DUALGEMM_DEVICE uint32_t stages_behind() const {
    if constexpr (!kCfg.persistent) return 0;
    const uint32_t turns = (params_.num_tiles - 1 - index_) / num_pairs();
    return min(turns, static_cast<uint32_t>(Budget<kCfg>::kStages)) * params_.num_k_tiles;
  }
  DUALGEMM_DEVICE void advance() {
    index_ += num_pairs();
    parity_ ^= 1;
  }

 private:
  static DUALGEMM_DEVICE uint32_t num_pairs() { return gridDim.x / kPairCtas; }

  const Params& params_;
  uint32_t index_, parity_ = 0;
};

}  // namespace dualgemm::cuda::sm100a_pair
