#include "cuda/kernels/sm100a_w4a16/launch.hpp"

#include <string>

#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/blackwell/group_operands.hpp"
#include "cuda/kernels/blackwell/kernel_launch.hpp"
#include "cuda/kernels/blackwell/operands.hpp"
#include "cuda/kernels/blackwell/packed_weights.hpp"
#include "cuda/kernels/sm100a_w4a16/params.hpp"

namespace dualgemm::cuda::sm100a_w4a16 {
namespace {

using core::ceil_div;

// Everything but the tensor maps.
Params scalar_params(const core::ResolvedProblem& problem, const Buffers& buffers, int tile_m,
                     int split) {
  const Problem& p = problem.problem;
  Params params{};
  set_epilogue(problem, buffers, params);
  params.output = output_type_of(p.d.type);
  params.num_k_tiles = static_cast<uint32_t>(ceil_div(p.k, kTileK));
  params.tiles_m = static_cast<uint32_t>(ceil_div(p.m, tile_m));
  params.tiles_n = static_cast<uint32_t>(ceil_div(p.n, kTileN));
  params.split = static_cast<uint32_t>(split);
  params.batches = static_cast<uint32_t>(p.l);
  return params;
}

// A has no scales.
blackwell::OperandMaps maps_of(Params& params) {
  return {.a = &params.map_a,
          .gate = &params.map_gate,
          .up = &params.map_up,
          .sf_a = nullptr,
          .sf_gate = &params.map_sf_gate,
          .sf_up = &params.map_sf_up};
}

// All maps. `packed`: or null, where weights are read as they lie.
Status place_maps(const core::ResolvedProblem& problem, const Buffers& buffers,
                  const blackwell::Copies& copies, void* workspace, int tile_m,
                  EncodeTiled encode_tiled, const uint8_t* packed, Params& params,
                  std::vector<KernelLaunch>& launches) {
  params.prepared = params.linear_gate = params.linear_up = packed != nullptr;
  if (!params.prepared) {
    return blackwell::place_operands(problem, buffers, copies, workspace, tile_m, kTileN,
                                     encode_tiled, maps_of(params), launches);
  }
  DUALGEMM_TRY(blackwell::encode_weights(
      problem.problem, packed, kTileN, encode_tiled,
      {&params.map_gate, &params.map_up, &params.map_sf_gate, &params.map_sf_up}));
  return blackwell::place_operand(
      {"a", "a_scales", &problem.a, buffers.a, buffers.a_scales, copies.a, copies.sf_a},
      problem.problem.l, tile_m, workspace, encode_tiled, &params.map_a, nullptr, launches);
}

KernelLaunch launch_of(const Instance& instance, int64_t ctas, int split, const Params& params) {
  const char* const module =
      instance.config.grouped ? "dual_gemm_sm100a_w4a16_groups" : "dual_gemm_sm100a_w4a16";
  return blackwell::overlapping_launch(module, instance, ctas, split, params);
}

}  // namespace

blackwell::Copies plan_copies(const core::ResolvedProblem& problem, bool unaligned, bool prepared,
                              bool persistent) {
  return problem.problem.grouping == Grouping::kNone && !persistent
             ? blackwell::plan_copies(problem, unaligned, prepared)
             : blackwell::plan_group_copies(problem, unaligned, prepared);
}

int64_t workspace_bytes(const Problem& problem, const blackwell::Copies& copies,
                        const Instance& instance) {
  if (problem.grouping == Grouping::kNone) return copies.workspace_bytes;
  return blackwell::table_offset(copies) + group_tiles_bytes(problem, instance.config.tile_m);
}

Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers,
                                                   const blackwell::Copies& copies, void* workspace,
                                                   const Instance& instance, int split,
                                                   EncodeTiled encode_tiled,
                                                   const uint8_t* packed) {
  const Problem& p = problem.problem;
  const int tile_m = instance.config.tile_m;
  if (split < 1 || split > kMaxSplit || split > ceil_div(p.k, kTileK)) {
    return Status::unsupported("plan.shape.ctas", std::to_string(num_tiles(p, tile_m) * split),
                               "must be 1 to 8 CTAs for each tile of D, at most one a tile of k");
  }
  Params params = scalar_params(problem, buffers, tile_m, split);
  std::vector<KernelLaunch> launches;
  DUALGEMM_TRY(place_maps(problem, buffers, copies, workspace, tile_m, encode_tiled, packed, params,
                          launches));
  launches.push_back(launch_of(instance, num_tiles(p, tile_m) * split, split, params));
  return launches;
}

Expected<std::vector<KernelLaunch>> build_persistent_launches(
    const core::ResolvedProblem& given, const Buffers& buffers, const blackwell::Copies& copies,
    void* workspace, const Instance& instance, int64_t ctas, EncodeTiled encode_tiled,
    const uint8_t* packed) {
  const core::ResolvedProblem problem = with_shared_rows(given);
  const int tile_m = instance.config.tile_m;
  Params params = scalar_params(problem, buffers, tile_m, 1);
  std::vector<KernelLaunch> launches;
  DUALGEMM_TRY(blackwell::place_groups(
      {problem, buffers, copies, workspace, encode_tiled, packed, tile_m, tile_m, kTileN},
      maps_of(params), params, launches));
  launches.push_back(launch_of(instance, ctas, 1, params));
  return launches;
}

}  // namespace dualgemm::cuda::sm100a_w4a16
