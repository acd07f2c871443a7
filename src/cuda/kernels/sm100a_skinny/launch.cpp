#include "cuda/kernels/sm100a_skinny/launch.hpp"

#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/sm100a/operands.hpp"
#include "cuda/kernels/sm100a_skinny/params.hpp"

namespace dualgemm::cuda::sm100a_skinny {
namespace {

using core::ceil_div;

// Everything but the tensor maps.
Params scalar_params(const core::ResolvedProblem& problem, const Buffers& buffers,
                     const Config& config) {
  const Problem& p = problem.problem;
  Params params{};
  set_epilogue(problem, buffers, params);
  params.output = output_type_of(p.d.type);
  params.num_k_tiles = static_cast<uint32_t>(ceil_div(p.k, kTileK));
  params.tiles_n = static_cast<uint32_t>(ceil_div(p.n, config.tile_n));
  return params;
}

}  // namespace

Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers,
                                                   const sm100a::Copies& copies, void* workspace,
                                                   const Instance& instance,
                                                   EncodeTiled encode_tiled) {
  const auto& [tile_m, tile_n] = instance.config;
  if (problem.problem.m > tile_m) {
    return Status::unsupported("m", std::to_string(problem.problem.m),
                               "must be at most " + std::to_string(tile_m) + " for this tile");
  }
  Params params = scalar_params(problem, buffers, instance.config);
  std::vector<KernelLaunch> launches;
  DUALGEMM_TRY(sm100a::place_operands(problem, buffers, copies, workspace, tile_m, tile_n,
                                      encode_tiled,
                                      {&params.map_a, &params.map_gate, &params.map_up,
                                       &params.map_sf_a, &params.map_sf_gate, &params.map_sf_up},
                                      launches));
  KernelLaunch launch{.kernel = {"dual_gemm_sm100a_skinny", instance.entry, instance.kernel},
                      .ctas = static_cast<uint32_t>(params.tiles_n * problem.problem.l),
                      .threads = kThreads,
                      .dynamic_smem_bytes = instance.dynamic_smem_bytes,
                      .overlaps_previous = true};
  launch.set_params(params);
  launches.push_back(launch);
  return launches;
}

}  // namespace dualgemm::cuda::sm100a_skinny
