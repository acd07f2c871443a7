// A position in a ring of stages whose barriers flip phase once a round.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

template <int kStages>
struct RingPosition {
  uint32_t stage = 0;
  uint32_t round_parity = 0;  // of the round that the position is in: 0, 1, 0, ...

  DUALGEMM_DEVICE void advance() {
    if (++stage == kStages) {
      stage = 0;
      round_parity ^= 1;
    }
  }

  // kSteps at once, at most one round.
  template <int kSteps>
  DUALGEMM_DEVICE void skip() {
    static_assert(kSteps <= kStages);
    stage += kSteps;
    if (stage >= kStages) {
      stage -= kStages;
      round_parity ^= 1;
    }
  }
};

}  // namespace dualgemm::cuda
