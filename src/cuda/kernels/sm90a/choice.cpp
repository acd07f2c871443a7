// Which problems the kernel takes, with which instance, and how the work is dealt out.
#include <algorithm>
#include <cmath>

#include "core/arena.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/convert/repack.hpp"
#include "cuda/kernels/convert/tma_operand.hpp"
#include "cuda/kernels/hopper/checks.hpp"
#include "cuda/kernels/sm90a/extents.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/kernels/sm90a/tuning_table.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::sm90a {
namespace {

constexpr int64_t kWorkspaceAlignment = 64;  // what the library's interface promises

}  // namespace

Status supports(const Problem& problem) { return hopper::check_problem(problem); }

// k_warpgroups add in an order of their own: where the bits of a row may not depend on m, there is
// one.
bool is_for(const Config& config, const Problem& problem) {
  return config.bf16 == multiplies_bf16(problem) &&
         (config.k_warpgroups == 1 || !problem.batch_invariant) &&
         (problem.combine == Combine::kGlu || writes_side_by_side(config));
}

std::span<const Instance> instances_for(const Problem& problem) {
  return problem.grouping == Grouping::kNone ? instances() : group_instances();
}

const Instance* find_instance(std::span<const Instance> compiled, int64_t tile_m, int64_t tile_n,
                              int64_t k_warpgroups, bool bf16, bool prepared) {
  for (const Instance& instance : compiled) {
    const Config& config = instance.config;
    if (config.tile_m == tile_m && tile_n_of(config) == tile_n &&
        config.k_warpgroups == k_warpgroups && config.bf16 == bf16 && config.prepared == prepared) {
      return &instance;
    }
  }
  return nullptr;
}

const Instance* find_instance(int64_t tile_m, int64_t tile_n, int64_t k_warpgroups, bool bf16,
                              bool prepared) {
  return find_instance(instances(), tile_m, tile_n, k_warpgroups, bf16, prepared);
}

namespace {

// What a row of tiles takes, in hundredths of one of 16 rows: fitted to the experts of DeepSeek-V3,
// Qwen3-30B-A3B, gpt-oss-120b and Mixtral on an H200, 8 to 1024 rows of an expert on average.
// 128 by 96 columns where they fill the SMs.
int64_t group_tile_cost(const Config& config) {
  const int tile_m = config.tile_m;
  if (tile_n_of(config) == kWideCols) return 178;
  return tile_m <= 16 ? 100 : tile_m <= 32 ? 104 : tile_m <= 64 ? 128 : tile_m <= 128 ? 192 : 370;
}

// The tile that an expert's rows take the least time in. Their number spreads about the average
// that the host knows of contiguous ones as if rows fell to experts by chance, by its root.
const Instance& choose_group_instance(const Problem& problem, int num_sms, bool prepared) {
  const int64_t rows = usual_rows(problem);
  const int64_t spread = problem.grouping == Grouping::kContiguous
                             ? static_cast<int64_t>(std::sqrt(static_cast<double>(rows)))
                             : 0;
  // Four times what an expert should have.
  const auto tiles = [&](int64_t tile_m) {
    return ceil_div(std::max<int64_t>(rows - spread, 1), tile_m) + 2 * ceil_div(rows, tile_m) +
           ceil_div(rows + spread, tile_m);
  };
  const Config narrow{128, 2, 1, multiplies_bf16(problem), prepared, true};
  const bool wide = groups_take_wide_tiles(narrow, ceil_div(tiles(128) * problem.l, 4), problem.n,
                                           problem.k, num_sms, problem.batch_invariant);
  const Instance* best = nullptr;
  int64_t least = 0;
  for (const Instance& instance : group_instances()) {  // tile_m increases
    const Config& config = instance.config;
    if (config.prepared != prepared || !is_for(config, problem)) continue;
    if (config.tile_m == 128 && (tile_n_of(config) == kWideCols) != wide) continue;
    // Tiles of 256 rows, 4 % faster than two of 128, would need copies of A's rows.
    if (config.tile_m == 256 && gathers(problem, narrow)) continue;
    const int64_t cost = tiles(config.tile_m) * group_tile_cost(config);
    if (best == nullptr || cost < least) best = &instance, least = cost;
  }
  return *best;
}

}  // namespace

const Instance& choose_instance(const Problem& problem, int num_sms, bool prepared) {
  if (problem.grouping != Grouping::kNone) return choose_group_instance(problem, num_sms, prepared);
  const bool bf16 = multiplies_bf16(problem);
  const Extents extents{problem.m, problem.n, problem.k, problem.l};
  const TuningRow& row = choose_row(tuning_table(), extents, num_sms);
  const Instance& tuned = *find_instance(row.tile_m, row.tile_n, row.k_warpgroups, bf16, prepared);
  if (!is_for(tuned.config, problem)) return *find_instance(64, 128, 1, bf16, prepared);
  return takes_wide_tiles(tuned.config, extents, num_sms, problem.batch_invariant)
             ? *find_instance(128, kWideCols, 1, bf16, prepared)
             : tuned;
}

Schedule make_schedule(const Problem& problem, const Config& config, int64_t max_ctas) {
  // Also of a plan that was edited.
  const int64_t k_tiles = k_tiles_of(problem), most = std::clamp<int64_t>(max_ctas, 1, kMaxCtas);
  const Divisor divisor(static_cast<uint32_t>(k_tiles));
  if (config.grouped) {
    Schedule schedule{};
    schedule.k_tiles = divisor;
    const int64_t tiles =
        most_group_tiles(problem, config.tile_m) * ceil_div(problem.n, tile_n_of(config));
    schedule.ctas = static_cast<uint32_t>(std::clamp<int64_t>(tiles * k_tiles, 1, most));
    return schedule;
  }
  return pair_or_deal_out(config, tiles_of(problem, config), divisor, most,
                          problem.batch_invariant || config.sequential);
}

bool have_suitable_linear_scales(const core::ResolvedProblem& problem) {
  const int64_t batches = problem.problem.l;
  return linear_scales_suit(problem.gate, batches) && linear_scales_suit(problem.up, batches);
}

bool may_share(const Problem& problem, const Schedule& schedule) {
  return problem.grouping == Grouping::kNone ? schedule.shared_k_tiles != 0
                                             : !problem.batch_invariant;
}

// The instance with the least cost of its tiles, which a sequential instance does in one wave after
// another, as group_tile_cost() has it.
const Instance& choose_sequential_instance(const Problem& problem, int num_sms) {
  const Instance* best = nullptr;
  int64_t least = 0;
  for (const Instance& instance : sequential_instances()) {
    if (!is_for(instance.config, problem)) continue;
    const int64_t cost =
        ceil_div(tiles_of(problem, instance.config), num_sms) * group_tile_cost(instance.config);
    if (best == nullptr || cost < least) best = &instance, least = cost;
  }
  return *best;
}

Workspace plan_workspace(const core::ResolvedProblem& problem, const Config& config,
                         const Schedule& schedule, bool unaligned,
                         const core::ResolvedProblem* of_up) {
  const int64_t batches = problem.problem.l;
  core::Arena arena(nullptr, kWorkspaceAlignment);
  const auto data = [&](const core::ResolvedMatrix& matrix) {
    if (!unaligned && !data_needs_copy(matrix, batches)) return WeightCopies::kDirect;
    return arena.take_offset(copied_row_bytes(matrix) * matrix.rows * batches);
  };
  const bool linear = have_suitable_linear_scales(problem) &&
                      (of_up == nullptr || have_suitable_linear_scales(*of_up));
  const auto scales = [&](const core::ResolvedMatrix& matrix) {
    if (!unaligned && (linear || swizzled_scales_suit(matrix, batches)))
      return WeightCopies::kDirect;
    return arena.take_offset(swizzled_scale_bytes(matrix.rows, matrix.sf_cols) * batches);
  };
  Workspace pieces;
  if (!config.prepared) {
    const auto copies_of = [&](const core::ResolvedProblem& weights) -> WeightCopies {
      return {data(weights.gate), data(weights.up), scales(weights.gate), scales(weights.up)};
    };
    pieces.weights = copies_of(problem);
    if (of_up != nullptr) pieces.of_up = copies_of(*of_up);
  }
  pieces.activations =
      arena.take_offset(batches_of_a(problem.problem) * prepared_rows(problem.problem, config) *
                        k_tiles_of(problem.problem) * kTileK * 2);
  if (config.grouped)
    pieces.groups = arena.take_offset(group_tiles_bytes(problem.problem, config.tile_m));
  if (may_share(problem.problem, schedule)) {
    constexpr int64_t kBytes = 4;
    pieces.flags = arena.take_offset(schedule.ctas * kBytes);
    pieces.partials =
        arena.take_offset(schedule.ctas * tile_n_of(config) * 2 * config.tile_m * kBytes);
  }
  pieces.bytes = arena.used();
  return pieces;
}

}  // namespace dualgemm::cuda::sm90a
