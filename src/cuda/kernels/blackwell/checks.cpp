#include "cuda/kernels/blackwell/checks.hpp"

#include <fmt/format.h>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/blackwell/stage.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::blackwell {
namespace {

using core::ceil_div;

constexpr int64_t kTileCols = 64;  // of D, of the narrowest tiles that are counted

// A's type, extents, strides.
Status check_operands(const Problem& problem) {
  if (problem.a.type != DataType::kE2M1) {
    return Status::unsupported("a.type", dualgemm::name_of(problem.a.type),
                               "the sm_100a kernel takes e2m1");
  }
  DUALGEMM_TRY(check_extents(problem));
  const core::ResolvedProblem resolved = core::resolve(problem);
  DUALGEMM_TRY(check_strides("a", resolved.a));
  DUALGEMM_TRY(check_strides("gate", resolved.gate));
  return check_strides("up", resolved.up);
}

}  // namespace

Status check_without_groups(const Problem& problem) {
  if (problem.grouping != Grouping::kNone) {
    return Status::unsupported("grouping", dualgemm::name_of(problem.grouping),
                               "the sm_100a kernel takes none");
  }
  DUALGEMM_TRY(check_operands(problem));
  int64_t tiles = ceil_div(problem.m, kCtaRows) * ceil_div(problem.n, kTileCols);  // below 2^50
  if (!__builtin_mul_overflow(tiles, problem.l, &tiles) && tiles <= kMaxCtas) return {};
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "must be at most 2^31 - 1 tiles of 128 x 64");
}

Status check_rows_in_order(const Problem& problem) {
  if (problem.a_rows == 0) return {};
  return Status::unsupported(
      "a_rows", std::to_string(problem.a_rows),
      "Blackwell's kernels copy whole tiles of A: its rows must be in order");
}

Status check_with_groups(const Problem& problem) {
  DUALGEMM_TRY(check_operands(problem));
  DUALGEMM_TRY(check_rows_in_order(problem));
  DUALGEMM_TRY(check_groups(problem));
  constexpr int64_t kFewestRows = 16;
  int64_t tiles = most_listed_tiles(problem, kFewestRows);
  if (!__builtin_mul_overflow(tiles, ceil_div(problem.n, kTileCols), &tiles) && tiles <= kMaxCtas)
    return {};
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "experts must have at most 2^31 - 1 tiles of 16 x 64");
}

}  // namespace dualgemm::cuda::blackwell
