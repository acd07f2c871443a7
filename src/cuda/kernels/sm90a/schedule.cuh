// The walk of one CTA through its part of the work. Producers and consumers walk alike.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm90a/params.hpp"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::sm90a {

// Blocks k_begin .. k_end-1 of one tile.
struct Segment {
  uint32_t tile, k_begin, k_end;
};

// The first block of range `index` of the shared blocks.
DUALGEMM_DEVICE uint32_t range_begin(const Schedule& schedule, uint32_t index) {
  return index * schedule.range_blocks + min(index, schedule.longer_ranges);
}

// Ranges are dealt to the CTAs from the last to the first: the one that finishes a tile then waits
// only for CTAs of lower number, which are on the GPU before it.
DUALGEMM_DEVICE uint32_t range_of_cta(const Schedule& schedule) {
  return schedule.ctas - 1 - blockIdx.x;
}

class Walk {
 public:
  DUALGEMM_DEVICE explicit Walk(const Schedule& schedule) : schedule_(schedule), tile_(blockIdx.x) {
    if (schedule.paired) {
      const uint32_t begin = blockIdx.x / 2 * schedule.k_blocks.value;
      const uint32_t middle = schedule.k_blocks.value / 2;
      const bool second = blockIdx.x % 2 != 0;
      block_ = begin + (second ? middle : 0);
      block_end_ = begin + (second ? schedule.k_blocks.value : middle);
    } else {
      block_ = range_begin(schedule, range_of_cta(schedule));
      block_end_ = range_begin(schedule, range_of_cta(schedule) + 1);
    }
  }

  DUALGEMM_DEVICE bool next(Segment& segment) {
    if (tile_ < schedule_.whole_tiles) {
      segment = {tile_, 0, schedule_.k_blocks.value};
      tile_ += schedule_.ctas;
      return true;
    }
    if (block_ >= block_end_) return false;
    const uint32_t tile = quotient(block_, schedule_.k_blocks);
    const uint32_t begin = block_ - tile * schedule_.k_blocks.value;
    const uint32_t end = min(begin + (block_end_ - block_), schedule_.k_blocks.value);
    segment = {schedule_.whole_tiles + tile, begin, end};
    block_ += end - begin;
    return true;
  }

 private:
  const Schedule& schedule_;
  uint32_t tile_, block_, block_end_;
};

}  // namespace dualgemm::cuda::sm90a
