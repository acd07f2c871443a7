// The kernel behind group_tiles.hpp, and what it is told.
#pragma once

#include <cstdint>

#include "cuda/device/divisor.hpp"
#include "cuda/device/group_tiles.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

// Offsets and counts are cut so that no tile leaves 0 .. m-1, and no row has two owners: an offset
// is at least as large as those before it, and none is larger than m.
struct GroupTilesParams {
  const int32_t* offsets;      // contiguous: [l+1]; null: masked, or rows name their experts
  const int32_t* rows;         // masked: [l]
  const int32_t* row_experts;  // [m], contiguous without offsets; else null
  GroupTile* table;
  uint32_t m, l;
  Divisor tile_m;
};

inline constexpr int kGroupTilesThreads = 512;  // of its one CTA

Kernel group_tiles_kernel();

}  // namespace dualgemm::cuda
