#include "cuda/kernels/sm100a_pair/launch.hpp"

#include <fmt/format.h>

#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/blackwell/checks.hpp"
#include "cuda/kernels/blackwell/kernel_launch.hpp"
#include "cuda/kernels/blackwell/operands.hpp"
#include "cuda/kernels/blackwell/packed_weights.hpp"
#include "cuda/kernels/blackwell/tile_choice.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::sm100a_pair {
namespace {

// All of `params`, where the weights are prepared.
Status fill_in_prepared(const core::ResolvedProblem& problem, const Buffers& buffers,
                        const blackwell::Copies& copies, void* workspace,
                        const blackwell::Tiling& tiling, EncodeTiled encode_tiled,
                        const uint8_t* packed, blackwell::Params& params,
                        std::vector<KernelLaunch>& launches) {
  const Problem& p = problem.problem;
  blackwell::set_scalars(problem, buffers, tiling, params);
  DUALGEMM_TRY(
      encode(blackwell::unit_codes_view(p, packed, tiling.cols), encode_tiled, &params.map_gate));
  DUALGEMM_TRY(encode(blackwell::unit_scales_view(p, packed, tiling.cols), encode_tiled,
                      &params.map_sf_gate));
  return blackwell::place_operand(
      {"a", "a_scales", &problem.a, buffers.a, buffers.a_scales, copies.a, copies.sf_a}, p.l,
      tiling.box_rows_a, workspace, encode_tiled, &params.map_a, &params.map_sf_a, launches,
      &params.linear_a);
}

}  // namespace

Status supports(const Problem& problem) {
  DUALGEMM_TRY(blackwell::check_without_groups(problem));
  int64_t ctas = blackwell::num_pairs(problem.m, problem.n, 1, blackwell::kNarrowestTile) *
                 kPairCtas;  // below 2^50
  if (!__builtin_mul_overflow(ctas, problem.l, &ctas) && ctas <= kMaxCtas) return {};
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "must be at most 2^30 - 1 tiles of 256 x 48");
}

const Instance* find_instance(int64_t tile_n, DataType output, bool prepared, bool persistent) {
  const Config wanted{static_cast<int>(tile_n), output_type_of(output), prepared, persistent};
  for (const auto& list : {instances(), prepared_instances(), persistent_instances()}) {
    for (const Instance& instance : list) {
      if (instance.config == wanted) return &instance;
    }
  }
  return nullptr;
}

const char* module_of(const Config& config) {
  if (config.persistent) return "dual_gemm_sm100a_pair_persistent";
  return config.prepared ? "dual_gemm_sm100a_pair_prepared" : "dual_gemm_sm100a_pair";
}

Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers,
                                                   const blackwell::Copies& copies, void* workspace,
                                                   const Instance& instance,
                                                   EncodeTiled encode_tiled, const uint8_t* packed,
                                                   int64_t most_ctas) {
  const Problem& p = problem.problem;
  const int tile_n = instance.config.tile_n;
  blackwell::Params params{};
  std::vector<KernelLaunch> launches;
  const blackwell::Tiling tiling{kTileM, tile_n, kCtaRows, tile_n / kPairCtas};
  const bool prepared = instance.config.prepared;
  DUALGEMM_TRY(prepared ? fill_in_prepared(problem, buffers, copies, workspace, tiling,
                                           encode_tiled, packed, params, launches)
                        : blackwell::fill_in(problem, buffers, copies, workspace, tiling,
                                             encode_tiled, params, launches));
  const int64_t tiles = blackwell::num_pairs(p.m, p.n, p.l, tile_n);
  params.num_tiles = static_cast<uint32_t>(tiles);
  const int64_t ctas = instance.config.persistent
                           ? blackwell::persistent_ctas(p.m, p.n, p.l, most_ctas)
                           : tiles * kPairCtas;
  launches.push_back(
      blackwell::overlapping_launch(module_of(instance.config), instance, ctas, kPairCtas, params));
  return launches;
}

}  // namespace dualgemm::cuda::sm100a_pair
