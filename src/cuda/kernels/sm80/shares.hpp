// How so many CTAs share the tiles: they take whole tiles in turns, and, where these would not fill
// the last turn, all chunks of the tiles that are left, one tile after the other, in equal shares.
// Host and device.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::sm80 {

struct Shares {
  uint32_t ctas;         // 0: there are no turns
  uint32_t whole_turns;  // whole tiles of each CTA; what follows is of the tiles after those
  uint32_t chunks;       // of each CTA; the first `longer` CTAs have one more
  uint32_t longer;

  // The first chunk of CTA `cta`'s.
  DUALGEMM_HOST_DEVICE constexpr uint32_t begin(uint32_t cta) const {
    return cta * chunks + (cta < longer ? cta : longer);
  }
  // Whose share chunk `chunk` is.
  DUALGEMM_HOST_DEVICE constexpr uint32_t owner(uint32_t chunk) const {
    const uint32_t of_longer = longer * (chunks + 1);
    return chunk < of_longer ? chunk / (chunks + 1) : longer + (chunk - of_longer) / chunks;
  }
  DUALGEMM_HOST_DEVICE constexpr uint32_t first_shared_tile() const { return whole_turns * ctas; }
  // Where sums of a CTA lie of a tile whose other chunks other CTAs have: only the first tile of a
  // share and its last one can be such.
  DUALGEMM_HOST_DEVICE static constexpr uint32_t slot(uint32_t cta, bool is_first_tile) {
    return 2 * cta + (is_first_tile ? 0 : 1);
  }
};

// Whole tiles alone, of which the first CTAs may have one more.
constexpr Shares make_turns(uint32_t tiles, uint32_t ctas) {
  return {ctas, (tiles + ctas - 1) / ctas, 0, 0};
}

// The shares of `ctas` CTAs in `tiles` tiles of `chunks` chunks each, tiles * chunks below 2^31.
constexpr Shares make_shares(uint32_t tiles, uint32_t chunks, uint32_t ctas) {
  const uint32_t turns = tiles / ctas, shared = (tiles - turns * ctas) * chunks;
  return {ctas, turns, shared / ctas, shared % ctas};
}

}  // namespace dualgemm::cuda::sm80
