// Which problems the kernel takes, and with which instance.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/sm80/launch.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::sm80 {
namespace {

using core::ceil_div;

// Rows of the tiles that any m can have with batch_invariant: their warps divide k into its parts.
constexpr int64_t kInvariantRows = 32;

// Tiles of D of a size, if every batch or expert has the usual rows.
int64_t usual_tiles(const Problem& problem, int64_t tile_m, int64_t tile_n) {
  return ceil_div(usual_rows(problem), tile_m) * ceil_div(problem.n, tile_n) * problem.l;
}

// By the measurements in docs/lab/sm80.md: few rows are bound by reading and decoding, which
// more warps an SM hide better, unless there are several CTAs for each; many share rows of A.
int usual_warps_k(const Problem& problem, const DeviceCaps& caps) {
  const int64_t rows = usual_rows(problem);
  if (rows > 32) return 1;
  const bool crowded = usual_tiles(problem, 32, 32) > int64_t{2} * std::max(caps.num_sms, 1);
  return rows > 16 && crowded ? 4 : 8;
}

// Whether a grid can have so many CTAs for each of an instance's tiles; check_group_tiles() has
// asked for those of groups.
bool fits_grid(const Config& config, const Problem& problem, int64_t splits) {
  return problem.grouping != Grouping::kNone || tiles_of(problem, config) * splits <= kMaxCtas;
}

// Whether an instance can have the sums of batch_invariant: its warps divide k into its parts, or
// CTAs do, whose bits are the same.
bool can_be_invariant(const Config& config, const Problem& problem) {
  return config.warps_k == kInvariantParts ||
         (can_divide_k(config, problem) &&
          partial_bytes(problem, config, {kInvariantParts}) <= kMaxPartialBytes);
}

// Addresses in a row of tiles of swizzled scales have 32 bits.
constexpr int64_t kMaxSwizzledK = int64_t{1} << 29;

Status check_scales(const char* name, const Matrix& spec, const Problem& problem) {
  if (spec.scale_layout != ScaleLayout::kSwizzled128x4 || problem.k <= kMaxSwizzledK) return {};
  return Status::unsupported(name, fmt::format("swizzled scales of k = {}", problem.k),
                             "k must be at most 2^29 with them for this kernel");
}

// A kernel multiplies numbers of rows with 32 bits of a matrix's stride.
constexpr int64_t kMaxRowBytes = int64_t{1} << 32;

Status check_rows(const char* name, const core::ResolvedMatrix& matrix) {
  if (matrix.rows == 1 || matrix.row_bytes() < kMaxRowBytes) return {};
  return Status::unsupported(name, fmt::format("rows {} bytes apart", matrix.row_bytes()),
                             "must be less than 2^32 bytes apart for this kernel");
}

// The narrowest tiles of D; sequential and other passes have wider ones.
constexpr int64_t kNarrowestCols = 32;

// With the lowest tiles.
Status check_group_tiles(const Problem& problem) {
  DUALGEMM_TRY(check_groups(problem));
  int64_t tiles = most_listed_tiles(problem, kGroupRows);  // below 2^59
  if (!__builtin_mul_overflow(tiles, ceil_div(problem.n, kNarrowestCols), &tiles) &&
      tiles <= kMaxCtas) {
    return {};
  }
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "experts must have at most 2^31 - 1 tiles of 8 x 32");
}

}  // namespace

Status supports(const Problem& problem) {
  DUALGEMM_TRY(check_rows_type(problem));
  DUALGEMM_TRY(check_extents(problem));
  DUALGEMM_TRY(check_scales("gate_scales", problem.gate, problem));
  DUALGEMM_TRY(check_scales("up_scales", problem.up, problem));
  const core::ResolvedProblem resolved = core::resolve(problem);
  DUALGEMM_TRY(check_rows("gate", resolved.gate));
  DUALGEMM_TRY(check_rows("up", resolved.up));
  if (problem.a.type == DataType::kE2M1) DUALGEMM_TRY(check_scales("a_scales", problem.a, problem));
  if (problem.grouping != Grouping::kNone) return check_group_tiles(problem);
  // The lowest tiles that are chosen for any m are those of batch_invariant.
  int64_t tiles = ceil_div(problem.m, kInvariantRows) * ceil_div(problem.n, kNarrowestCols);
  if (!__builtin_mul_overflow(tiles, problem.l, &tiles) && tiles <= kMaxCtas) return {};
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "must be at most 2^31 - 1 tiles of 32 x 32");
}

bool is_for(const Config& config, const InstanceRequest& request) {
  return config.pass == request.pass && config.prepared == request.prepared &&
         fits_grid(config, request.problem, 1) &&
         (!request.problem.batch_invariant || can_be_invariant(config, request.problem));
}

bool divides_k_by(const Config& config, const Problem& problem, int64_t parts) {
  if (problem.batch_invariant && parts != kInvariantParts) return false;
  if (parts == config.warps_k) return true;
  return can_divide_k(config, problem) &&
         std::find(std::begin(kSplits), std::end(kSplits), parts) != std::end(kSplits) &&
         fits_grid(config, problem, parts);
}

const Instance* find_instance(const InstanceRequest& request, const InstanceShape& shape) {
  const auto is = [](int64_t wanted, int64_t observed) {
    return wanted == 0 || wanted == observed;
  };
  for (const Instance& instance : instances(request.prepared)) {
    const Config& config = instance.config;
    if (is_for(config, request) && is(shape.tile_m, tile_m_of(config)) &&
        is(shape.tile_n, tile_n_of(config)) &&
        (shape.k_parts == 0 || divides_k_by(config, request.problem, shape.k_parts)))
      return &instance;
  }
  return nullptr;
}

namespace {

// Whether it has the warps along k which were fastest on an H100 and an H200 (docs/lab/sm80.md), or
// the parts of batch_invariant.
bool is_usual(const Config& config, const InstanceRequest& request, const DeviceCaps& caps) {
  return is_for(config, request) && (request.problem.batch_invariant ||
                                     config.warps_k == usual_warps_k(request.problem, caps));
}

// The lowest tile that holds all rows, or the highest. With groups, which have tiles of experts
// with more rows than usual and with fewer, what was measured: no rows between powers of two.
const Instance* by_rows(const InstanceRequest& request, const DeviceCaps& caps) {
  const bool grouped = request.problem.grouping != Grouping::kNone;
  const Instance* chosen = nullptr;
  for (const Instance& instance : instances(request.prepared)) {
    const auto rows = static_cast<uint32_t>(tile_m_of(instance.config));
    if (!is_usual(instance.config, request, caps)) continue;
    if (grouped && !std::has_single_bit(rows)) continue;
    chosen = &instance;  // they stand in the order of rows
    if (usual_rows(request.problem) <= rows) break;
  }
  return chosen;
}

}  // namespace

// Where CTAs can divide the work, in the way that takes the least time.
const Instance& choose_instance(const InstanceRequest& request, const DeviceCaps& caps) {
  const Instance* chosen = by_rows(request, caps);
  if (!can_divide_k(chosen->config, request.problem)) return *chosen;
  double least = fastest_division(chosen->config, request.problem, caps).us;
  for (const Instance& instance : instances(request.prepared)) {
    const Config& config = instance.config;
    if (!is_usual(config, request, caps) || !can_divide_k(config, request.problem)) continue;
    const double us = fastest_division(config, request.problem, caps).us;
    if (us < least) chosen = &instance, least = us;
  }
  return *chosen;
}

}  // namespace dualgemm::cuda::sm80
