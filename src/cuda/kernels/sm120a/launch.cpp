#include "cuda/kernels/sm120a/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/common/view_of.hpp"
#include "cuda/kernels/sm120a/packed_weights.hpp"
#include "cuda/kernels/sm120a/params.hpp"
#include "cuda/kernels/sm120a/tiles.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::sm120a {
namespace {

using core::ceil_div;

constexpr int64_t kBlockCodeBytes = 8, kScaleWord = 4;  // what is copied at a time at the least

// With the lowest tiles.
Status check_tiles(const Problem& problem) {
  const bool grouped = problem.grouping != Grouping::kNone;
  if (grouped) DUALGEMM_TRY(check_groups(problem));
  int64_t tiles = grouped ? most_listed_tiles(problem, kGroupRows)  // below 2^59
                          : ceil_div(problem.m, kGroupRows);
  if (!__builtin_mul_overflow(tiles, ceil_div(problem.n, kTileN), &tiles) &&
      (grouped || !__builtin_mul_overflow(tiles, problem.l, &tiles)) && tiles <= kMaxCtas) {
    return {};
  }
  return Status::unsupported(
      "m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
      fmt::format("must be at most 2^31 - 1 tiles of {} x {}", kGroupRows, kTileN));
}

uint32_t alignment_of_codes(const Params& params) {
  const auto begin_at = [&](int64_t bytes) {
    const bool weights =
        params.packed.units != nullptr || (rows_begin_at_multiples_of(bytes, params.gate) &&
                                           rows_begin_at_multiples_of(bytes, params.up));
    return weights && rows_begin_at_multiples_of(bytes, params.a);
  };
  return begin_at(kPieceBytes) ? kPieceBytes : begin_at(kBlockCodeBytes) ? kBlockCodeBytes : 1;
}

uint32_t alignment_of_scales(const Params& params) {
  const bool packed = params.packed.units != nullptr;
  const auto begin_at = [&](int64_t bytes) {
    const bool weights = packed || (scales_begin_at_multiples_of(bytes, params.gate.scales) &&
                                    scales_begin_at_multiples_of(bytes, params.up.scales));
    return weights && scales_begin_at_multiples_of(bytes, params.a.scales);
  };
  const bool in_rows = !params.a.scales.swizzled &&
                       (packed || (!params.gate.scales.swizzled && !params.up.scales.swizzled));
  return in_rows && begin_at(kScaleBytes) ? kScaleBytes : begin_at(kScaleWord) ? kScaleWord : 1;
}

}  // namespace

Status supports(const Problem& problem) {
  if (problem.a.type != DataType::kE2M1) {
    return Status::unsupported("a.type", name_of(problem.a.type),
                               "the sm_120a kernel takes e2m1; 16 bits are for sm80's");
  }
  DUALGEMM_TRY(check_extents(problem));
  return check_tiles(problem);
}

const Instance* find_instance(int64_t tile_m) {
  for (const Instance& instance : instances()) {
    if (tile_m_of(instance.config) == tile_m) return &instance;
  }
  return nullptr;
}

bool has_stages(const Config& config, int64_t stages) {
  return stages >= kMinStages && stages <= kMaxStages &&
         smem_bytes_of(config, static_cast<int>(stages)) + kSmemOfSystem <= kSmemOfSm;
}

int64_t workspace_bytes(const Problem& problem, const Instance& instance) {
  if (problem.grouping == Grouping::kNone) return 0;
  return group_tiles_bytes(problem, tile_m_of(instance.config));
}

std::vector<KernelLaunch> build_launches(const LaunchParts& parts) {
  const core::ResolvedProblem problem = with_shared_rows(parts.problem);
  const Problem& p = problem.problem;
  const Buffers& buffers = parts.buffers;
  const Config& config = parts.instance.config;
  const int64_t tile_m = tile_m_of(config);
  const bool grouped = p.grouping != Grouping::kNone;
  Params params{};
  params.a = view_of(problem.a, buffers.a, buffers.a_scales);
  params.gate = view_of(problem.gate, buffers.gate, buffers.gate_scales);
  params.up = view_of(problem.up, buffers.up, buffers.up_scales);
  if (parts.prepared != nullptr) params.packed = packed_weights(p, parts.prepared);
  set_epilogue(problem, buffers, params);
  params.output = output_type_of(p.d.type);
  params.codes_aligned = alignment_of_codes(params);
  params.scales_aligned = alignment_of_scales(params);
  params.k16 = static_cast<uint32_t>(p.k / 16);
  params.stages = static_cast<uint32_t>(parts.stages);
  if (grouped) params.groups = group_tiles_of(p, buffers, parts.workspace);
  params.row_index = row_index_of(p, buffers);
  const Tiles tiles = tiles_of(p, config, p.m, parts.ctas);
  params.tiles_m = static_cast<uint32_t>(tiles.tiles_m);
  params.halves_m = static_cast<uint32_t>(tiles.halves_m);
  params.whole_n = static_cast<uint32_t>(tiles.whole_n);
  params.tiles_n = static_cast<uint32_t>(tiles.tiles_n);
  const int64_t most =
      grouped ? most_group_tiles(p, tile_m) * tiles.tiles_n : tiles.of_batch() * p.l;
  params.tiles = static_cast<uint32_t>(most);
  KernelLaunch launch{
      .kernel = {"dual_gemm_sm120a", parts.instance.entry, parts.instance.kernel},
      .ctas = static_cast<uint32_t>(parts.ctas == 0 ? most : std::min(parts.ctas, most)),
      .threads = static_cast<uint32_t>(threads_of(config)),
      .dynamic_smem_bytes =
          static_cast<uint32_t>(smem_bytes_of(config, static_cast<int>(parts.stages)))};
  launch.set_params(params);
  std::vector<KernelLaunch> launches;
  if (grouped) launches.push_back(group_tiles_launch(p, buffers, tile_m, parts.workspace));
  launches.push_back(launch);
  return launches;
}

}  // namespace dualgemm::cuda::sm120a
