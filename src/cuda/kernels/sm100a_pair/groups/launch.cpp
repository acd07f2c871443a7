#include "cuda/kernels/sm100a_pair/groups/launch.hpp"

#include <algorithm>

#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/blackwell/checks.hpp"
#include "cuda/kernels/blackwell/group_operands.hpp"
#include "cuda/kernels/blackwell/kernel_launch.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/sm100a_pair/groups/params.hpp"

namespace dualgemm::cuda::sm100a_pair_groups {

using core::ceil_div;

Status supports(const Problem& problem) {
  if (problem.grouping == Grouping::kNone)
    return Status::unsupported("grouping", "none", "this kernel is for groups");
  if (problem.batch_invariant)
    return Status::unsupported("batch_invariant", "true", "only the kernel for few rows is");
  return blackwell::check_with_groups(problem);
}

const Instance& instance_for(DataType output) {
  const auto all = instances();
  return *std::find_if(all.begin(), all.end(), [&](const Instance& instance) {
    return instance.config == config_of(output_type_of(output));
  });
}

int64_t ctas_for(const Problem& problem, int64_t most) {
  const int64_t pairs = std::max(most / kPairCtas, int64_t{1});
  return std::min(most_group_tiles(problem, kTileM) * ceil_div(problem.n, kTileN), pairs) *
         kPairCtas;
}

int64_t workspace_bytes(const Problem& problem, const blackwell::Copies& copies) {
  return blackwell::table_offset(copies) + group_tiles_bytes(problem, kTileM);
}

Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& given,
                                                   const Buffers& buffers,
                                                   const blackwell::Copies& copies, void* workspace,
                                                   const Instance& instance, int64_t ctas,
                                                   EncodeTiled encode_tiled,
                                                   const uint8_t* packed) {
  DUALGEMM_TRY(supports(given.problem));
  const core::ResolvedProblem problem = with_shared_rows(given);
  const Problem& p = problem.problem;
  Params params{};
  set_epilogue(problem, buffers, params);
  params.num_k_tiles = static_cast<uint32_t>(ceil_div(p.k, kTileK));
  params.tiles_n = static_cast<uint32_t>(ceil_div(p.n, kTileN));
  std::vector<KernelLaunch> launches;
  DUALGEMM_TRY(blackwell::place_groups(
      {problem, buffers, copies, workspace, encode_tiled, packed, kTileM, kCtaRows, kBoxCols},
      {&params.map_a, &params.map_gate, &params.map_up, &params.map_sf_a, &params.map_sf_gate,
       &params.map_sf_up},
      params, launches));
  launches.push_back(blackwell::overlapping_launch("dual_gemm_sm100a_pair_groups", instance, ctas,
                                                   kPairCtas, params));
  return launches;
}

}  // namespace dualgemm::cuda::sm100a_pair_groups
