#include "cuda/kernels/common/group_tiles.hpp"

#include <algorithm>
#include <string>

#include "core/int_math.hpp"
#include "core/scale_padding.hpp"
#include "cuda/kernels/common/group_tiles_kernel.hpp"

namespace dualgemm::cuda {

Status check_groups(const Problem& problem) {
  if (problem.grouping != Grouping::kContiguous ||
      core::most_padded_rows(problem.m, problem.l) <= UINT32_MAX) {
    return {};
  }
  return Status::unsupported("m, l", std::to_string(problem.m) + ", " + std::to_string(problem.l),
                             "experts' rows, rounded up to 128 each, must be below 2^32 on a GPU");
}

int64_t most_group_tiles(const Problem& problem, int64_t tile_m) {
  if (problem.grouping == Grouping::kMasked) return problem.l * core::ceil_div(problem.m, tile_m);
  // The most come from one row in as many experts as possible and the rest in one.
  const int64_t busy = std::min(problem.m, problem.l);
  return busy + (problem.m - busy) / tile_m;
}

int64_t most_listed_tiles(const Problem& problem, int64_t tile_m) {
  return problem.grouping == Grouping::kContiguous ? problem.m : most_group_tiles(problem, tile_m);
}

int64_t group_tiles_bytes(const Problem& problem, int64_t tile_m) {
  return (1 + most_listed_tiles(problem, tile_m)) * static_cast<int64_t>(sizeof(GroupTile));
}

GroupRows group_rows_of(const Problem& problem, const Buffers& buffers, int64_t tile_m) {
  return {problem.grouping == Grouping::kContiguous ? buffers.expert_offsets : nullptr,
          buffers.expert_rows,
          buffers.row_experts,
          static_cast<uint32_t>(problem.m),
          static_cast<uint32_t>(problem.l),
          Divisor(static_cast<uint32_t>(tile_m))};
}

KernelLaunch group_tiles_launch(const Problem& problem, const Buffers& buffers, int64_t tile_m,
                                void* table) {
  const GroupTilesParams params{group_rows_of(problem, buffers, tile_m),
                                static_cast<GroupTile*>(table)};
  KernelLaunch launch{.kernel = group_tiles_kernel(), .ctas = 1, .threads = kGroupTilesThreads};
  launch.set_params(params);
  return launch;
}

GroupTiles group_tiles_of(const Problem& problem, const Buffers& buffers, const void* table) {
  if (problem.grouping == Grouping::kNone) return {};
  const bool contiguous = problem.grouping == Grouping::kContiguous;
  return {static_cast<const GroupTile*>(table), contiguous,
          contiguous && buffers.row_experts == nullptr};
}

}  // namespace dualgemm::cuda
