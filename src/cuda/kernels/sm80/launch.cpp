#include "cuda/kernels/sm80/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/common/view_of.hpp"
#include "cuda/kernels/packed/packed_weights.hpp"
#include "cuda/kernels/sm80/finish_partials.hpp"
#include "cuda/kernels/sm80/params.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::sm80 {
namespace {

using core::ceil_div;

constexpr int64_t kBlockCodeBytes = 8, kPieceBytes = 16;  // what is copied at a time

// Parts of k that batch_invariant keeps, and the rows of the tiles that any m can have, whose warps
// divide k so.
constexpr int64_t kInvariantParts = 4, kInvariantRows = 32;

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

constexpr int64_t kMaxR1Bytes = int64_t{1} << 40;  // far beyond any memory, and of an offset
constexpr int64_t kSectorFloats = 8;               // memory moves 32 bytes

int64_t r1_ld(const Problem& problem) { return core::round_up(problem.n, kSectorFloats); }

int64_t tiles_of(const Problem& problem, const Config& config) {
  return ceil_div(problem.m, tile_m_of(config)) * ceil_div(problem.n, tile_n_of(config)) *
         problem.l;
}

// The sums of a tile over a part of k.
int64_t tile_bytes(const Config& config) {
  constexpr int64_t kItemBytes = kItemFloats * 32 * sizeof(float);
  return warps_of(config) * items_of(config) * kItemBytes;
}
// What CTAs that divide k so have in the workspace.
int64_t partial_bytes(const Problem& problem, const Config& config, const Division& division) {
  const int64_t tiles = tiles_of(problem, config);
  const bool has_shares = division.ctas > 0;
  const int64_t slots = !has_shares                  ? division.splits * tiles
                        : tiles % division.ctas == 0 ? 0
                                                     : 2 * division.ctas;
  return slots * tile_bytes(config);
}
// Parts of tiles that CTAs with equal shares have at the most: a tile has one more than shares that
// end inside it.
int64_t shared_parts(int64_t tiles, int64_t ctas) {
  return tiles % ctas == 0 ? 0 : std::min(2 * (ctas - 1), ctas - 1 + tiles % ctas);
}
bool is_divided(const Division& division) { return division.splits > 1 || division.ctas > 0; }
// What is chosen unasked.
constexpr int64_t kMaxPartialBytes = 128 << 20;

int64_t chunks_of(const Problem& problem) { return ceil_div(problem.k, kChunkK); }

// Whether a grid can have so many CTAs for each of an instance's tiles; check_group_tiles() has
// asked for those of groups.
bool fits_grid(const Config& config, const Problem& problem, int64_t splits) {
  return problem.grouping != Grouping::kNone || tiles_of(problem, config) * splits <= kMaxCtas;
}

// Whether CTAs can divide the k of an instance's tiles.
bool can_divide_k(const Config& config, const Problem& problem) {
  return is_wide(config) && config.pass == Pass::kFused && problem.grouping == Grouping::kNone;
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
  if (problem.a.type == DataType::kE2M1) DUALGEMM_TRY(check_scales("a_scales", problem.a, problem));
  if (problem.grouping != Grouping::kNone) return check_group_tiles(problem);
  // The lowest tiles that are chosen for any m are those of batch_invariant.
  int64_t tiles = ceil_div(problem.m, kInvariantRows) * ceil_div(problem.n, kNarrowestCols);
  if (!__builtin_mul_overflow(tiles, problem.l, &tiles) && tiles <= kMaxCtas) return {};
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "must be at most 2^31 - 1 tiles of 32 x 32");
}

Status supports_r1(const Problem& problem) {
  int64_t elements = 0;
  if (!__builtin_mul_overflow(problem.m * problem.l, r1_ld(problem), &elements) &&
      elements <= kMaxR1Bytes / static_cast<int64_t>(sizeof(float))) {
    return {};
  }
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "the Gate product in FP32 must be at most 2^40 bytes");
}

int64_t r1_bytes(const Problem& problem) {
  return problem.l * problem.m * r1_ld(problem) * static_cast<int64_t>(sizeof(float));
}

bool is_for(const Config& config, const InstanceRequest& request) {
  return config.a_type == a_type_of(request.problem.a.type) && config.pass == request.pass &&
         config.prepared == request.prepared && fits_grid(config, request.problem, 1) &&
         (!request.problem.batch_invariant || can_be_invariant(config, request.problem));
}

bool divides_k_by(const Config& config, const Problem& problem, int64_t parts) {
  if (problem.batch_invariant && parts != kInvariantParts) return false;
  if (parts == config.warps_k) return true;
  return can_divide_k(config, problem) && fits_grid(config, problem, parts) &&
         std::find(std::begin(kSplits), std::end(kSplits), parts) != std::end(kSplits);
}

bool can_share(const Config& config, const Problem& problem) {
  int64_t chunks = 0;
  return can_divide_k(config, problem) && !problem.batch_invariant &&
         !__builtin_mul_overflow(tiles_of(problem, config), chunks_of(problem), &chunks) &&
         chunks <= INT32_MAX;
}

Division shares_of(const Config& config, const Problem& problem, int64_t most) {
  return {1, std::min(most, tiles_of(problem, config) * chunks_of(problem))};
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

// The lowest tile that holds all rows, or the highest, among those that have the warps along k
// which were fastest on an H100 and an H200 (docs/lab/sm80.md), or the parts of batch_invariant.
const Instance& choose_instance(const InstanceRequest& request, const DeviceCaps& caps) {
  const int64_t warps_k = usual_warps_k(request.problem, caps);
  const Instance* chosen = nullptr;
  for (const Instance& instance : instances(request.prepared)) {
    const Config& config = instance.config;
    if (!is_for(config, request)) continue;
    if (!request.problem.batch_invariant && config.warps_k != warps_k) continue;
    chosen = &instance;  // they stand in the order of rows
    if (usual_rows(request.problem) <= tile_m_of(config)) break;
  }
  return *chosen;
}

// Waves of CTAs, each with chunks along k and the end of a tile: outputs, or sums for the launch
// that adds them, which costs that launch and what it reads. Shares have more parts of tiles, each
// of which begins with nothing under way. In us, fitted to an H200's times within 5 %
// (docs/lab/sm80.md); what is compared are their ratios.
Division division_for(const Config& config, const Problem& problem, const DeviceCaps& caps) {
  if (!can_divide_k(config, problem)) return {};
  if (problem.batch_invariant) return {kInvariantParts};
  constexpr double kOutputs = 6.0, kSums = 5.5, kLaunch = 2.0, kBytes = 10.0e6;  // bytes a us
  constexpr double kShares = 6.0, kShareBytes = 2.1e6, kLeastGain = 0.985;
  const double chunk_us = tile_m_of(config) == 64 ? 0.9 : 1.46;
  const int64_t tiles = tiles_of(problem, config), chunks = chunks_of(problem);
  const int64_t sms = std::max(caps.num_sms, 1);
  const auto waves_us = [&](int64_t splits) {
    const auto waves = static_cast<double>(ceil_div(tiles * splits, sms));
    const double of_chunks = chunk_us * static_cast<double>(ceil_div(chunks, splits));
    if (splits == 1) return waves * (of_chunks + kOutputs);
    return waves * (of_chunks + kSums) + kLaunch +
           static_cast<double>(partial_bytes(problem, config, {splits})) / kBytes;
  };
  const auto shares_us = [&](int64_t ctas) {
    const int64_t turns = tiles / ctas, share = ceil_div(tiles % ctas * chunks, ctas);
    return static_cast<double>(turns) * (chunk_us * static_cast<double>(chunks) + kOutputs) +
           static_cast<double>(share) * chunk_us + kShares +
           static_cast<double>(shared_parts(tiles, ctas) * tile_bytes(config)) / kShareBytes;
  };
  int64_t best = 1;
  for (const int64_t splits : kSplits) {
    if (splits <= chunks && partial_bytes(problem, config, {splits}) <= kMaxPartialBytes &&
        waves_us(splits) < waves_us(best))
      best = splits;
  }
  const Division shares = shares_of(config, problem, sms);
  const bool shared = can_share(config, problem) &&
                      partial_bytes(problem, config, shares) <= kMaxPartialBytes &&
                      shares_us(shares.ctas) < kLeastGain * waves_us(best);
  return shared ? shares : Division{best};
}

namespace {

Params params_of(const LaunchParts& parts) {
  const core::ResolvedProblem problem = with_shared_rows(parts.problem);
  const Problem& p = problem.problem;
  const Buffers& buffers = parts.buffers;
  const Config& config = parts.instance.config;
  const bool grouped = p.grouping != Grouping::kNone;
  Params params{};
  params.a = view_of(problem.a, buffers.a, buffers.a_scales);
  params.gate = view_of(problem.gate, buffers.gate, buffers.gate_scales);
  params.up = view_of(problem.up, buffers.up, buffers.up_scales);
  if (config.prepared) params.packed = packed_weights(p, parts.prepared);
  set_epilogue(problem, buffers, params);
  params.r1 = static_cast<float*>(parts.workspace);
  params.r1_ld = r1_ld(p);
  params.output = output_type_of(p.d.type);
  const int64_t a_bytes = config.a_type == AType::kE2M1 ? kBlockCodeBytes : kPieceBytes;
  params.a_aligned = rows_begin_at_multiples_of(a_bytes, params.a);
  const auto weights_begin_at = [&](int64_t bytes) {
    return rows_begin_at_multiples_of(bytes, params.gate) &&
           rows_begin_at_multiples_of(bytes, params.up);
  };
  params.weights_aligned = weights_begin_at(kPieceBytes)       ? kPieceBytes
                           : weights_begin_at(kBlockCodeBytes) ? kBlockCodeBytes
                                                               : 1;
  params.scales_aligned = scales_begin_at_multiples_of(kChunkK16, params.gate.scales) &&
                          scales_begin_at_multiples_of(kChunkK16, params.up.scales);
  params.k16 = static_cast<uint32_t>(p.k / 16);
  params.a_plain = params.a_aligned && p.k % kChunkK == 0 &&
                   (core::rows_of_a(p) * params.a.row_bytes + p.l * params.a.batch_bytes) /
                           word_bytes_of(config.a_type) <=
                       int64_t{UINT32_MAX};
  if (grouped) params.groups = group_tiles_of(p, buffers, parts.workspace);
  params.row_index = row_index_of(p, buffers);
  const int64_t tile_m = tile_m_of(config);
  params.tiles_m = static_cast<uint32_t>(ceil_div(p.m, tile_m));
  params.tiles_n = static_cast<uint32_t>(ceil_div(p.n, tile_n_of(config)));
  params.tiles = static_cast<uint32_t>(grouped ? most_group_tiles(p, tile_m) * params.tiles_n
                                               : tiles_of(p, config));
  params.splits = static_cast<uint32_t>(parts.division.splits);
  if (parts.division.ctas > 0) {
    params.shares = make_shares(params.tiles, static_cast<uint32_t>(chunks_of(p)),
                                static_cast<uint32_t>(parts.division.ctas));
  }
  params.partials = static_cast<float*>(parts.workspace);
  return params;
}

KernelLaunch launch_of(const LaunchParts& parts, const Params& params) {
  const Config& config = parts.instance.config;
  KernelLaunch launch{
      .kernel = {config.prepared ? "dual_gemm_sm80_prepared" : "dual_gemm_sm80",
                 parts.instance.entry, parts.instance.kernel},
      .ctas = params.shares.ctas > 0 ? params.shares.ctas : params.tiles * params.splits,
      .threads = static_cast<uint32_t>(threads_of(config)),
      .dynamic_smem_bytes = static_cast<uint32_t>(smem_bytes_of(config))};
  launch.set_params(params);
  return launch;
}

}  // namespace

int64_t workspace_bytes(const Problem& problem, const Instance& instance,
                        const Division& division) {
  const Config& config = instance.config;
  if (problem.grouping != Grouping::kNone) return group_tiles_bytes(problem, tile_m_of(config));
  return is_divided(division) ? partial_bytes(problem, config, division) : 0;
}

int64_t intermediate_bytes(const Problem& problem, const Instance& instance,
                           const Division& division) {
  if (!is_divided(division)) return 0;
  const Config& config = instance.config;
  if (division.ctas > 0) {
    const int64_t parts = shared_parts(tiles_of(problem, config), division.ctas);
    const int64_t rows =
        std::min<int64_t>(core::round_up(problem.m, kGroupRows), tile_m_of(config));
    return 2 * parts * tile_bytes(config) * rows / tile_m_of(config);
  }
  const int64_t rows = core::round_up(problem.m, kGroupRows) * problem.l;
  const int64_t columns = 2 * core::round_up(problem.n, tile_n_of(config));
  return 2 * division.splits * rows * columns * static_cast<int64_t>(sizeof(float));
}

KernelLaunch build_launch(const LaunchParts& parts) { return launch_of(parts, params_of(parts)); }

std::vector<KernelLaunch> build_fused(const LaunchParts& parts) {
  std::vector<KernelLaunch> launches;
  const Problem& problem = parts.problem.problem;
  if (problem.grouping != Grouping::kNone) {
    launches.push_back(group_tiles_launch(problem, parts.buffers, tile_m_of(parts.instance.config),
                                          parts.workspace));
  }
  const Params params = params_of(parts);
  launches.push_back(launch_of(parts, params));
  if (is_divided(parts.division) && params.shares.first_shared_tile() < params.tiles) {
    const Config& config = parts.instance.config;
    launches.push_back(finish_partials_launch({.of_tiles = params,
                                               .shape = tile_shape_of(config),
                                               .items = static_cast<uint32_t>(items_of(config)),
                                               .unit = sum_unit_of(config.a_type)}));
  }
  return launches;
}

}  // namespace dualgemm::cuda::sm80
