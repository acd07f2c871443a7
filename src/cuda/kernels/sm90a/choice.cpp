// Which problems the kernel takes, with which instance, and how the work is dealt out.
#include <fmt/format.h>

#include <algorithm>

#include "core/arena.hpp"
#include "cuda/kernels/convert/repack.hpp"
#include "cuda/kernels/convert/tma_operand.hpp"
#include "cuda/kernels/sm90a/extents.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/kernels/sm90a/tuning_table.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::sm90a {
namespace {

constexpr int64_t kWorkspaceAlignment = 64;             // what the library's interface promises
constexpr int64_t kMaxKTiles = (int64_t{1} << 31) - 1;  // of k, over all tiles: 32-bit numbers

Status check_types(const Problem& problem) {
  if (problem.grouping != Grouping::kNone) {
    return Status::unsupported("grouping", dualgemm::name_of(problem.grouping),
                               "the sm_90a kernel takes none");
  }
  if (problem.a.type == DataType::kF32) {
    return Status::unsupported("a.type", "f32", "the sm_90a kernel takes e2m1, f16 or bf16");
  }
  return {};
}

}  // namespace

Status supports(const Problem& problem) {
  DUALGEMM_TRY(check_types(problem));
  DUALGEMM_TRY(check_extents(problem));
  const core::ResolvedProblem resolved = core::resolve(problem);
  DUALGEMM_TRY(check_strides("gate", resolved.gate));
  DUALGEMM_TRY(check_strides("up", resolved.up));
  int64_t k_tiles = 0, rows = 0;
  const bool overflows =
      __builtin_mul_overflow(ceil_div(problem.m, 8) * ceil_div(problem.n, 32), k_tiles_of(problem),
                             &k_tiles) ||
      __builtin_mul_overflow(k_tiles, problem.l, &k_tiles) ||
      __builtin_mul_overflow(problem.m * k_tiles_of(problem), problem.l * 512, &rows);
  if (!overflows && k_tiles <= kMaxKTiles && rows < kMaxStrideBytes) return {};
  return Status::unsupported(
      "m, n, k, l", fmt::format("{}, {}, {}, {}", problem.m, problem.n, problem.k, problem.l),
      "must be at most 2^31 - 1 tiles of 8 x 32 x 256, and a at most 2^40 bytes in 16 bits");
}

bool multiplies_bf16(const Problem& problem) { return problem.a.type == DataType::kBF16; }

const Instance* find_instance(int64_t tile_m, int64_t tile_n, int64_t k_warpgroups, bool bf16,
                              bool prepared) {
  for (const Instance& instance : instances()) {
    const Config& config = instance.config;
    if (config.tile_m == tile_m && tile_n_of(config) == tile_n &&
        config.k_warpgroups == k_warpgroups && config.bf16 == bf16 && config.prepared == prepared) {
      return &instance;
    }
  }
  return nullptr;
}

const Instance& choose_instance(const Problem& problem, int num_sms, bool prepared) {
  const bool bf16 = multiplies_bf16(problem);
  const TuningRow& row = choose_row(tuning_table(), problem, num_sms);
  // k_warpgroups add in an order of their own: the bits of a row must not depend on how many there
  // are.
  if (problem.batch_invariant && row.k_warpgroups > 1)
    return *find_instance(64, 128, 1, bf16, prepared);
  return *find_instance(row.tile_m, row.tile_n, row.k_warpgroups, bf16, prepared);
}

Schedule make_schedule(const Problem& problem, const Config& config, int64_t max_ctas) {
  const int64_t tiles = tiles_of(problem, config), k_tiles = k_tiles_of(problem);
  const int64_t most = std::max<int64_t>(max_ctas, 1), waves = ceil_div(tiles, most);
  Schedule schedule{};
  schedule.k_tiles = Divisor(static_cast<uint32_t>(k_tiles));
  // Two CTAs for each tile, where seven in ten of them then have work.
  schedule.paired = can_pair(config) && !problem.batch_invariant && k_tiles >= 4 &&
                    2 * tiles <= most && 20 * tiles >= 7 * most;
  if (schedule.paired) {
    schedule.ctas = static_cast<uint32_t>(2 * tiles);
    return schedule;
  }
  // Whole tiles where they keep nine in ten CTAs busy or where there is too little to share out;
  // else the last one to two waves are shared out evenly.
  const bool whole =
      problem.batch_invariant || tiles * 10 >= waves * most * 9 || tiles * k_tiles < 2 * most;
  const int64_t whole_tiles = whole ? tiles : std::max<int64_t>(waves - 2, 0) * most;
  schedule.ctas = static_cast<uint32_t>(whole ? std::min(tiles, most) : most);
  schedule.whole_tiles = static_cast<uint32_t>(whole_tiles);
  schedule.shared_k_tiles = static_cast<uint32_t>((tiles - whole_tiles) * k_tiles);
  if (whole) return schedule;
  schedule.range_k_tiles = schedule.shared_k_tiles / schedule.ctas;
  schedule.longer_ranges = schedule.shared_k_tiles % schedule.ctas;
  return schedule;
}

Workspace plan_workspace(const core::ResolvedProblem& problem, const Config& config,
                         const Schedule& schedule, bool unaligned) {
  const int64_t batches = problem.problem.l;
  core::Arena arena(nullptr, kWorkspaceAlignment);
  const auto data = [&](const core::ResolvedMatrix& matrix) {
    if (!unaligned && !data_needs_copy(matrix, batches)) return Workspace::kDirect;
    return arena.take_offset(copied_row_bytes(matrix) * matrix.rows * batches);
  };
  const bool linear =
      linear_scales_suit(problem.gate, batches) && linear_scales_suit(problem.up, batches);
  const auto scales = [&](const core::ResolvedMatrix& matrix) {
    if (!unaligned && (linear || swizzled_scales_suit(matrix, batches))) return Workspace::kDirect;
    return arena.take_offset(swizzled_scale_bytes(matrix.rows, matrix.sf_cols) * batches);
  };
  Workspace pieces;
  if (!config.prepared) {
    pieces.gate = data(problem.gate);
    pieces.up = data(problem.up);
    pieces.sf_gate = scales(problem.gate);
    pieces.sf_up = scales(problem.up);
  }
  pieces.activations =
      arena.take_offset(batches * problem.problem.m * k_tiles_of(problem.problem) * kTileK * 2);
  if (schedule.shared_k_tiles != 0) {
    constexpr int64_t kBytes = 4;
    pieces.flags = arena.take_offset(schedule.ctas * kBytes);
    pieces.partials =
        arena.take_offset(schedule.ctas * tile_n_of(config) * 2 * config.tile_m * kBytes);
  }
  pieces.bytes = arena.used();
  return pieces;
}

}  // namespace dualgemm::cuda::sm90a
