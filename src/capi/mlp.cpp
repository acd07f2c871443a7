// mlp.hpp through the C interface.
#include "dualgemm/mlp.h"

#include <utility>

#include "capi/error.hpp"
#include "capi/structs.hpp"
#include "capi/text.hpp"
#include "dualgemm/mlp.hpp"

struct dualgemm_mlp {
  dualgemm::GatedMlp mlp;
  dualgemm_plan gate_up, down;  // copies, as handles
};

namespace dualgemm::capi {

template <>
inline constexpr uint64_t kMinStructSize<dualgemm_mlp_problem> = offsetof(dualgemm_mlp_problem, l);
template <>
inline constexpr uint64_t kMinStructSize<dualgemm_mlp_buffers> = offsetof(dualgemm_mlp_buffers,
                                                                          alpha_gate_per_batch);

template <>
dualgemm_mlp_problem defaults<dualgemm_mlp_problem>() {
  const MlpProblem from;
  dualgemm_mlp_problem to{};
  to.struct_size = sizeof(to);
  to.l = from.l;
  for (auto [matrix, type] : {std::pair{&to.x, from.x.type}, std::pair{&to.gate, from.gate.type},
                              std::pair{&to.up, from.up.type}, std::pair{&to.down, from.down.type},
                              std::pair{&to.y, from.y.type}}) {
    matrix->type = static_cast<int32_t>(type);
  }
  to.act = defaults<dualgemm_problem>().act;
  to.x_scaling = static_cast<int32_t>(from.x_scaling);
  to.weights_type = static_cast<int32_t>(from.weights_type);
  to.h_scaling = static_cast<int32_t>(from.h_scaling);
  return to;
}

template <>
dualgemm_mlp_buffers defaults<dualgemm_mlp_buffers>() {
  const MlpBuffers from;
  dualgemm_mlp_buffers to{};
  to.struct_size = sizeof(to);
  to.alpha_gate = from.alpha_gate;
  to.alpha_up = from.alpha_up;
  to.alpha_down = from.alpha_down;
  to.h_global_scale = from.h_global_scale;
  return to;
}

namespace {

static_assert(sizeof(dualgemm_mlp_problem) == 8 * 8 + 5 * 40 + 16 + 10 * 4 + 2 * 8 + 4 * 4);
static_assert(sizeof(dualgemm_mlp_buffers) == 30 * 8);
static_assert(offsetof(dualgemm_mlp_problem, l) == 32);
static_assert(offsetof(dualgemm_mlp_buffers, alpha_gate_per_batch) == 80);

Expected<MlpProblem> to_mlp_problem(const dualgemm_mlp_problem* caller) {
  dualgemm_mlp_problem from;
  DUALGEMM_TRY(read_struct("problem", caller, from));
  DUALGEMM_TRY(check_reserved("problem.reserved", from.reserved));
  DUALGEMM_TRY(check_reserved("problem.reserved_too", from.reserved_too));
  DUALGEMM_CAPI_TRY_VALUE(act, to_activation(from.act));
  DUALGEMM_CAPI_TRY_VALUE(residual, to_flag("residual", from.residual));
  DUALGEMM_CAPI_TRY_VALUE(batch_invariant, to_flag("batch_invariant", from.batch_invariant));
  DUALGEMM_CAPI_TRY_VALUE(quantize_x, to_flag("quantize_x", from.quantize_x));
  DUALGEMM_CAPI_TRY_VALUE(quantize_h, to_flag("quantize_h", from.quantize_h));
  DUALGEMM_CAPI_TRY_VALUE(without_gate, to_flag("without_gate", from.without_gate));
  DUALGEMM_CAPI_TRY_VALUE(x_factors, to_flag("has_x_column_factors", from.has_x_column_factors));
  DUALGEMM_CAPI_TRY_VALUE(h_factors, to_flag("has_h_column_factors", from.has_h_column_factors));
  DUALGEMM_CAPI_TRY_VALUE(wide_ids, to_flag("wide_ids", from.wide_ids));
  DUALGEMM_CAPI_TRY_VALUE(on_input, to_flag("weights_on_input", from.weights_on_input));
  MlpProblem to;
  to.m = from.m;
  to.hidden = from.hidden;
  to.intermediate = from.intermediate;
  to.l = from.l;
  to.x = to_matrix(from.x);
  to.gate = to_matrix(from.gate);
  to.up = to_matrix(from.up);
  to.down = to_matrix(from.down);
  to.y = to_matrix(from.y);
  to.quantize_x = quantize_x;
  to.quantize_h = quantize_h;
  to.x_scaling = static_cast<GlobalScaling>(from.x_scaling);
  to.act = act;
  to.grouping = static_cast<Grouping>(from.grouping);
  to.bias = static_cast<BiasType>(from.bias);
  to.residual = residual;
  to.batch_invariant = batch_invariant;
  to.gated = !without_gate;
  to.x_transform = {.factors = x_factors, .hadamard = from.x_hadamard};
  to.h_transform = {.factors = h_factors, .hadamard = from.h_hadamard};
  to.top_k = from.top_k;
  to.named_experts = from.named_experts;
  to.wide_ids = wide_ids;
  to.weights_type = static_cast<DataType>(from.weights_type);
  to.weights_on_input = on_input;
  to.h_scaling = static_cast<GlobalScaling>(from.h_scaling);
  return to;
}

// Where views of prepared weights are put, if the buffers have some.
struct Views {
  PreparedView gate_up, down;
};

Expected<MlpBuffers> to_mlp_buffers(const dualgemm_mlp_buffers* caller, Views* views) {
  dualgemm_mlp_buffers from;
  DUALGEMM_TRY(read_struct("buffers", caller, from));
  MlpBuffers to;
  to.x = from.x;
  to.x_global_scale = from.x_global_scale;
  to.gate = from.gate;
  to.gate_scales = from.gate_scales;
  to.up = from.up;
  to.up_scales = from.up_scales;
  to.down = from.down;
  to.down_scales = from.down_scales;
  to.alpha_gate = from.alpha_gate;
  to.alpha_up = from.alpha_up;
  to.alpha_down = from.alpha_down;
  to.alpha_gate_per_batch = from.alpha_gate_per_batch;
  to.alpha_up_per_batch = from.alpha_up_per_batch;
  to.alpha_down_per_batch = from.alpha_down_per_batch;
  to.h_global_scale = from.h_global_scale;
  to.bias_gate = from.bias_gate;
  to.bias_up = from.bias_up;
  to.bias_down = from.bias_down;
  to.residual = from.residual;
  to.expert_offsets = from.expert_offsets;
  to.expert_rows = from.expert_rows;
  to.row_experts = from.row_experts;
  to.y = from.y;
  if (from.prepared_gate_up != nullptr) {
    views->gate_up = to_view(*from.prepared_gate_up);
    to.prepared_gate_up = &views->gate_up;
  }
  if (from.prepared_down != nullptr) {
    views->down = to_view(*from.prepared_down);
    to.prepared_down = &views->down;
  }
  to.stream = from.stream;
  to.x_column_factors = from.x_column_factors;
  to.h_column_factors = from.h_column_factors;
  to.topk_ids = from.topk_ids;
  to.expert_map = from.expert_map;
  to.topk_weights = from.topk_weights;
  return to;
}

// `weights_of`: gate_up_weights() or down_weights().
dualgemm_status write_weights(const dualgemm_mlp* mlp, const dualgemm_mlp_buffers* buffers,
                              Buffers (GatedMlp::*weights_of)(const MlpBuffers&) const,
                              dualgemm_buffers* weights) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(require(mlp, "mlp"));
    DUALGEMM_TRY(check_output_struct("weights", weights));
    Views views;
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_mlp_buffers(buffers, &views));
    const Buffers from = (mlp->mlp.*weights_of)(cpp_buffers);
    auto to = defaults<dualgemm_buffers>();
    to.gate = from.gate;
    to.gate_scales = from.gate_scales;
    to.up = from.up;
    to.up_scales = from.up_scales;
    to.stream = from.stream;
    write_struct(to, weights);
    return {};
  });
}

}  // namespace
}  // namespace dualgemm::capi

using namespace dualgemm;        // NOLINT(google-build-using-namespace): the definitions of one
using namespace dualgemm::capi;  // NOLINT(google-build-using-namespace): C interface

dualgemm_status dualgemm_mlp_problem_init(dualgemm_mlp_problem* problem,
                                          uint64_t struct_size) noexcept {
  return capi::guarded([&] { return init_struct("problem", problem, struct_size); });
}
dualgemm_status dualgemm_mlp_buffers_init(dualgemm_mlp_buffers* buffers,
                                          uint64_t struct_size) noexcept {
  return capi::guarded([&] { return init_struct("buffers", buffers, struct_size); });
}

dualgemm_status dualgemm_mlp_validate(const dualgemm_mlp_problem* problem,
                                      const dualgemm_mlp_buffers* buffers) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_mlp_problem(problem));
    if (buffers == nullptr) return validate(cpp_problem);
    Views views;
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_mlp_buffers(buffers, &views));
    return validate(cpp_problem, cpp_buffers);
  });
}

dualgemm_status dualgemm_mlp_create(const dualgemm_mlp_problem* problem,
                                    const dualgemm_plan_options* options,
                                    dualgemm_mlp** mlp) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(require(mlp, "mlp"));
    *mlp = nullptr;
    DUALGEMM_CAPI_TRY_VALUE(cpp_problem, to_mlp_problem(problem));
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_plan_options(options));
    DUALGEMM_CAPI_TRY_VALUE(made, GatedMlp::plan(cpp_problem, cpp_options));
    *mlp = new dualgemm_mlp{made, {made.gate_up()}, {made.down()}};
    return {};
  });
}

void dualgemm_mlp_destroy(dualgemm_mlp* mlp) noexcept { delete mlp; }

dualgemm_status dualgemm_mlp_workspace_size(const dualgemm_mlp* mlp, int64_t* bytes) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(require(mlp, "mlp"));
    DUALGEMM_TRY(require(bytes, "bytes"));
    *bytes = mlp->mlp.workspace_bytes();
    return {};
  });
}

dualgemm_status dualgemm_mlp_workspace_create(const dualgemm_mlp* mlp,
                                              dualgemm_workspace** workspace) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(require(workspace, "workspace"));
    *workspace = nullptr;
    DUALGEMM_TRY(require(mlp, "mlp"));
    DUALGEMM_CAPI_TRY_VALUE(memory,
                            Workspace::allocate(mlp->mlp.workspace_bytes(), mlp->mlp.device()));
    *workspace = new dualgemm_workspace{std::move(memory)};
    return {};
  });
}

dualgemm_status dualgemm_mlp_explain(const dualgemm_mlp* mlp, char* buffer, size_t capacity,
                                     size_t* required) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(require(mlp, "mlp"));
    return copy_text(mlp->mlp.explain(), buffer, capacity, required);
  });
}

const dualgemm_plan* dualgemm_mlp_gate_up(const dualgemm_mlp* mlp) noexcept {
  return mlp == nullptr ? nullptr : &mlp->gate_up;
}
const dualgemm_plan* dualgemm_mlp_down(const dualgemm_mlp* mlp) noexcept {
  return mlp == nullptr ? nullptr : &mlp->down;
}

dualgemm_status dualgemm_mlp_gate_up_weights(const dualgemm_mlp* mlp,
                                             const dualgemm_mlp_buffers* buffers,
                                             dualgemm_buffers* weights) noexcept {
  return write_weights(mlp, buffers, &GatedMlp::gate_up_weights, weights);
}
dualgemm_status dualgemm_mlp_down_weights(const dualgemm_mlp* mlp,
                                          const dualgemm_mlp_buffers* buffers,
                                          dualgemm_buffers* weights) noexcept {
  return write_weights(mlp, buffers, &GatedMlp::down_weights, weights);
}

dualgemm_status dualgemm_mlp_run(const dualgemm_mlp* mlp, const dualgemm_mlp_buffers* buffers,
                                 void* workspace, int64_t workspace_bytes) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(require(mlp, "mlp"));
    Views views;
    DUALGEMM_CAPI_TRY_VALUE(cpp_buffers, to_mlp_buffers(buffers, &views));
    return mlp->mlp.run(cpp_buffers, workspace, workspace_bytes);
  });
}
