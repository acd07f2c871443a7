// The kernel behind group_tiles.hpp, and what it is told.
#pragma once

#include "cuda/device/group_tiles.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

struct GroupTilesParams {
  GroupRows rows;
  GroupTile* table;
};

inline constexpr int kGroupTilesThreads = 512;  // of its one CTA

Kernel group_tiles_kernel();

}  // namespace dualgemm::cuda
