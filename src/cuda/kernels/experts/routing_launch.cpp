#include <algorithm>
#include <bit>
#include <string>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/experts/routing.hpp"
#include "cuda/kernels/experts/routing_kernels.hpp"

namespace dualgemm::cuda {

Expected<std::vector<KernelLaunch>> route_launches(const RoutingProblem& problem,
                                                   const RoutingBuffers& buffers) {
  if (problem.experts > kMostRoutedExperts) {
    return Status::unsupported(
        "experts", std::to_string(problem.experts),
        "must be at most " + std::to_string(kMostRoutedExperts) + " on a GPU");
  }
  const int64_t count = core::routed_rows(problem), most = kRouteCounts / (problem.experts + 1);
  const int64_t ctas =
      most < 3 ? 1 : std::clamp<int64_t>(core::ceil_div(count, kRouteThreads), 1, kMostRouteCtas);
  const int64_t others = ctas > 1 ? 2 : 0;  // counters of other CTAs' ids
  const int64_t warps = std::clamp<int64_t>(core::ceil_div(count, 32), 1,
                                            std::min<int64_t>(most - others, kRouteThreads / 32));
  const RouteParams params{
      .ids = buffers.ids,
      .expert_map = buffers.expert_map,
      .weights = buffers.weights,
      .token_scale = buffers.token_scale,
      .offsets = buffers.offsets,
      .row_tokens = buffers.row_tokens,
      .places = buffers.places,
      .row_scale = buffers.row_scale,
      .count = static_cast<uint32_t>(count),
      .experts = static_cast<uint32_t>(problem.experts),
      .expert_bits = static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(problem.experts))),
      .named_experts = static_cast<uint32_t>(problem.named_experts),
      .top_k = Divisor(static_cast<uint32_t>(problem.top_k)),
      .warps = static_cast<uint32_t>(warps),
      .counters = static_cast<uint32_t>(warps + others),
      .ids_a_warp = static_cast<uint32_t>(core::round_up(core::ceil_div(count, ctas * warps), 32)),
      .weight_type = output_type_of(problem.weights_type),
      .wide_ids = problem.wide_ids};
  KernelLaunch launch{.kernel = route_kernel(), .threads = kRouteThreads};
  launch.ctas = static_cast<uint32_t>(ctas);
  launch.dynamic_smem_bytes = static_cast<uint32_t>((warps + others) * (problem.experts + 1) * 4);
  launch.set_params(params);
  return std::vector{launch};
}

Expected<std::vector<KernelLaunch>> combine_launches(const CombineProblem& problem,
                                                     const CombineBuffers& buffers) {
  const int64_t blocks = problem.cols / kSfVec, units = problem.tokens * blocks;
  if (units == 0) return std::vector<KernelLaunch>{};
  if (problem.cols >= int64_t{1} << 31 || units >= int64_t{1} << 31) {
    return Status::unsupported("tokens, cols",
                               std::to_string(problem.tokens) + ", " + std::to_string(problem.cols),
                               "must be below 2^31 blocks of 16 columns in all on a GPU");
  }
  const core::ResolvedMatrix rows =
      core::resolve(problem.rows, core::routed_rows(problem), problem.cols);
  const core::ResolvedMatrix y = core::resolve(problem.y, problem.tokens, problem.cols);
  const CombineRowsParams params{.rows = static_cast<const uint8_t*>(buffers.rows),
                                 .row_bytes = rows.row_bytes(),
                                 .places = buffers.places,
                                 .weights = buffers.weights,
                                 .residual = static_cast<const uint8_t*>(buffers.residual),
                                 .y = static_cast<uint8_t*>(buffers.y),
                                 .y_bytes = y.row_bytes(),
                                 .count = static_cast<uint32_t>(rows.rows),
                                 .tokens = static_cast<uint32_t>(problem.tokens),
                                 .top_k = static_cast<uint32_t>(problem.top_k),
                                 .blocks = Divisor(static_cast<uint32_t>(blocks)),
                                 .weight_type = output_type_of(problem.weights_type),
                                 .y_type = output_type_of(y.type)};
  KernelLaunch launch{.kernel = combine_rows_kernel(output_type_of(rows.type)),
                      .threads = kCombineThreads};
  launch.ctas = static_cast<uint32_t>(core::ceil_div(units, int64_t{kCombineThreads}));
  launch.set_params(params);
  return std::vector{launch};
}

Expected<std::vector<KernelLaunch>> gather_launches(const core::Gather& gather) {
  if (gather.rows == 0) return std::vector<KernelLaunch>{};
  if (gather.row_bytes >= int64_t{1} << 31) {
    return Status::unsupported("row_bytes", std::to_string(gather.row_bytes),
                               "must be below 2^31 on a GPU");
  }
  const uint64_t all =
      reinterpret_cast<uintptr_t>(gather.from) | reinterpret_cast<uintptr_t>(gather.to) |
      static_cast<uint64_t>(gather.from_row_bytes) | static_cast<uint64_t>(gather.row_bytes);
  const GatherParams params{.from = gather.from,
                            .from_row_bytes = gather.from_row_bytes,
                            .index = {gather.index, static_cast<uint32_t>(gather.from_rows)},
                            .to = gather.to,
                            .rows = static_cast<uint32_t>(gather.rows),
                            .row_bytes = static_cast<uint32_t>(gather.row_bytes),
                            .unit = all % 16 == 0  ? 16u
                                    : all % 4 == 0 ? 4u
                                                   : 1u};
  KernelLaunch launch{.kernel = gather_rows_kernel(), .threads = kGatherThreads};
  constexpr int64_t kWarps = kGatherThreads / 32, kMostCtas = 4096;
  launch.ctas = static_cast<uint32_t>(std::min(core::ceil_div(gather.rows, kWarps), kMostCtas));
  launch.set_params(params);
  return std::vector{launch};
}

}  // namespace dualgemm::cuda
