// The scheduler of one CTA through its part of the work. The same for producers and consumers.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm90a/params.hpp"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::sm90a {

// K-tiles k_begin .. k_end-1 of one tile.
struct Segment {
  uint32_t tile, k_begin, k_end;
};

// The first k-tile of range `index` of the shared ones.
DUALGEMM_DEVICE uint32_t range_begin(const Schedule& schedule, uint32_t index) {
  return index * schedule.range_k_tiles + min(index, schedule.longer_ranges);
}

// Ranges are dealt to the CTAs from the last to the first: the one that finishes a tile then waits
// only for CTAs of lower number, which are on the GPU before it.
DUALGEMM_DEVICE uint32_t range_of_cta(const Schedule& schedule) {
  return schedule.ctas - 1 - blockIdx.x;
}

class TileScheduler {
 public:
  DUALGEMM_DEVICE explicit TileScheduler(const Schedule& schedule)
      : schedule_(schedule), tile_(blockIdx.x) {
    if (schedule.paired) {
      const uint32_t begin = blockIdx.x / 2 * schedule.k_tiles.value;
      const uint32_t middle = schedule.k_tiles.value / 2;
      const bool second = blockIdx.x % 2 != 0;
      k_tile_ = begin + (second ? middle : 0);
      k_tile_end_ = begin + (second ? schedule.k_tiles.value : middle);
    } else {
      k_tile_ = range_begin(schedule, range_of_cta(schedule));
      k_tile_end_ = range_begin(schedule, range_of_cta(schedule) + 1);
    }
  }

  DUALGEMM_DEVICE bool next(Segment& segment) {
    if (tile_ < schedule_.whole_tiles) {
      segment = {tile_, 0, schedule_.k_tiles.value};
      tile_ += schedule_.ctas;
      return true;
    }
    if (k_tile_ >= k_tile_end_) return false;
    const uint32_t tile = quotient(k_tile_, schedule_.k_tiles);
    const uint32_t begin = k_tile_ - tile * schedule_.k_tiles.value;
    const uint32_t end = min(begin + (k_tile_end_ - k_tile_), schedule_.k_tiles.value);
    segment = {schedule_.whole_tiles + tile, begin, end};
    k_tile_ += end - begin;
    return true;
  }

 private:
  const Schedule& schedule_;
  uint32_t tile_, k_tile_, k_tile_end_;
};

}  // namespace dualgemm::cuda::sm90a
