#include "cuda/kernels/sm100a_skinny/launch.hpp"

#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/blackwell/group_operands.hpp"
#include "cuda/kernels/blackwell/kernel_launch.hpp"
#include "cuda/kernels/blackwell/operands.hpp"
#include "cuda/kernels/blackwell/packed_weights.hpp"
#include "cuda/kernels/sm100a_skinny/params.hpp"

namespace dualgemm::cuda::sm100a_skinny {
namespace {

using core::ceil_div;

// Where the views of the operands go.
blackwell::OperandMaps maps_of(Params& params) {
  return {&params.map_a,    &params.map_gate,    &params.map_up,
          &params.map_sf_a, &params.map_sf_gate, &params.map_sf_up};
}

// Everything but the tensor maps.
Params scalar_params(const core::ResolvedProblem& problem, const Buffers& buffers,
                     const Config& config) {
  const Problem& p = problem.problem;
  Params params{};
  set_epilogue(problem, buffers, params);
  params.output = output_type_of(p.d.type);
  params.num_k_tiles = static_cast<uint32_t>(ceil_div(p.k, kTileK));
  params.tiles_n = static_cast<uint32_t>(ceil_div(p.n, config.tile_n));
  params.batches = static_cast<uint32_t>(p.l);
  return params;
}

Status check_instance(const Problem& problem, const Config& config, bool prepared) {
  const bool grouped = problem.grouping != Grouping::kNone;
  if (!config.grouped && config.prepared != prepared) {
    return Status::unsupported(
        "prepared", prepared ? "true" : "false",
        config.prepared ? "this tile is for prepared weights" : "this tile takes unpacked weights");
  }
  if (grouped && !config.grouped) {
    return Status::unsupported("grouping", dualgemm::name_of(problem.grouping),
                               "this tile takes none");
  }
  if (grouped || problem.m <= config.tile_m) return {};
  return Status::unsupported("m", std::to_string(problem.m),
                             "must be at most " + std::to_string(config.tile_m) + " for this tile");
}

// All maps of a problem without groups.
Status place_rows(const core::ResolvedProblem& problem, const Buffers& buffers,
                  const blackwell::Copies& copies, void* workspace, const Config& config,
                  EncodeTiled encode_tiled, const uint8_t* packed, Params& params,
                  std::vector<KernelLaunch>& launches) {
  if (!config.prepared) {
    return blackwell::place_operands(problem, buffers, copies, workspace, config.tile_m,
                                     config.tile_n, encode_tiled, maps_of(params), launches);
  }
  DUALGEMM_TRY(blackwell::encode_weights(
      problem.problem, packed, config.tile_n, encode_tiled,
      {&params.map_gate, &params.map_up, &params.map_sf_gate, &params.map_sf_up}));
  return blackwell::place_operand(
      {"a", "a_scales", &problem.a, buffers.a, buffers.a_scales, copies.a, copies.sf_a},
      problem.problem.l, config.tile_m, workspace, encode_tiled, &params.map_a, &params.map_sf_a,
      launches);
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

Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& given,
                                                   const Buffers& buffers,
                                                   const blackwell::Copies& copies, void* workspace,
                                                   const Instance& instance, int64_t ctas,
                                                   EncodeTiled encode_tiled,
                                                   const uint8_t* packed) {
  const Config& config = instance.config;
  DUALGEMM_TRY(check_instance(given.problem, config, packed != nullptr));
  const core::ResolvedProblem problem = with_shared_rows(given);
  Params params = scalar_params(problem, buffers, config);
  std::vector<KernelLaunch> launches;
  DUALGEMM_TRY(config.grouped ? place_groups({problem, buffers, copies, workspace, encode_tiled,
                                              packed, config.tile_m, config.tile_m, config.tile_n},
                                             maps_of(params), params, launches)
                              : place_rows(problem, buffers, copies, workspace, config,
                                           encode_tiled, packed, params, launches));
  const char* const module = config.grouped    ? "dual_gemm_sm100a_skinny_groups"
                             : config.prepared ? "dual_gemm_sm100a_skinny_prepared"
                                               : "dual_gemm_sm100a_skinny";
  launches.push_back(blackwell::overlapping_launch(module, instance, ctas, 1, params));
  return launches;
}

}  // namespace dualgemm::cuda::sm100a_skinny
