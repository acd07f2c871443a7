#include "cuda/kernels/sm80/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/common/block_rows.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/common/view_of.hpp"
#include "cuda/kernels/packed/packed_weights.hpp"
#include "cuda/kernels/sm80/finish_partials.hpp"
#include "cuda/kernels/sm80/params.hpp"

namespace dualgemm::cuda::sm80 {
namespace {

using core::ceil_div;

constexpr int64_t kBlockCodeBytes = 8, kPieceBytes = 16;  // what is copied at a time

constexpr int64_t kMaxR1Bytes = int64_t{1} << 40;  // far beyond any memory, and of an offset
constexpr int64_t kSectorFloats = 8;               // memory moves 32 bytes

int64_t r1_ld(const Problem& problem) { return core::round_up(problem.n, kSectorFloats); }

Params params_of(const LaunchParts& parts) {
  const core::ResolvedProblem problem = with_shared_rows(parts.problem);
  const Problem& p = problem.problem;
  const Buffers& buffers = parts.buffers;
  const Config& config = parts.instance.config;
  const bool grouped = p.grouping != Grouping::kNone;
  Params params{};
  params.a_type = a_type_of(p.a.type);
  params.sum_unit = sum_unit_of(params.a_type);
  params.pass = config.pass;
  params.unit_cols = unit_cols_of(config.pass);
  params.a = view_of(problem.a, buffers.a, buffers.a_scales);
  params.gate = view_of(problem.gate, buffers.gate, buffers.gate_scales);
  params.up = view_of(problem.up, buffers.up, buffers.up_scales);
  if (config.pass == Pass::kGate) params.up = params.gate;
  if (config.pass == Pass::kUp) params.gate = params.up;
  if (config.prepared) params.packed = packed_weights(p, parts.prepared);
  set_epilogue(problem, buffers, params);
  params.r1 = static_cast<float*>(parts.workspace);
  params.r1_ld = r1_ld(p);
  params.output = output_type_of(p.d.type);
  const int64_t a_bytes = params.a_type == AType::kE2M1 ? kBlockCodeBytes : kPieceBytes;
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
                           word_bytes_of(params.a_type) <=
                       int64_t{UINT32_MAX};
  if (grouped) params.groups = group_tiles_of(p, buffers, parts.workspace);
  params.row_index = row_index_of(p, buffers);
  const int64_t tile_m = tile_m_of(config);
  params.tiles_m = static_cast<uint32_t>(ceil_div(p.m, tile_m));
  params.tiles_n = static_cast<uint32_t>(ceil_div(p.n, tile_n_of(config)));
  params.tiles = static_cast<uint32_t>(most_tiles_of(p, config));
  params.chunks = Divisor(static_cast<uint32_t>(chunks_of(p)));
  params.block_tiles = Divisor(params.tiles_n * kBlockRows);
  params.batch_tiles = Divisor(grouped ? 1 : params.tiles_m * params.tiles_n);
  params.splits = Divisor(static_cast<uint32_t>(std::max<int64_t>(parts.division.splits, 1)));
  if (const auto ctas = static_cast<uint32_t>(parts.division.ctas); ctas > 0) {
    params.shares = has_shares(parts.division)
                        ? make_shares(params.tiles, params.chunks.value, ctas)
                        : make_turns(params.tiles, ctas);
  }
  params.partials = static_cast<float*>(parts.workspace);
  return params;
}

KernelLaunch launch_of(const LaunchParts& parts, const Params& params) {
  const Config& config = parts.instance.config;
  KernelLaunch launch{
      .kernel = {config.prepared ? "dual_gemm_sm80_prepared" : "dual_gemm_sm80",
                 parts.instance.entry, parts.instance.kernel},
      .ctas = params.shares.ctas > 0 ? params.shares.ctas : params.tiles * params.splits.value,
      .threads = static_cast<uint32_t>(threads_of(config)),
      .dynamic_smem_bytes = static_cast<uint32_t>(smem_bytes_of(config))};
  launch.set_params(params);
  return launch;
}

}  // namespace

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

int64_t workspace_bytes(const Problem& problem, const Instance& instance,
                        const Division& division) {
  const Config& config = instance.config;
  if (problem.grouping != Grouping::kNone) return group_tiles_bytes(problem, tile_m_of(config));
  return is_divided(division) ? partial_bytes(problem, config, division) : 0;
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
                                               .items = static_cast<uint32_t>(items_of(config))}));
  }
  return launches;
}

}  // namespace dualgemm::cuda::sm80
