#include "products.hpp"

#include <cmath>
#include <limits>

#include "dualgemm/linear.h"
#include "launch.hpp"
#include "plan_cache.hpp"
#include "status.hpp"

namespace dualgemm::python {
namespace {

// What the two kinds of products have in common: the rows, the groups, the place.
struct Call {
  Place place{};
  PlanKey key{};
  dualgemm_buffers buffers{};
  Matrix a;
  Matrix first;  // gate, or the one weight, without its scales; packed: nothing
  int64_t n = 0;
  int64_t l = 1;
  int32_t grouping = DUALGEMM_GROUPING_NONE;
  bool weights_are_batched = false;
  bool rows_are_batched = false;
};

void check_optional(const char* name, const OptionalTensor& tensor, const Place& place) {
  if (tensor) check_tensor(name, *tensor, place);
}

// An argument that weights need when they are not packed.
const Tensor& given(const char* name, const OptionalTensor& tensor) {
  if (!tensor) refuse(name, "None", "must be given where packed is None");
  return *tensor;
}

// Looks at the first matrix: n, l, whether there is a dimension of layers.
void take_first(const Weights& weights, Call& call) {
  const Tensor& first = given(weights.first_name, weights.gate);
  check_tensor(weights.first_name, first, call.place);
  call.weights_are_batched = first.dim() == 3;
  call.first = matrix_of(weights.first_name, first, call.weights_are_batched);
  call.n = call.first.rows;
  call.l = call.first.batches;
  if (call.n < 1 || call.l < 1) {
    refuse(weights.first_name, "shape " + shape_text(first), "must have at least one row");
  }
}

dualgemm_operand_bytes operand_bytes(const dualgemm_problem& problem) {
  dualgemm_operand_bytes bytes{};
  bytes.struct_size = sizeof bytes;
  check(dualgemm_operand_sizes(&problem, &bytes));
  return bytes;
}

Call begin(const Rows& rows, const Weights& weights, const Choice& choice, const Groups& groups) {
  Call call;
  call.place = Place::of("a", rows.values);
  check_tensor("a", rows.values, call.place);
  check_optional("a_scales", rows.scales, call.place);
  check_optional("a_row_scale", rows.row_scale, call.place);
  if (weights.packed) {
    check_tensor("packed", *weights.packed, call.place);
    if (!weights.packed->is_contiguous() || dtype_of(*weights.packed) != dtypes().uint8) {
      refuse("packed", "shape " + shape_text(*weights.packed), "must be contiguous uint8");
    }
    call.n = weights.n;
    call.l = weights.l;
    call.weights_are_batched = call.l > 1;
  } else {
    take_first(weights, call);
  }
  if (groups.is_contiguous()) call.grouping = DUALGEMM_GROUPING_CONTIGUOUS;
  if (groups.masked_m) call.grouping = DUALGEMM_GROUPING_MASKED;
  call.rows_are_batched = call.grouping == DUALGEMM_GROUPING_MASKED ||
                          (call.grouping == DUALGEMM_GROUPING_NONE && call.weights_are_batched);
  call.a = matrix_of("a", rows.values, call.rows_are_batched);
  if (call.rows_are_batched && call.a.batches != call.l) {
    refuse("a", "shape " + shape_text(rows.values),
           "must have as many batches as the weights: " + std::to_string(call.l));
  }
  if (weights.packed) {  // before D is allocated: a code has half a byte at least, in every format
    const int64_t most = 2 * weights.packed->numel() / (call.a.columns > 0 ? call.a.columns : 1);
    if (call.n < 1 || call.l < 1 || call.n > most / call.l) {
      refuse("packed", std::to_string(weights.packed->numel()) + " bytes",
             "cannot be " + std::to_string(call.l) + " layers of n = " + std::to_string(call.n) +
                 " rows");
    }
  }
  check(dualgemm_buffers_init(&call.buffers, sizeof call.buffers));
  call.buffers.a = call.a.data;

  call.key.device = call.place.is_cuda ? DUALGEMM_DEVICE_CUDA : DUALGEMM_DEVICE_CPU;
  call.key.device_index = call.place.is_cuda ? call.place.index : 0;
  call.key.strategy = strategy_named(choice.strategy);
  call.key.prepared = weights.packed ? 1 : 0;
  call.key.config = choice.config;

  // Contiguous groups with swizzled scales of A: every expert's begin at a block of 128 rows of
  // their own, wherever its rows are; rows with an expert each have the scales of one matrix.
  if (rows.scales && call.a.layout.type == DUALGEMM_E2M1) {
    int64_t span = 0;
    if (groups.offsets) {
      dualgemm_problem sized;
      check(dualgemm_problem_init(&sized, sizeof sized));
      sized.m = call.a.rows > 0 ? call.a.rows : 1;
      sized.n = call.n;
      sized.k = call.a.columns;
      sized.l = call.l;
      sized.grouping = call.grouping;
      sized.a.scale_layout = DUALGEMM_SCALES_SWIZZLED_128X4;
      span = operand_bytes(sized).a_scales;
    }
    call.buffers.a_scales = static_cast<const uint8_t*>(add_scales(
        "a_scales", *rows.scales, choice.scale_layout, call.rows_are_batched, span, call.a));
  } else if (rows.scales) {
    refuse("a_scales", "given", "must be None for a of 16 or 32 bits");
  } else if (call.a.layout.type == DUALGEMM_E2M1) {
    refuse("a_scales", "None", "must be given for a in NVFP4");
  }
  if (rows.row_scale) {
    const int64_t count = call.a.rows * (call.rows_are_batched ? call.l : 1);
    call.buffers.a_row_scale = static_cast<const float*>(
        vector_of("a_row_scale", *rows.row_scale, count, dtypes().float32));
  }
  if (groups.offsets) {
    check_tensor("offsets", *groups.offsets, call.place);
    call.buffers.expert_offsets = static_cast<const int32_t*>(
        vector_of("offsets", *groups.offsets, call.l + 1, dtypes().int32));
  }
  if (groups.m_indices) {
    check_tensor("m_indices", *groups.m_indices, call.place);
    call.buffers.row_experts = static_cast<const int32_t*>(
        vector_of("m_indices", *groups.m_indices, call.a.rows, dtypes().int32));
  }
  if (groups.masked_m) {
    check_tensor("masked_m", *groups.masked_m, call.place);
    call.buffers.expert_rows = static_cast<const int32_t*>(
        vector_of("masked_m", *groups.masked_m, call.l, dtypes().int32));
  }
  return call;
}

// The layout of a weight, [n, k] or [l, n, k], whose values have been looked at, with its scales.
dualgemm_matrix with_scales(const char* name, const char* scales_name, const Tensor& values,
                            const OptionalTensor& scales, const std::string& scale_layout,
                            const Call& call, Matrix matrix, const void*& data,
                            const uint8_t*& scale_data) {
  check_tensor(scales_name, given(scales_name, scales), call.place);
  if (matrix.layout.type != DUALGEMM_E2M1) {
    refuse(name, dtype_text(values), "must be uint8 or float4_e2m1fn_x2");
  }
  if (matrix.columns != call.a.columns) {
    refuse(name, std::to_string(matrix.columns) + " columns",
           "must be the " + std::to_string(call.a.columns) + " of a");
  }
  data = matrix.data;
  scale_data = static_cast<const uint8_t*>(
      add_scales(scales_name, *scales, scale_layout, call.weights_are_batched, 0, matrix));
  return matrix.layout;
}

const float* alpha_of(const char* name, const OptionalTensor& alpha, const Call& call) {
  if (!alpha) return nullptr;
  check_tensor(name, *alpha, call.place);
  return static_cast<const float*>(vector_of(name, *alpha, call.l, dtypes().float32));
}

// The type goes into `type`, where both biases of a call must agree.
const void* bias_of(const char* name, const OptionalTensor& bias, const Call& call, int32_t& type) {
  if (!bias) return nullptr;
  check_tensor(name, *bias, call.place);
  const bool is_f32 = dtype_of(*bias) == dtypes().float32;
  if (!is_f32 && dtype_of(*bias) != dtypes().bfloat16) {
    refuse(name, dtype_text(*bias), "must be float32 or bfloat16");
  }
  const int32_t own = is_f32 ? DUALGEMM_BIAS_F32 : DUALGEMM_BIAS_BF16;
  if (type != DUALGEMM_BIAS_NONE && type != own) {
    refuse(name, "another dtype than the other bias", "must be the same");
  }
  type = own;
  return vector_of(name, *bias, call.n * call.l, dtype_of(*bias));
}

dualgemm_activation activation_of(const ActivationArguments& given) {
  const auto value = [](const std::optional<double>& number) {
    return number ? static_cast<float>(*number) : std::numeric_limits<float>::quiet_NaN();
  };
  return {activation_named(given.kind), value(given.alpha), value(given.beta), value(given.limit)};
}

// As a plan wants to know it for a GPU; of what may lie anywhere.
int32_t any_unaligned(const Call& call, std::initializer_list<const void*> addresses) {
  if (!call.place.is_cuda) return 0;
  for (const void* address : addresses) {
    if (!is_aligned(address)) return 1;
  }
  return 0;
}

Tensor wide_d(const WideOutput& output, const Tensor& rows, const Call& call, Matrix& d) {
  const Shape shape = shape_with_columns(rows, call.n);
  int32_t type = call.a.layout.type == DUALGEMM_E2M1 ? DUALGEMM_F16 : call.a.layout.type;
  if (output.dtype) type = data_type_of("out_dtype", *output.dtype);
  Tensor result = output.out ? *output.out : new_tensor(call.place, dtype_for(type), shape);
  if (output.out) {
    check_tensor("out", result, call.place);
    check_shape("out", result, shape);
    check_is_wide("out", result);
  } else if (call.grouping != DUALGEMM_GROUPING_NONE) {
    TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(result.get()));
  }
  d = matrix_of("out", result, call.rows_are_batched);
  if (output.out && output.dtype && d.layout.type != type) {
    refuse("out", "another dtype than out_dtype", "must be the same");
  }
  return result;
}

std::pair<Tensor, Tensor> nvfp4_d(const Nvfp4Output& output, const Tensor& rows, const Call& call,
                                  const dualgemm_problem& problem, Matrix& d) {
  if (call.n % DUALGEMM_SF_VEC != 0) {
    refuse("gate", std::to_string(call.n) + " rows", "must be a multiple of 16 for D in NVFP4");
  }
  const bool swizzled = output.scale_layout == "swizzled_128x4";
  if (!swizzled && output.scale_layout != "linear") {
    refuse("d_scale_layout", '"' + output.scale_layout + '"', "must be linear or swizzled_128x4");
  }
  const Shape shape = shape_with_columns(rows, call.n / 2);
  Shape scale_shape = shape_with_columns(rows, call.n / DUALGEMM_SF_VEC);
  if (swizzled) {
    dualgemm_problem sized = problem;
    sized.d.type = DUALGEMM_E2M1;
    sized.d.scale_layout = DUALGEMM_SCALES_SWIZZLED_128X4;
    if (sized.m == 0) sized.m = 1;
    scale_shape = {problem.m == 0 ? 0 : operand_bytes(sized).d_scales};
  }
  Tensor codes = output.codes ? *output.codes : new_tensor(call.place, dtypes().uint8, shape);
  Tensor scales =
      output.scales ? *output.scales : new_tensor(call.place, dtypes().float8_e4m3fn, scale_shape);
  if (output.codes) {
    check_tensor("out_codes", codes, call.place);
    check_shape("out_codes", codes, shape);
  }
  if (output.scales) {
    check_tensor("out_scales", scales, call.place);
    check_shape("out_scales", scales, scale_shape);
  }
  d = matrix_of("out_codes", codes, call.rows_are_batched);
  if (d.layout.type != DUALGEMM_E2M1) {
    refuse("out_codes", dtype_text(codes), "must be uint8 or float4_e2m1fn_x2");
  }
  return {codes, scales};
}

// The dual problem, all but D.
void fill_dual(const Weights& weights, const Factors& factors,
               const ActivationArguments& activation, const Choice& choice, Call& call) {
  dualgemm_problem& problem = call.key.problem;
  dualgemm_buffers& buffers = call.buffers;
  check(dualgemm_problem_init(&problem, sizeof problem));
  problem.m = call.a.rows;
  problem.n = call.n;
  problem.k = call.a.columns;
  problem.l = call.l;
  problem.a = call.a.layout;
  problem.grouping = call.grouping;
  problem.batch_invariant = choice.batch_invariant ? 1 : 0;
  problem.act = activation_of(activation);
  if (!weights.packed) {
    problem.gate =
        with_scales("gate", "gate_scales", *weights.gate, weights.gate_scales, choice.scale_layout,
                    call, call.first, buffers.gate, buffers.gate_scales);
    check_tensor("up", given("up", weights.up), call.place);
    const Matrix up = matrix_of("up", *weights.up, call.weights_are_batched);
    problem.up = with_scales("up", "up_scales", *weights.up, weights.up_scales, choice.scale_layout,
                             call, up, buffers.up, buffers.up_scales);
    if (up.rows != call.n || up.batches != call.l) {
      refuse("up", "shape " + shape_text(*weights.up),
             "must be that of gate: " + shape_text(*weights.gate));
    }
  }
  buffers.alpha_gate_per_batch = alpha_of("alpha_gate", factors.alpha_gate, call);
  buffers.alpha_up_per_batch = alpha_of("alpha_up", factors.alpha_up, call);
  buffers.bias_gate = bias_of("bias_gate", factors.bias_gate, call, problem.bias);
  buffers.bias_up = bias_of("bias_up", factors.bias_up, call, problem.bias);
}

void run(const Weights& weights, const Tensor& d, Call& call) {
  call.key.unaligned = any_unaligned(
      call, {call.buffers.a, call.buffers.a_scales, call.buffers.gate, call.buffers.gate_scales,
             call.buffers.up, call.buffers.up_scales, call.buffers.d, call.buffers.d_scales});
  if (d.numel() == 0) return;
  launch(call.place, call.key, weights.packed ? &*weights.packed : nullptr, call.buffers);
}

// A plan for one row of that dtype, its weights packed.
Tensor pack(Call& call) {
  call.key.prepared = 1;
  const OnDevice on_device(call.place);
  const std::shared_ptr<const Plan> plan = plan_for(call.key);
  const int64_t bytes = plan->prepared.bytes;
  Tensor packed = new_tensor(call.place, dtypes().uint8, {bytes});
  if (call.place.is_cuda) call.buffers.stream = current_cuda_stream(call.place.index);
  check(dualgemm_prepare_into(plan->plan, &call.buffers, packed.data_ptr(), bytes));
  return packed;
}

// What packing needs of a call: the weights, and one row of nothing.
Call begin_pack(const Weights& weights, ScalarType rows_dtype) {
  Call call;
  call.place = Place::of(weights.first_name, given(weights.first_name, weights.gate));
  take_first(weights, call);
  call.a.rows = 1;
  call.a.columns = call.first.columns;
  const bool is_nvfp4 = static_cast<int32_t>(rows_dtype) == dtypes().uint8 ||
                        static_cast<int32_t>(rows_dtype) == dtypes().float4_e2m1fn_x2;
  call.a.layout.type = is_nvfp4 ? DUALGEMM_E2M1 : data_type_of("a_dtype", rows_dtype);
  call.key.device = call.place.is_cuda ? DUALGEMM_DEVICE_CUDA : DUALGEMM_DEVICE_CPU;
  call.key.device_index = call.place.is_cuda ? call.place.index : 0;
  check(dualgemm_buffers_init(&call.buffers, sizeof call.buffers));
  return call;
}

// Turns the call into that of one product.
void fill_linear(const Weights& weights, const Factors& factors, const Choice& choice,
                 const dualgemm_matrix& d, const OptionalTensor& residual, Call& call) {
  dualgemm_linear_problem problem;
  dualgemm_linear_buffers buffers;
  check(dualgemm_linear_problem_init(&problem, sizeof problem));
  check(dualgemm_linear_buffers_init(&buffers, sizeof buffers));
  problem.m = call.a.rows > 0 ? call.a.rows : 1;
  problem.n = call.n;
  problem.k = call.a.columns;
  problem.l = call.l;
  problem.a = call.a.layout;
  problem.d = d;
  problem.grouping = call.grouping;
  problem.batch_invariant = choice.batch_invariant ? 1 : 0;
  if (!weights.packed) {
    problem.w = with_scales("w", "w_scales", *weights.gate, weights.gate_scales,
                            choice.scale_layout, call, call.first, buffers.w, buffers.w_scales);
  }
  buffers.a = call.buffers.a;
  buffers.a_scales = call.buffers.a_scales;
  buffers.a_row_scale = call.buffers.a_row_scale;
  buffers.expert_offsets = call.buffers.expert_offsets;
  buffers.expert_rows = call.buffers.expert_rows;
  buffers.row_experts = call.buffers.row_experts;
  buffers.alpha_per_batch = alpha_of("alpha", factors.alpha_gate, call);
  buffers.bias = bias_of("bias", factors.bias_gate, call, problem.bias);
  buffers.d = call.buffers.d;
  if (residual) {
    problem.residual = 1;
    buffers.residual = residual->data_ptr();
  }
  check(dualgemm_problem_init(&call.key.problem, sizeof call.key.problem));
  check(dualgemm_linear_dual_problem(&problem, &call.key.problem));
  check(dualgemm_linear_dual_buffers(&problem, &buffers, &call.buffers));
}

}  // namespace

Tensor glu(const Rows& rows, const Weights& weights, const Factors& factors,
           const ActivationArguments& activation, const Choice& choice, const Groups& groups,
           const WideOutput& output) {
  Call call = begin(rows, weights, choice, groups);
  fill_dual(weights, factors, activation, choice, call);
  Matrix d;
  Tensor result = wide_d(output, rows.values, call, d);
  call.key.problem.d = d.layout;
  call.buffers.d = d.data;
  run(weights, result, call);
  return result;
}

std::pair<Tensor, Tensor> glu_nvfp4(const Rows& rows, const Weights& weights,
                                    const Factors& factors, const ActivationArguments& activation,
                                    const Choice& choice, const Groups& groups,
                                    const Nvfp4Output& output) {
  Call call = begin(rows, weights, choice, groups);
  fill_dual(weights, factors, activation, choice, call);
  Matrix d;
  std::pair<Tensor, Tensor> result = nvfp4_d(output, rows.values, call, call.key.problem, d);
  call.buffers.d = d.data;
  int64_t whole = result.second.numel();  // swizzled: checked above to be what the problem wants
  call.buffers.d_scales = static_cast<uint8_t*>(
      add_scales("out_scales", result.second, output.scale_layout, call.rows_are_batched,
                 output.scale_layout == "linear" ? 0 : whole, d));
  call.key.problem.d = d.layout;
  call.buffers.d_global_scale = static_cast<float>(output.global_scale);
  run(weights, result.first, call);
  return result;
}

Tensor pack_weights(const Weights& weights, ScalarType rows_dtype,
                    const std::string& scale_layout) {
  Call call = begin_pack(weights, rows_dtype);
  Choice choice;
  choice.scale_layout = scale_layout;
  fill_dual(weights, {}, {"silu", {}, {}, {}}, choice, call);
  call.key.problem.d.type = call.a.layout.type == DUALGEMM_E2M1 ? DUALGEMM_F16 : call.a.layout.type;
  call.key.unaligned = any_unaligned(
      call, {call.buffers.gate, call.buffers.gate_scales, call.buffers.up, call.buffers.up_scales});
  return pack(call);
}

Tensor linear(const Rows& rows, const Weights& weights, const Factors& factors,
              const OptionalTensor& residual, const Choice& choice, const Groups& groups,
              const WideOutput& output) {
  Call call = begin(rows, weights, choice, groups);
  Matrix d;
  Tensor result = wide_d(output, rows.values, call, d);
  if (residual) {
    check_tensor("residual", *residual, call.place);
    check_shape("residual", *residual, shape_with_columns(rows.values, call.n));
    const Matrix added = matrix_of("residual", *residual, call.rows_are_batched);
    if (added.layout.type != d.layout.type || added.layout.ld != d.layout.ld ||
        added.layout.batch_stride != d.layout.batch_stride) {
      refuse("residual", "another dtype or other strides than D", "must lie as D does");
    }
  }
  call.buffers.d = d.data;
  fill_linear(weights, factors, choice, d.layout, residual, call);
  run(weights, result, call);
  return result;
}

Tensor pack_linear(const Weights& weights, ScalarType rows_dtype, const std::string& scale_layout) {
  Call call = begin_pack(weights, rows_dtype);
  Choice choice;
  choice.scale_layout = scale_layout;
  dualgemm_matrix d{};
  d.type = call.a.layout.type == DUALGEMM_E2M1 ? DUALGEMM_F16 : call.a.layout.type;
  fill_linear(weights, {}, choice, d, std::nullopt, call);
  call.key.unaligned = any_unaligned(
      call, {call.buffers.gate, call.buffers.gate_scales, call.buffers.up, call.buffers.up_scales});
  return pack(call);
}

}  // namespace dualgemm::python
