#include "cuda/kernels/sm100a_skinny/launch.hpp"

#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/convert/tma_operand.hpp"
#include "cuda/kernels/sm100a_skinny/params.hpp"

namespace dualgemm::cuda::sm100a_skinny {
namespace {

using core::ceil_div;

Status settle(TmaOperand& operand, int64_t batches) {
  DUALGEMM_TRY(settle_copy(operand.name, operand.data, data_needs_copy(*operand.matrix, batches),
                           &operand.data_copy));
  return settle_copy(operand.scales_name, operand.scales,
                     !swizzled_scales_suit(*operand.matrix, batches), &operand.scale_copy);
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
  return params;
}

}  // namespace

Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers,
                                                   const sm100a::Copies& copies, void* workspace,
                                                   const Instance& instance,
                                                   EncodeTiled encode_tiled) {
  const auto& [tile_m, tile_n] = instance.config;
  const int64_t batches = problem.problem.l;
  if (problem.problem.m > tile_m) {
    return Status::unsupported("m", std::to_string(problem.problem.m),
                               "must be at most " + std::to_string(tile_m) + " for this tile");
  }
  auto* const base = static_cast<uint8_t*>(workspace);
  Params params = scalar_params(problem, buffers, instance.config);
  struct {
    TmaOperand operand;
    int box_rows;
    TensorMap *data, *scales;
  } operands[] = {
      {{"a", "a_scales", &problem.a, buffers.a, buffers.a_scales, copies.a, copies.sf_a},
       tile_m,
       &params.map_a,
       &params.map_sf_a},
      {{"gate", "gate_scales", &problem.gate, buffers.gate, buffers.gate_scales, copies.gate,
        copies.sf_gate},
       tile_n,
       &params.map_gate,
       &params.map_sf_gate},
      {{"up", "up_scales", &problem.up, buffers.up, buffers.up_scales, copies.up, copies.sf_up},
       tile_n,
       &params.map_up,
       &params.map_sf_up},
  };
  std::vector<KernelLaunch> launches;
  for (auto& [operand, box_rows, data, scales] : operands) {
    DUALGEMM_TRY(settle(operand, batches));
    DUALGEMM_TRY(encode(data_view(operand, batches, box_rows, base), encode_tiled, data));
    DUALGEMM_TRY(
        encode(swizzled_scale_view(operand, batches, kMmaSteps, base), encode_tiled, scales));
    add_copies(operand, batches, base, launches);
  }
  KernelLaunch launch{.kernel = {"dual_gemm_sm100a_skinny", instance.entry, instance.kernel},
                      .ctas = static_cast<uint32_t>(params.tiles_n * batches),
                      .threads = kThreads,
                      .dynamic_smem_bytes = instance.dynamic_smem_bytes,
                      .overlaps_previous = true};
  launch.set_params(params);
  launches.push_back(launch);
  return launches;
}

}  // namespace dualgemm::cuda::sm100a_skinny
