// A mixture's experts in one call: from a router's ids to the weighted sums.
#include <cstring>
#include <string_view>

#include "call.hpp"
#include "dualgemm/mlp.h"
#include "kernels.hpp"
#include "launch.hpp"
#include "recent_cache.hpp"
#include "status.hpp"

namespace dualgemm::python {
namespace {

using OptionalDouble = std::optional<double>;
using std::string;

// What an MLP's plan depends on; `problem` comes from dualgemm_mlp_problem_init().
struct MlpKey {
  dualgemm_mlp_problem problem;
  int32_t device = DUALGEMM_DEVICE_CPU;
  int32_t device_index = 0;
  int32_t prepared = 0;
  int32_t unaligned = 0;

  bool operator==(const MlpKey& other) const noexcept {
    return std::memcmp(&problem, &other.problem, sizeof problem) == 0 && device == other.device &&
           device_index == other.device_index && prepared == other.prepared &&
           unaligned == other.unaligned;
  }
};
size_t hash_of(const MlpKey& key) noexcept {
  const char* bytes = reinterpret_cast<const char*>(&key.problem);
  size_t hash = std::hash<std::string_view>()({bytes, sizeof key.problem});
  for (const int32_t part : {key.device, key.device_index, key.prepared, key.unaligned})
    hash = hash * 1000003 + static_cast<size_t>(part);
  return hash;
}

struct Mlp {
  explicit Mlp(const MlpKey& key) {
    dualgemm_plan_options options;
    check(dualgemm_plan_options_init(&options, sizeof options));
    options.device = key.device;
    options.prepared = key.prepared;
    options.unaligned = key.unaligned;
    options.trusted_pointers = key.device == DUALGEMM_DEVICE_CUDA;
    check(dualgemm_mlp_create(&key.problem, &options, &mlp));
    check(dualgemm_mlp_workspace_size(mlp, &workspace_bytes));
    if (key.prepared == 0) return;
    check(dualgemm_plan_prepared_descriptor(dualgemm_mlp_gate_up(mlp), &gate_up));
    check(dualgemm_plan_prepared_descriptor(dualgemm_mlp_down(mlp), &down));
  }
  ~Mlp() { dualgemm_mlp_destroy(mlp); }
  Mlp(const Mlp&) = delete;
  Mlp& operator=(const Mlp&) = delete;

  dualgemm_mlp* mlp = nullptr;
  int64_t workspace_bytes = 0;
  dualgemm_prepared_descriptor gate_up{}, down{};
};

std::shared_ptr<const Mlp> mlp_for(const MlpKey& key) {
  static auto* const kept = new RecentCache<MlpKey, Mlp, kMostPlans>;  // never destroyed
  return kept->get(key);
}

// A router's choice; weights and map are optional.
struct Router {
  const Tensor& ids;
  const OptionalTensor& weights;
  const OptionalTensor& expert_map;
};

void take_router(const Router& router, const Call& call, dualgemm_mlp_problem& problem,
                 dualgemm_mlp_buffers& buffers) {
  const Tensor& ids = router.ids;
  check_tensor("topk_ids", ids, call.place);
  const bool wide = dtype_of(ids) == dtypes().int64;
  if ((!wide && dtype_of(ids) != dtypes().int32) || ids.dim() != 2 || ids.size(1) < 1 ||
      ids.size(0) != call.a.rows || !ids.is_contiguous()) {
    refuse("topk_ids", dtype_text(ids) + " of shape " + shape_text(ids),
           "must be contiguous int32 or int64 [" + std::to_string(call.a.rows) + ", k]");
  }
  problem.top_k = ids.size(1);
  problem.wide_ids = wide ? 1 : 0;
  buffers.topk_ids = ids.data_ptr();
  if (router.weights) {
    check_tensor("topk_weights", *router.weights, call.place);
    check_shape("topk_weights", *router.weights, {ids.size(0), ids.size(1)});
    check_is_wide("topk_weights", *router.weights);
    if (!router.weights->is_contiguous())
      refuse("topk_weights", "with strides", "must be contiguous");
    problem.weights_type = data_type_of("topk_weights", *router.weights);
    buffers.topk_weights = router.weights->data_ptr();
  }
  if (router.expert_map) {
    check_tensor("expert_map", *router.expert_map, call.place);
    problem.named_experts = router.expert_map->numel();
    if (problem.named_experts == 0) refuse("expert_map", "empty", "must name an expert");
    buffers.expert_map = static_cast<const int32_t*>(
        vector_of("expert_map", *router.expert_map, problem.named_experts, dtypes().int32));
  }
}

// One optional vector of float32.
const float* floats_of(const char* name, const OptionalTensor& values, int64_t count,
                       const Place& place) {
  if (!values) return nullptr;
  check_tensor(name, *values, place);
  return static_cast<const float*>(vector_of(name, *values, count, dtypes().float32));
}

// A weight of `n` rows of `call.a.columns` columns; call.n and call.l are set where it is given.
void take_weight(const char* name, const char* scales_name, const OptionalTensor& values,
                 const OptionalTensor& scales, const string& scale_layout, const Call& call,
                 dualgemm_matrix& layout, const void*& data, const uint8_t*& scale_data) {
  const Tensor& given_values = given(name, values);
  check_tensor(name, given_values, call.place);
  const Matrix matrix = matrix_of(name, given_values, true);
  if (matrix.rows != call.n || matrix.batches != call.l) {
    refuse(
        name, "shape " + shape_text(given_values),
        "must be " + std::to_string(call.l) + " matrices of " + std::to_string(call.n) + " rows");
  }
  layout = with_scales(name, scales_name, given_values, scales, scale_layout, call, matrix, data,
                       scale_data);
}

int32_t any_unaligned_of(const dualgemm_mlp_buffers& b, const Call& call) {
  return any_unaligned(call, {b.x, b.gate, b.gate_scales, b.up, b.up_scales, b.down, b.down_scales,
                              b.y, b.residual});
}

// The schema's arguments, as they are passed and as they are handed on.
#define DUALGEMM_EXPERTS                                                                      \
  Tensor x, Tensor topk_ids, OptionalTensor topk_weights, OptionalTensor expert_map,          \
      OptionalTensor gate, OptionalTensor gate_scales, OptionalTensor up,                     \
      OptionalTensor up_scales, OptionalTensor packed, OptionalTensor down,                   \
      OptionalTensor down_scales, OptionalTensor packed_down, int64_t n, int64_t l,           \
      OptionalTensor alpha_gate, OptionalTensor alpha_up, OptionalTensor alpha_down,          \
      OptionalTensor bias_gate, OptionalTensor bias_up, OptionalTensor bias_down,             \
      OptionalTensor residual, OptionalTensor x_factors, OptionalTensor h_factors,            \
      OptionalTensor x_global_scale, bool gated, string activation, OptionalDouble act_alpha, \
      OptionalDouble act_beta, OptionalDouble act_limit, bool quantize_x, bool quantize_h,    \
      OptionalDouble h_global_scale, int64_t x_hadamard, int64_t h_hadamard,                  \
      bool weights_on_input, string scale_layout, bool batch_invariant
#define DUALGEMM_EXPERTS_OF                                                                    \
  x, topk_ids, topk_weights, expert_map, gate, gate_scales, up, up_scales, packed, down,       \
      down_scales, packed_down, n, l, alpha_gate, alpha_up, alpha_down, bias_gate, bias_up,    \
      bias_down, residual, x_factors, h_factors, x_global_scale, gated, activation, act_alpha, \
      act_beta, act_limit, quantize_x, quantize_h, h_global_scale, x_hadamard, h_hadamard,     \
      weights_on_input, scale_layout, batch_invariant

Tensor experts(DUALGEMM_EXPERTS, const OptionalTensor& given_out) {
  Call call;
  call.place = Place::of("x", x);
  check_tensor("x", x, call.place);
  check_is_wide("x", x);
  if (x.dim() != 2) refuse("x", "shape " + shape_text(x), "must be [tokens, hidden]");
  if (n < 1 || l < 1) refuse("n, l", std::to_string(n) + ", " + std::to_string(l), "must be >= 1");
  call.a = matrix_of("x", x, false);
  call.n = n;
  call.l = l;
  call.weights_are_batched = true;

  MlpKey key;
  dualgemm_mlp_problem& problem = key.problem;
  dualgemm_mlp_buffers buffers;
  check(dualgemm_mlp_problem_init(&problem, sizeof problem));
  check(dualgemm_mlp_buffers_init(&buffers, sizeof buffers));
  problem.m = call.a.rows;
  problem.hidden = call.a.columns;
  problem.intermediate = n;
  problem.l = l;
  problem.x = call.a.layout;
  problem.without_gate = gated ? 0 : 1;
  problem.batch_invariant = batch_invariant ? 1 : 0;
  problem.act = activation_of({activation, act_alpha, act_beta, act_limit});
  problem.quantize_x = quantize_x ? 1 : 0;
  problem.quantize_h = quantize_h ? 1 : 0;
  problem.x_hadamard = x_hadamard;
  problem.h_hadamard = h_hadamard;
  problem.has_x_column_factors = x_factors ? 1 : 0;
  problem.has_h_column_factors = h_factors ? 1 : 0;
  problem.weights_on_input = weights_on_input ? 1 : 0;
  buffers.x = call.a.data;
  buffers.x_column_factors = floats_of("x_factors", x_factors, call.a.columns, call.place);
  buffers.h_column_factors = floats_of("h_factors", h_factors, n, call.place);
  buffers.x_global_scale = floats_of("x_global_scale", x_global_scale, 1, call.place);
  if (x_global_scale) problem.x_scaling = DUALGEMM_SCALING_GIVEN;
  problem.h_scaling = h_global_scale ? DUALGEMM_SCALING_GIVEN : DUALGEMM_SCALING_ROW;
  if (h_global_scale) buffers.h_global_scale = static_cast<float>(*h_global_scale);
  take_router({topk_ids, topk_weights, expert_map}, call, problem, buffers);

  if (packed.has_value() != packed_down.has_value()) {
    refuse("packed, packed_down", "one of them", "must be given both, or none");
  }
  if (packed) {
    check_tensor("packed", *packed, call.place);
    check_packed_rows(*packed, call);
  } else {
    if (gated) {
      take_weight("gate", "gate_scales", gate, gate_scales, scale_layout, call, problem.gate,
                  buffers.gate, buffers.gate_scales);
    }
    take_weight("up", "up_scales", up, up_scales, scale_layout, call, problem.up, buffers.up,
                buffers.up_scales);
  }
  if (gated) {
    buffers.alpha_gate_per_batch = alpha_of("alpha_gate", alpha_gate, call);
    buffers.bias_gate = bias_of("bias_gate", bias_gate, call, problem.bias);
  }
  buffers.alpha_up_per_batch = alpha_of("alpha_up", alpha_up, call);
  buffers.bias_up = bias_of("bias_up", bias_up, call, problem.bias);

  Call second = call;  // rows of Down are columns of x
  second.n = call.a.columns;
  second.a.columns = n;
  if (packed_down) {
    check_tensor("packed_down", *packed_down, call.place);
    check_packed_rows(*packed_down, second);
  } else {
    take_weight("down", "down_scales", down, down_scales, scale_layout, second, problem.down,
                buffers.down, buffers.down_scales);
  }
  buffers.alpha_down_per_batch = alpha_of("alpha_down", alpha_down, second);
  buffers.bias_down = bias_of("bias_down", bias_down, second, problem.bias);

  Tensor y =
      given_out ? *given_out : new_tensor(call.place, dtype_of(x), {call.a.rows, call.a.columns});
  if (given_out) {
    check_tensor("out", y, call.place);
    check_shape("out", y, {call.a.rows, call.a.columns});
    check_is_wide("out", y);
  }
  const Matrix out = matrix_of("out", y, false);
  problem.y = out.layout;
  buffers.y = out.data;
  if (residual) {
    check_tensor("residual", *residual, call.place);
    check_shape("residual", *residual, {call.a.rows, call.a.columns});
    const Matrix added = matrix_of("residual", *residual, false);
    if (added.layout.type != out.layout.type || added.layout.ld != out.layout.ld)
      refuse("residual", "another dtype or other strides than y", "must lie as y does");
    problem.residual = 1;
    buffers.residual = added.data;
  }
  if (call.a.rows == 0) return y;

  key.device = call.place.is_cuda ? DUALGEMM_DEVICE_CUDA : DUALGEMM_DEVICE_CPU;
  key.device_index = call.place.is_cuda ? call.place.index : 0;
  key.prepared = packed ? 1 : 0;
  key.unaligned = any_unaligned_of(buffers, call);
  const OnDevice on_device(call.place);
  const std::shared_ptr<const Mlp> mlp = mlp_for(key);
  dualgemm_prepared_view views[2];
  if (packed) {
    views[0] = view_of("packed", call.place, *packed, mlp->gate_up);
    views[1] = view_of("packed_down", call.place, *packed_down, mlp->down);
    buffers.prepared_gate_up = &views[0];
    buffers.prepared_down = &views[1];
  }
  const Tensor memory = new_tensor(call.place, dtypes().uint8, {mlp->workspace_bytes});
  if (call.place.is_cuda) buffers.stream = current_cuda_stream(call.place.index);
  check(dualgemm_mlp_run(mlp->mlp, &buffers, memory.data_ptr(), mlp->workspace_bytes));
  return y;
}

Tensor op_experts(DUALGEMM_EXPERTS) { return experts(DUALGEMM_EXPERTS_OF, {}); }
void op_experts_out(DUALGEMM_EXPERTS, Tensor out) { experts(DUALGEMM_EXPERTS_OF, out); }
#undef DUALGEMM_EXPERTS
#undef DUALGEMM_EXPERTS_OF

}  // namespace

DUALGEMM_KERNELS(m) {
  m.impl("experts", TORCH_BOX(&op_experts));
  m.impl("experts.out", TORCH_BOX(&op_experts_out));
}

}  // namespace dualgemm::python
