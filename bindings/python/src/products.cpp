#include "products.hpp"

#include "call.hpp"
#include "launch.hpp"
#include "status.hpp"

namespace dualgemm::python {
namespace {

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

// name: of the weight whose rows are D's columns.
std::pair<Tensor, Tensor> nvfp4_d(const Nvfp4Output& output, const Tensor& rows, const char* name,
                                  const Call& call, const dualgemm_problem& problem, Matrix& d) {
  if (call.n % DUALGEMM_SF_VEC != 0) {
    refuse(name, std::to_string(call.n) + " rows", "must be a multiple of 16 for D in NVFP4");
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
  if (call.grouping != DUALGEMM_GROUPING_NONE) {  // as wide_d()
    if (!output.codes) TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(codes.get()));
    if (!output.scales) TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(scales.get()));
  }
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

void run(const Weights& weights, const Tensor& d, Call& call) {
  call.key.unaligned = any_unaligned(
      call, {call.buffers.a, call.buffers.a_scales, call.buffers.gate, call.buffers.gate_scales,
             call.buffers.up, call.buffers.up_scales, call.buffers.d, call.buffers.d_scales});
  if (d.numel() == 0) return;
  launch(call.place, call.key, weights.packed ? &*weights.packed : nullptr, call.buffers);
}

// D's arrays among the call's buffers, and the layout of its scales in `d`.
void put_nvfp4(const Nvfp4Output& output, const std::pair<Tensor, Tensor>& result, Call& call,
               Matrix& d) {
  call.buffers.d = d.data;
  const int64_t whole = result.second.numel();  // swizzled: nvfp4_d() has checked it
  call.buffers.d_scales = static_cast<uint8_t*>(
      add_scales("out_scales", result.second, output.scale_layout, call.rows_are_batched,
                 output.scale_layout == "linear" ? 0 : whole, d));
  call.buffers.d_global_scale = static_cast<float>(output.global_scale);
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
  std::pair<Tensor, Tensor> result =
      nvfp4_d(output, rows.values, weights.first_name, call, call.key.problem, d);
  put_nvfp4(output, result, call, d);
  call.key.problem.d = d.layout;
  run(weights, result.first, call);
  return result;
}

Tensor linear(const Rows& rows, const Weights& weights, const Factors& factors,
              const LinearEnd& end, const Choice& choice, const Groups& groups,
              const WideOutput& output) {
  Call call = begin(rows, weights, choice, groups);
  Matrix d;
  Tensor result = wide_d(output, rows.values, call, d);
  if (end.residual) {
    check_tensor("residual", *end.residual, call.place);
    check_shape("residual", *end.residual, shape_with_columns(rows.values, call.n));
    const Matrix added = matrix_of("residual", *end.residual, call.rows_are_batched);
    if (added.layout.type != d.layout.type || added.layout.ld != d.layout.ld ||
        added.layout.batch_stride != d.layout.batch_stride) {
      refuse("residual", "another dtype or other strides than D", "must lie as D does");
    }
  }
  call.buffers.d = d.data;
  fill_linear(weights, factors, choice, end, d.layout, call);
  run(weights, result, call);
  return result;
}

std::pair<Tensor, Tensor> linear_nvfp4(const Rows& rows, const Weights& weights,
                                       const Factors& factors, const LinearEnd& end,
                                       const Choice& choice, const Groups& groups,
                                       const Nvfp4Output& output) {
  Call call = begin(rows, weights, choice, groups);
  if (groups.is_contiguous() && output.scale_layout == "swizzled_128x4") {
    // How many there are depends on numbers that a GPU has.
    refuse("d_scale_layout", "\"swizzled_128x4\"", "must be linear for rows that have experts");
  }
  // The whole product, whose D has all columns, says what a swizzled array of scales must hold.
  dualgemm_problem whole;
  check(dualgemm_problem_init(&whole, sizeof whole));
  whole.m = call.a.rows;
  whole.n = call.n;
  whole.k = call.a.columns;
  whole.l = call.l;
  whole.grouping = call.grouping;
  Matrix d;
  std::pair<Tensor, Tensor> result =
      nvfp4_d(output, rows.values, weights.first_name, call, whole, d);
  put_nvfp4(output, result, call, d);
  fill_linear(weights, factors, choice, end, d.layout, call);
  run(weights, result.first, call);
  return result;
}

}  // namespace dualgemm::python
