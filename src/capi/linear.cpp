// linear.hpp through the C interface.
#include "dualgemm/linear.h"

#include <utility>

#include "capi/error.hpp"
#include "capi/structs.hpp"
#include "dualgemm/linear.hpp"

namespace dualgemm::capi {

template <>
inline constexpr uint64_t kMinStructSize<dualgemm_linear_problem> =
    offsetof(dualgemm_linear_problem, l);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_linear_buffers> =
    offsetof(dualgemm_linear_buffers, d_scales);

template <>
dualgemm_linear_problem defaults<dualgemm_linear_problem>() {
  const LinearProblem from;
  dualgemm_linear_problem to{};
  to.struct_size = sizeof(to);
  to.l = from.l;
  to.a.type = static_cast<int32_t>(from.a.type);
  to.w.type = static_cast<int32_t>(from.w.type);
  to.d.type = static_cast<int32_t>(from.d.type);
  to.act = from_activation(from.act);
  return to;
}

template <>
dualgemm_linear_buffers defaults<dualgemm_linear_buffers>() {
  const LinearBuffers from;
  dualgemm_linear_buffers to{};
  to.struct_size = sizeof(to);
  to.alpha = from.alpha;
  to.d_global_scale = from.d_global_scale;
  return to;
}

namespace {

static_assert(sizeof(dualgemm_linear_problem) == 5 * 8 + 3 * 40 + 4 * 4 + 16 + 8);
static_assert(sizeof(dualgemm_linear_buffers) == 19 * 8);
static_assert(offsetof(dualgemm_linear_problem, l) == 32);
static_assert(offsetof(dualgemm_linear_buffers, d_scales) == 72);

Expected<LinearProblem> to_linear_problem(const dualgemm_linear_problem* caller) {
  dualgemm_linear_problem from;
  DUALGEMM_TRY(read_struct("problem", caller, from));
  DUALGEMM_CAPI_TRY_VALUE(batch_invariant, to_flag("batch_invariant", from.batch_invariant));
  DUALGEMM_CAPI_TRY_VALUE(residual, to_flag("residual", from.residual));
  DUALGEMM_CAPI_TRY_VALUE(act, to_activation(from.act));
  LinearProblem to;
  to.m = from.m;
  to.n = from.n;
  to.k = from.k;
  to.l = from.l;
  to.a = to_matrix(from.a);
  to.w = to_matrix(from.w);
  to.d = to_matrix(from.d);
  to.grouping = static_cast<Grouping>(from.grouping);
  to.batch_invariant = batch_invariant;
  to.bias = static_cast<BiasType>(from.bias);
  to.residual = residual;
  to.act = act;
  to.a_rows = from.a_rows;
  return to;
}

// All but prepared weights, which the two interfaces hold in different ways.
LinearBuffers to_linear_buffers(const dualgemm_linear_buffers& from) {
  LinearBuffers to;
  to.a = from.a;
  to.a_scales = from.a_scales;
  to.a_row_scale = from.a_row_scale;
  to.w = from.w;
  to.w_scales = from.w_scales;
  to.alpha = from.alpha;
  to.alpha_per_batch = from.alpha_per_batch;
  to.bias = from.bias;
  to.residual = from.residual;
  to.expert_offsets = from.expert_offsets;
  to.expert_rows = from.expert_rows;
  to.row_experts = from.row_experts;
  to.a_row_index = from.a_row_index;
  to.d = from.d;
  to.d_scales = from.d_scales;
  to.d_global_scale = from.d_global_scale;
  to.stream = from.stream;
  return to;
}

// `view`: where the buffers' view of prepared weights is put, if they have one.
Expected<LinearBuffers> to_linear_buffers(const dualgemm_linear_buffers* caller,
                                          PreparedView* view) {
  dualgemm_linear_buffers from;
  DUALGEMM_TRY(read_struct("buffers", caller, from));
  LinearBuffers to = to_linear_buffers(from);
  take_prepared(from, view, to);
  return to;
}

dualgemm_matrix from_matrix(const Matrix& from) {
  return {static_cast<int32_t>(from.type),
          static_cast<int32_t>(from.scale_layout),
          from.ld,
          from.batch_stride,
          from.scale_ld,
          from.scale_batch_stride};
}

dualgemm_problem from_dual_problem(const Problem& from) {
  auto to = defaults<dualgemm_problem>();
  to.m = from.m;
  to.n = from.n;
  to.k = from.k;
  to.l = from.l;
  to.a = from_matrix(from.a);
  to.gate = from_matrix(from.gate);
  to.up = from_matrix(from.up);
  to.d = from_matrix(from.d);
  to.act = from_activation(from.act);
  to.grouping = static_cast<int32_t>(from.grouping);
  to.batch_invariant = from.batch_invariant ? 1 : 0;
  to.bias = static_cast<int32_t>(from.bias);
  to.bias_stride = from.bias_stride;
  to.up_column = from.up_column;
  to.combine = static_cast<int32_t>(from.combine);
  to.residual = from.residual ? 1 : 0;
  return to;
}

dualgemm_buffers from_dual_buffers(const Buffers& from, const dualgemm_linear_buffers& caller) {
  auto to = defaults<dualgemm_buffers>();
  copy_arrays(from, to);
  to.prepared = caller.prepared;
  to.prepared_view = caller.prepared_view;
  return to;
}

// A struct without the last fields would be another problem.
template <class T>
Status check_whole_struct(const T* to) {
  DUALGEMM_TRY(require(to, "dual"));
  return check_struct_size("dual", to->struct_size, sizeof(T));
}

}  // namespace
}  // namespace dualgemm::capi

using namespace dualgemm;        // NOLINT(google-build-using-namespace): the definitions of one
using namespace dualgemm::capi;  // NOLINT(google-build-using-namespace): C interface

dualgemm_status dualgemm_linear_problem_init(dualgemm_linear_problem* problem,
                                             uint64_t struct_size) noexcept {
  return capi::guarded([&] { return init_struct("problem", problem, struct_size); });
}
dualgemm_status dualgemm_linear_buffers_init(dualgemm_linear_buffers* buffers,
                                             uint64_t struct_size) noexcept {
  return capi::guarded([&] { return init_struct("buffers", buffers, struct_size); });
}

dualgemm_status dualgemm_linear_dual_problem(const dualgemm_linear_problem* problem,
                                             dualgemm_problem* dual) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(check_whole_struct(dual));
    DUALGEMM_CAPI_TRY_VALUE(linear, to_linear_problem(problem));
    DUALGEMM_CAPI_TRY_VALUE(made, dual_problem(linear));
    write_struct(from_dual_problem(made), dual);
    return {};
  });
}

dualgemm_status dualgemm_linear_dual_buffers(const dualgemm_linear_problem* problem,
                                             const dualgemm_linear_buffers* buffers,
                                             dualgemm_buffers* dual) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(check_whole_struct(dual));
    DUALGEMM_CAPI_TRY_VALUE(linear, to_linear_problem(problem));
    DUALGEMM_TRY(dual_problem(linear).status());
    dualgemm_linear_buffers from;
    DUALGEMM_TRY(read_struct("buffers", buffers, from));
    write_struct(from_dual_buffers(dual_buffers(linear, to_linear_buffers(from)), from), dual);
    return {};
  });
}

dualgemm_status dualgemm_linear_validate(const dualgemm_linear_problem* problem,
                                         const dualgemm_linear_buffers* buffers) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_CAPI_TRY_VALUE(linear, to_linear_problem(problem));
    if (buffers == nullptr) return dual_problem(linear).status();
    PreparedView view;
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_linear_buffers(buffers, &view));
    return validate(linear, cpp_buffers);
  });
}

dualgemm_status dualgemm_linear_plan_create(const dualgemm_linear_problem* problem,
                                            const dualgemm_plan_options* options,
                                            dualgemm_plan** plan) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(require(plan, "plan"));
    *plan = nullptr;
    DUALGEMM_CAPI_TRY_VALUE(linear, to_linear_problem(problem));
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_plan_options(options));
    DUALGEMM_CAPI_TRY_VALUE(made, make_plan(linear, cpp_options));
    *plan = new dualgemm_plan{std::move(made)};
    return {};
  });
}

dualgemm_status dualgemm_linear_run_once(const dualgemm_linear_problem* problem,
                                         const dualgemm_linear_buffers* buffers,
                                         const dualgemm_plan_options* options,
                                         dualgemm_run_info* info) noexcept {
  return capi::guarded([&]() -> Status {
    if (info != nullptr) DUALGEMM_TRY(check_output_struct("info", info));
    DUALGEMM_CAPI_TRY_VALUE(linear, to_linear_problem(problem));
    PreparedView view;
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_linear_buffers(buffers, &view));
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_plan_options(options));
    RunInfo cpp_info;
    DUALGEMM_TRY(run(linear, cpp_buffers, cpp_options, &cpp_info));
    if (info != nullptr) write_struct(from_run_info(cpp_info), info);
    return {};
  });
}
