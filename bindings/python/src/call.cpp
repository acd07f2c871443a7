#include "call.hpp"

#include <cmath>
#include <limits>

#include "launch.hpp"
#include "quantize.hpp"
#include "status.hpp"

namespace dualgemm::python {
namespace {

void check_optional(const char* name, const OptionalTensor& tensor, const Place& place) {
  if (tensor) check_tensor(name, *tensor, place);
}

void take_groups(const Groups& groups, Call& call) {
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
}

// Bytes that swizzled scales of A must have in contiguous groups, where every expert's begin at a
// block of 128 rows of their own, wherever its rows are. In host memory the offsets say how many
// blocks those are. On a GPU they would have to be waited for: room for any offsets is demanded.
int64_t span_of_groups(const Call& call) {
  const int64_t blocks = call.a.columns / DUALGEMM_SF_VEC;
  if (!call.place.is_cuda) {
    int64_t tiles = 0;
    for (int64_t expert = 0; expert < call.l; ++expert) {
      const int64_t rows = static_cast<int64_t>(call.buffers.expert_offsets[expert + 1]) -
                           call.buffers.expert_offsets[expert];
      if (rows > 0) tiles += (rows + 127) / 128;
    }
    int64_t span = 0;
    check(dualgemm_scale_span(DUALGEMM_SCALES_SWIZZLED_128X4, tiles > 0 ? tiles * 128 : 1, blocks,
                              0, &span));
    return tiles > 0 ? span : 0;
  }
  dualgemm_problem sized;
  check(dualgemm_problem_init(&sized, sizeof sized));
  sized.m = call.a.rows > 0 ? call.a.rows : 1;
  sized.n = call.n;
  sized.k = call.a.columns;
  sized.l = call.l;
  sized.grouping = call.grouping;
  sized.a.scale_layout = DUALGEMM_SCALES_SWIZZLED_128X4;
  return operand_bytes(sized).a_scales;
}

void take_scales(const Rows& rows, const Choice& choice, const Groups& groups, Call& call) {
  // Rows with an expert each (m_indices) have the scales of one matrix.
  if (rows.scales && call.a.layout.type == DUALGEMM_E2M1) {
    const int64_t span = groups.offsets ? span_of_groups(call) : 0;
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
}

}  // namespace

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

// A number that was given counts, also 0, which the C interface takes for "not given" in alpha and
// limit and refuses as SwiGLU-OAI's beta: with that it is clamped SwiGLU, of the same defaults.
dualgemm_activation activation_of(const ActivationArguments& given) {
  const auto value = [](const char* name, const std::optional<double>& number, bool zero_is_legal,
                        const char* rule) {
    if (!number) return std::numeric_limits<float>::quiet_NaN();
    if (std::isnan(*number) || (*number == 0 && !zero_is_legal)) {
      refuse(name, std::isnan(*number) ? "nan" : "0", rule);
    }
    return static_cast<float>(*number);
  };
  dualgemm_activation act = {activation_named(given.kind),
                             value("act_alpha", given.alpha, false, "must be finite and not 0"),
                             value("act_beta", given.beta, true, "must be finite"),
                             value("act_limit", given.limit, false, "must be > 0")};
  if (act.kind == DUALGEMM_SWIGLU_OAI && act.beta == 0.0f) {
    act.kind = DUALGEMM_CLAMPED_SWIGLU;
    if (!given.alpha) act.alpha = 1.702f;
    if (!given.limit) act.limit = 7.0f;
  }
  return act;
}

void check_packed_rows(const Tensor& packed, const Call& call) {
  const int64_t most = 2 * packed.numel() / (call.a.columns > 0 ? call.a.columns : 1);
  if (call.n < 1 || call.l < 1 || call.n > most / call.l) {
    refuse("packed", std::to_string(packed.numel()) + " bytes",
           "cannot be " + std::to_string(call.l) + " layers of n = " + std::to_string(call.n) +
               " rows");
  }
}

const Tensor& given(const char* name, const OptionalTensor& tensor) {
  if (!tensor) refuse(name, "None", "must be given where packed is None");
  return *tensor;
}

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
  if (weights.packed) check_packed_rows(*weights.packed, call);
  check(dualgemm_buffers_init(&call.buffers, sizeof call.buffers));
  call.buffers.a = call.a.data;

  call.key.device = call.place.is_cuda ? DUALGEMM_DEVICE_CUDA : DUALGEMM_DEVICE_CPU;
  call.key.device_index = call.place.is_cuda ? call.place.index : 0;
  call.key.strategy = strategy_named(choice.strategy);
  call.key.prepared = weights.packed ? 1 : 0;
  call.key.config = choice.config;

  take_groups(groups, call);
  take_scales(rows, choice, groups, call);
  return call;
}

int32_t any_unaligned(const Call& call, std::initializer_list<const void*> addresses) {
  if (!call.place.is_cuda) return 0;
  for (const void* address : addresses) {
    if (!is_aligned(address)) return 1;
  }
  return 0;
}

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

Weights with_linear_scales(Weights weights, const std::string& scale_layout, const Call& call) {
  const void* data = nullptr;
  const uint8_t* scales = nullptr;
  Matrix w = call.first;
  w.layout = with_scales("w", "w_scales", *weights.gate, weights.gate_scales, scale_layout, call, w,
                         data, scales);
  if (w.layout.scale_layout == DUALGEMM_SCALES_SWIZZLED_128X4) {
    weights.gate_scales = linear_scales(call.place, *weights.gate, w, scales);
  }
  return weights;
}

void fill_linear(const Weights& weights, const Factors& factors, const Choice& choice,
                 const LinearEnd& end, const dualgemm_matrix& d, Call& call) {
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
  buffers.d_scales = call.buffers.d_scales;
  buffers.d_global_scale = call.buffers.d_global_scale;
  if (end.activation != "identity") problem.act.kind = activation_named(end.activation);
  if (end.residual) {
    problem.residual = 1;
    buffers.residual = end.residual->data_ptr();
  }
  check(dualgemm_problem_init(&call.key.problem, sizeof call.key.problem));
  check(dualgemm_linear_dual_problem(&problem, &call.key.problem));
  check(dualgemm_linear_dual_buffers(&problem, &buffers, &call.buffers));
}

}  // namespace dualgemm::python
