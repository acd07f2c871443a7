#include "cuda/kernels/sm100a/launch.hpp"

#include "cuda/kernels/blackwell/extents.hpp"
#include "cuda/kernels/blackwell/operands.hpp"

namespace dualgemm::cuda::sm100a {

Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers,
                                                   const blackwell::Copies& copies, void* workspace,
                                                   const Instance& instance,
                                                   EncodeTiled encode_tiled) {
  const Problem& p = problem.problem;
  const int tile_n = instance.config.tile_n;
  blackwell::Params params{};
  std::vector<KernelLaunch> launches;
  DUALGEMM_TRY(blackwell::fill_in(problem, buffers, copies, workspace,
                                  {kTileM, tile_n, kTileM, tile_n}, encode_tiled, params,
                                  launches));
  KernelLaunch launch{.kernel = {"dual_gemm_sm100a", instance.entry, instance.kernel},
                      .ctas = static_cast<uint32_t>(blackwell::num_ctas(p.m, p.n, p.l, tile_n)),
                      .threads = instance.threads,
                      .dynamic_smem_bytes = instance.dynamic_smem_bytes};
  launch.set_params(params);
  launches.push_back(launch);
  return launches;
}

}  // namespace dualgemm::cuda::sm100a
