#include "cuda/kernels/sm90a_skinny/launch.hpp"

#include <string>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/packed/packed_weights.hpp"
#include "cuda/kernels/sm90a_skinny/operand_a.hpp"
#include "cuda/kernels/sm90a_skinny/params.hpp"

namespace dualgemm::cuda::sm90a_skinny {
namespace {

using core::ceil_div;

PackedView view_of(const core::ResolvedMatrix& matrix, const void* rows, const uint8_t* scales) {
  PackedView view{};
  view.codes = static_cast<const uint8_t*>(rows);
  view.row_bytes = core::bytes_of(matrix.type, matrix.ld);
  view.batch_bytes = core::bytes_of(matrix.type, matrix.batch_stride);
  if (matrix.type != DataType::kE2M1) return view;
  view.scales = scales;
  view.swizzled = matrix.scale_layout == ScaleLayout::kSwizzled128x4;
  view.scale_ld = view.swizzled ? ceil_div(matrix.sf_cols, 4) * kScaleTileBytes : matrix.scale_ld;
  view.scale_batch_bytes = matrix.scale_batch_stride;
  return view;
}

// Rows of scales at multiples of 16 bytes.
bool is_wide(const PackedView& view) {
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(view.scales) % 16);
  return !view.swizzled && (address | view.scale_ld | view.scale_batch_bytes) % 16 == 0;
}

Params params_of(const core::ResolvedProblem& given, const Buffers& buffers, const Config& config,
                 int64_t ctas, const uint8_t* prepared, const void* table) {
  const core::ResolvedProblem problem = with_shared_rows(given);
  const Problem& p = problem.problem;
  Params params{};
  if (config.prepared) {
    params.packed = packed_weights(p, prepared);
  } else {
    params.gate = view_of(problem.gate, buffers.gate, buffers.gate_scales);
    params.up = view_of(problem.up, buffers.up, buffers.up_scales);
    params.wide_scales = is_wide(params.gate) && is_wide(params.up);
  }
  params.a = view_of(problem.a, buffers.a, buffers.a_scales);
  set_epilogue(problem, buffers, params);
  params.output = output_type_of(p.d.type);
  params.k = static_cast<uint32_t>(p.k);
  params.k_tiles = static_cast<uint32_t>(ceil_div(p.k, kTileK));
  params.chunks = static_cast<uint32_t>(p.k / kChunkK);
  const Split split = split_of(p, config, ctas);
  params.tiles_n = Divisor(static_cast<uint32_t>(split.tiles));
  params.tiles = static_cast<uint32_t>(split.tiles * p.l);
  params.wide_tiles =
      split.narrow_units > 0 ? static_cast<uint32_t>(split.wide_tiles) : params.tiles;
  params.narrow_units = static_cast<uint32_t>(split.narrow_units);
  params.groups = group_tiles_of(p, buffers, table);
  params.group_rows = group_rows_of(p, buffers, config.tile_m);
  params.row_index = row_index_of(p, buffers);
  params.keeps_index = params.row_index.of_a != nullptr && p.m <= kept_rows(config);
  return params;
}

Status check_address(const char* name, const void* data, int64_t alignment) {
  const auto rest =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment));
  if (rest == 0) return {};
  return Status::unsupported(
      name, "address % " + std::to_string(alignment) + " = " + std::to_string(rest),
      "must be 0, or planned for with PlanOptions::unaligned");
}

}  // namespace

namespace {

// Whether CTAs find the tiles of groups by themselves, of which there are at most `tiles`.
bool finds_tiles(const Problem& problem, int64_t tiles) {
  return tiles <= kOwnTiles && problem.l <= kOwnExperts;
}

// Whether a table of groups' tiles comes first.
bool needs_table(const Problem& problem, const Buffers& buffers, const Config& config) {
  if (!config.grouped) return false;
  return !finds_tiles(problem, buffers.row_experts == nullptr
                                   ? most_group_tiles(problem, config.tile_m)
                                   : most_listed_tiles(problem, config.tile_m));
}

}  // namespace

int64_t workspace_bytes(const Problem& problem, const Instance& instance) {
  const int64_t tile_m = instance.config.tile_m;
  if (!instance.config.grouped || finds_tiles(problem, most_listed_tiles(problem, tile_m)))
    return 0;
  return group_tiles_bytes(problem, tile_m);
}

Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers, void* workspace,
                                                   const Instance& chosen, int64_t ctas,
                                                   const uint8_t* prepared) {
  const Instance& instance = launched_instance(problem.problem, chosen, ctas);
  DUALGEMM_TRY(check_address("a", buffers.a, a_alignment(problem.problem.a.type)));
  if (!instance.config.prepared) {
    DUALGEMM_TRY(check_address("gate", buffers.gate, kCodeAlignment));
    DUALGEMM_TRY(check_address("up", buffers.up, kCodeAlignment));
    DUALGEMM_TRY(check_address("gate_scales", buffers.gate_scales, kScaleAlignment));
    DUALGEMM_TRY(check_address("up_scales", buffers.up_scales, kScaleAlignment));
  }
  std::vector<KernelLaunch> launches;
  const void* const table =
      needs_table(problem.problem, buffers, instance.config) ? workspace : nullptr;
  if (table != nullptr) {
    launches.push_back(
        group_tiles_launch(problem.problem, buffers, instance.config.tile_m, workspace));
    launches.back().overlaps_previous = true;
  }
  const char* const module = instance.config.grouped ? "dual_gemm_sm90a_skinny_groups"
                             : instance.config.many  ? "dual_gemm_sm90a_skinny_many"
                                                     : "dual_gemm_sm90a_skinny";
  KernelLaunch launch{.kernel = {module, instance.entry, instance.kernel},
                      .ctas = static_cast<uint32_t>(ctas),
                      .threads = instance.threads,
                      .dynamic_smem_bytes = instance.dynamic_smem_bytes,
                      .overlaps_previous = true};
  launch.set_params(params_of(problem, buffers, instance.config, ctas, prepared, table));
  launches.push_back(launch);
  return launches;
}

}  // namespace dualgemm::cuda::sm90a_skinny
