// How a problem without groups is cut into tiles. Where CTAs take tiles in turn, those of the last
// columns have half the height, if the GPU is then done sooner: a round of half tiles costs half.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/int_math.hpp"
#include "cuda/kernels/sm120a/config.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::cuda::sm120a {

struct Tiles {
  int64_t tiles_m, halves_m;  // rows of tiles, whole and halves
  int64_t whole_n, tiles_n;   // columns of whole tiles; of all
  int64_t of_batch() const { return tiles_m * whole_n + halves_m * (tiles_n - whole_n); }
  // The way of the first of `ctas` CTAs that take them in turn, which is the longest, in halves of
  // a tile.
  int64_t halves_of_cta(int64_t ctas) const {
    return core::ceil_div(tiles_m * whole_n, ctas) + core::ceil_div(of_batch(), ctas);
  }
};

// ctas: as in KernelShape. 0: no halves.
inline Tiles tiles_of(const Problem& p, const Config& config, int64_t rows, int64_t ctas) {
  const int64_t tile_m = tile_m_of(config), tiles_n = core::ceil_div(p.n, kTileN);
  Tiles best{core::ceil_div(rows, tile_m), core::ceil_div(rows, tile_m / 2), tiles_n, tiles_n};
  if (ctas == 0 || p.l > 1 || p.grouping != Grouping::kNone) return best;
  const int64_t rounds = best.of_batch() / ctas;
  for (const int64_t whole_rounds : {rounds, rounds - 1}) {
    Tiles tiles = best;
    tiles.whole_n = std::clamp<int64_t>(whole_rounds * ctas / tiles.tiles_m, 0, tiles_n);
    if (tiles.halves_of_cta(ctas) < best.halves_of_cta(ctas)) best = tiles;
  }
  return best;
}

}  // namespace dualgemm::cuda::sm120a
