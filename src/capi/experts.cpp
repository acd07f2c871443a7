// experts.hpp through the C interface.
#include "dualgemm/experts.h"

#include "capi/error.hpp"
#include "capi/structs.hpp"
#include "dualgemm/experts.hpp"

namespace dualgemm::capi {

template <>
inline constexpr uint64_t kMinStructSize<dualgemm_routing_problem> =
    offsetof(dualgemm_routing_problem, named_experts);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_routing_buffers> =
    offsetof(dualgemm_routing_buffers, row_scale);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_combine_problem> =
    offsetof(dualgemm_combine_problem, weights_type);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_combine_buffers> =
    sizeof(dualgemm_combine_buffers);

template <>
dualgemm_routing_problem defaults<dualgemm_routing_problem>() {
  const RoutingProblem from;
  dualgemm_routing_problem to{};
  to.struct_size = sizeof(to);
  to.top_k = from.top_k;
  to.experts = from.experts;
  to.weights_type = static_cast<int32_t>(from.weights_type);
  return to;
}

template <>
dualgemm_combine_problem defaults<dualgemm_combine_problem>() {
  const CombineProblem from;
  dualgemm_combine_problem to{};
  to.struct_size = sizeof(to);
  to.top_k = from.top_k;
  to.rows.type = static_cast<int32_t>(from.rows.type);
  to.y.type = static_cast<int32_t>(from.y.type);
  to.weights_type = static_cast<int32_t>(from.weights_type);
  return to;
}

namespace {

static_assert(sizeof(dualgemm_routing_problem) == 6 * 8 && sizeof(dualgemm_routing_buffers) == 80);
static_assert(sizeof(dualgemm_combine_problem) == 5 * 8 + 2 * 40);
static_assert(sizeof(dualgemm_combine_buffers) == 7 * 8);
static_assert(offsetof(dualgemm_routing_problem, named_experts) == 32 &&
              offsetof(dualgemm_routing_buffers, row_scale) == 64 &&
              offsetof(dualgemm_combine_problem, weights_type) == 112);

Expected<RoutingProblem> to_routing_problem(const dualgemm_routing_problem* caller) {
  dualgemm_routing_problem from;
  DUALGEMM_TRY(read_struct("problem", caller, from));
  DUALGEMM_CAPI_TRY_VALUE(wide_ids, to_flag("problem.wide_ids", from.wide_ids));
  return RoutingProblem{.tokens = from.tokens,
                        .top_k = from.top_k,
                        .experts = from.experts,
                        .named_experts = from.named_experts,
                        .wide_ids = wide_ids,
                        .weights_type = static_cast<DataType>(from.weights_type)};
}

Expected<RoutingBuffers> to_routing_buffers(const dualgemm_routing_buffers* caller) {
  dualgemm_routing_buffers from;
  DUALGEMM_TRY(read_struct("buffers", caller, from));
  return RoutingBuffers{.ids = from.ids,
                        .expert_map = from.expert_map,
                        .weights = from.weights,
                        .token_scale = from.token_scale,
                        .offsets = from.offsets,
                        .row_tokens = from.row_tokens,
                        .places = from.places,
                        .row_scale = from.row_scale,
                        .stream = from.stream};
}

Expected<CombineProblem> to_combine_problem(const dualgemm_combine_problem* caller) {
  dualgemm_combine_problem from;
  DUALGEMM_TRY(read_struct("problem", caller, from));
  DUALGEMM_CAPI_TRY_VALUE(residual, to_flag("problem.residual", from.residual));
  return CombineProblem{.tokens = from.tokens,
                        .top_k = from.top_k,
                        .cols = from.cols,
                        .rows = to_matrix(from.rows),
                        .y = to_matrix(from.y),
                        .weights_type = static_cast<DataType>(from.weights_type),
                        .residual = residual};
}

Expected<CombineBuffers> to_combine_buffers(const dualgemm_combine_buffers* caller) {
  dualgemm_combine_buffers from;
  DUALGEMM_TRY(read_struct("buffers", caller, from));
  return CombineBuffers{.rows = from.rows,
                        .places = from.places,
                        .weights = from.weights,
                        .residual = from.residual,
                        .y = from.y,
                        .stream = from.stream};
}

}  // namespace
}  // namespace dualgemm::capi

using namespace dualgemm;        // NOLINT(google-build-using-namespace): the definitions of one
using namespace dualgemm::capi;  // NOLINT(google-build-using-namespace): C interface

dualgemm_status dualgemm_routing_problem_init(dualgemm_routing_problem* problem,
                                              uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("problem", problem, struct_size); });
}
dualgemm_status dualgemm_routing_buffers_init(dualgemm_routing_buffers* buffers,
                                              uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("buffers", buffers, struct_size); });
}
dualgemm_status dualgemm_combine_problem_init(dualgemm_combine_problem* problem,
                                              uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("problem", problem, struct_size); });
}
dualgemm_status dualgemm_combine_buffers_init(dualgemm_combine_buffers* buffers,
                                              uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("buffers", buffers, struct_size); });
}

dualgemm_status dualgemm_route_tokens(const dualgemm_routing_problem* problem,
                                      const dualgemm_routing_buffers* buffers,
                                      const dualgemm_execution_options* options) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_routing_problem(problem));
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_routing_buffers(buffers));
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_execution_options(options));
    return route_tokens(cpp_problem, cpp_buffers, cpp_options);
  });
}

dualgemm_status dualgemm_combine_tokens(const dualgemm_combine_problem* problem,
                                        const dualgemm_combine_buffers* buffers,
                                        const dualgemm_execution_options* options) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_combine_problem(problem));
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_combine_buffers(buffers));
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_execution_options(options));
    return combine_tokens(cpp_problem, cpp_buffers, cpp_options);
  });
}
