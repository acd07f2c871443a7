#include "cuda/kernels/hopper/checks.hpp"

#include <fmt/format.h>

#include "core/problem.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/hopper/extents.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::hopper {
namespace {

constexpr int64_t kMostRows = 256;                      // of a tile
constexpr int64_t kMaxKTiles = (int64_t{1} << 31) - 1;  // of k, over all tiles: 32-bit numbers

}  // namespace

Status check_problem(const Problem& problem) {
  DUALGEMM_TRY(check_rows_type(problem));
  DUALGEMM_TRY(check_extents(problem));
  const core::ResolvedProblem resolved = core::resolve(problem);
  DUALGEMM_TRY(check_strides("gate", resolved.gate));
  DUALGEMM_TRY(check_strides("up", resolved.up));
  DUALGEMM_TRY(check_groups(problem));
  int64_t k_tiles = 0, rows = 0;
  const int64_t batches = batches_of_a(problem);
  const bool grouped = problem.grouping != Grouping::kNone;
  // Groups begin tiles at any row, and the preparation of A counts the rows of whole tiles.
  const int64_t tiles_m = grouped ? most_group_tiles(problem, 8) : ceil_div(problem.m, 8);
  int64_t tile_rows = 0;
  const bool overflows =
      __builtin_mul_overflow(tiles_m, ceil_div(problem.n, 32), &k_tiles) ||
      __builtin_mul_overflow(k_tiles, k_tiles_of(problem), &k_tiles) ||
      __builtin_mul_overflow(k_tiles, grouped ? 1 : problem.l, &k_tiles) ||
      __builtin_mul_overflow(problem.m * k_tiles_of(problem), batches * 512, &rows) ||
      __builtin_mul_overflow(most_group_tiles(problem, kMostRows) * kMostRows, k_tiles_of(problem),
                             &tile_rows) ||
      (grouped && tile_rows > kMaxKTiles);
  if (!overflows && k_tiles <= kMaxKTiles && rows < kMaxStrideBytes) return {};
  return Status::unsupported(
      "m, n, k, l", fmt::format("{}, {}, {}, {}", problem.m, problem.n, problem.k, problem.l),
      "must be at most 2^31 - 1 tiles of 8 x 32 x 256, and a at most 2^40 bytes in 16 bits");
}

Status not_compiled(const KernelShape& shape) {
  return Status::unsupported("plan",
                             fmt::format("tile {} x {} in {} k_warpgroups", shape.tile_m,
                                         shape.tile_n, shape.k_warpgroups),
                             "must be one of the compiled kernels");
}

}  // namespace dualgemm::cuda::hopper
