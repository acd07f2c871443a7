#include "cuda/kernels/sm100a_pair/launch.hpp"

#include <fmt/format.h>

#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/sm100a/operands.hpp"
#include "cuda/kernels/sm100a_pair/extents.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::sm100a_pair {

Status supports(const Problem& problem) {
  DUALGEMM_TRY(sm100a::supports(problem));
  int64_t ctas = num_pairs(problem.m, problem.n, 1, 64) * kPairCtas;  // below 2^50
  if (!__builtin_mul_overflow(ctas, problem.l, &ctas) && ctas <= kMaxCtas) return {};
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "must be at most 2^30 - 1 tiles of 256 x 64");
}

const Instance* find_instance(int64_t tile_n, DataType output) {
  for (const Instance& instance : instances()) {
    if (instance.config == Config{static_cast<int>(tile_n), output_type_of(output)})
      return &instance;
  }
  return nullptr;
}

Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers,
                                                   const sm100a::Copies& copies, void* workspace,
                                                   const Instance& instance,
                                                   EncodeTiled encode_tiled) {
  const Problem& p = problem.problem;
  const int tile_n = instance.config.tile_n;
  sm100a::Params params{};
  std::vector<KernelLaunch> launches;
  DUALGEMM_TRY(sm100a::fill_in(problem, buffers, copies, workspace,
                               {kTileM, tile_n, kCtaRows, tile_n / kPairCtas}, encode_tiled, params,
                               launches));
  KernelLaunch launch{.kernel = {"dual_gemm_sm100a_pair", instance.entry, instance.kernel},
                      .ctas = static_cast<uint32_t>(num_pairs(p.m, p.n, p.l, tile_n) * kPairCtas),
                      .threads = kThreads,
                      .dynamic_smem_bytes = instance.dynamic_smem_bytes,
                      .cluster_ctas = kPairCtas,
                      .overlaps_previous = true};
  launch.set_params(params);
  launches.push_back(launch);
  return launches;
}

}  // namespace dualgemm::cuda::sm100a_pair
