// What a loop over k leaves in a warp's registers.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/config.hpp"

namespace dualgemm::cuda::sm80 {

// Sums of a warp in one loop over k: [unit][group of 8 rows of A][mma's d].
template <Config kCfg>
using LoopSums = float[loop_units_of(kCfg)][kCfg.groups][4];

// All sums of a warp: `second` are those of Up, of kSequential alone; `first` then of Gate.
template <Config kCfg>
struct Sums {
  LoopSums<kCfg> first{};
  LoopSums<kCfg> second{};

  // Float i of item `index`, what is finished together of a group of rows: two units of
  // neighbouring columns, or the same unit of Gate and of Up.
  DUALGEMM_DEVICE float of_item(int index, int i) const {
    const int pair = index / kCfg.groups, group = index % kCfg.groups;
    if constexpr (kCfg.pass == Pass::kSequential) {
      return i < 4 ? first[pair][group][i] : second[pair][group][i - 4];
    } else {
      return first[2 * pair + i / 4][group][i % 4];
    }
  }
};

}  // namespace dualgemm::cuda::sm80
