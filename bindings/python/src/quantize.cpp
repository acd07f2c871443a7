// quantize_nvfp4, dequantize_nvfp4 and transform_rows: tensors of 16 or 32 bits to NVFP4 and back,
// and their rows transformed.
#include "quantize.hpp"

#include <optional>
#include <string>
#include <tuple>

#include "dualgemm/quantize.h"
#include "kernels.hpp"
#include "launch.hpp"
#include "status.hpp"

namespace dualgemm::python {
namespace {

using std::string;
using torch::headeronly::ScalarType;

// codes [..., rows, k/2], scales, global scale. global_scale: given [1]; none: found, of the tensor
// or, per_row, of each row.
struct Quantized {
  Tensor codes, scales, global_scale;
};
struct QuantizeOutput {
  OptionalTensor codes, scales, global_scale;
};
// What becomes of rows first: RowTransform of dualgemm/quantize.hpp.
struct Transform {
  OptionalTensor column_factors;
  int64_t hadamard = 0;

  const float* factors(const Place& place, int64_t columns) const {
    if (!column_factors) return nullptr;
    check_tensor("column_factors", *column_factors, place);
    return static_cast<const float*>(
        vector_of("column_factors", *column_factors, columns, dtypes().float32));
  }
};

dualgemm_execution_options options_for(const Place& place) {
  dualgemm_execution_options options;
  check(dualgemm_execution_options_init(&options, sizeof options));
  options.device = place.is_cuda ? DUALGEMM_DEVICE_CUDA : DUALGEMM_DEVICE_CPU;
  options.trusted_pointers = place.is_cuda ? 1 : 0;
  return options;
}

dualgemm_quantize_problem problem_for(const Matrix& x, const dualgemm_matrix& q) {
  dualgemm_quantize_problem problem;
  check(dualgemm_quantize_problem_init(&problem, sizeof problem));
  problem.rows = x.rows;
  problem.cols = x.columns;
  problem.x = x.layout;
  problem.q = q;
  return problem;
}

template <typename Bits>
void check_rows_are_finite(const Matrix& x, Bits exponent) {
  for (int64_t row = 0; row < x.rows; ++row) {
    const Bits* const values = static_cast<const Bits*>(x.data) + row * x.layout.ld;
    bool is_finite = true;  // no way out of the loop: so it is vectorised
    for (int64_t column = 0; column < x.columns; ++column) {
      is_finite &= (values[column] & exponent) != exponent;
    }
    if (!is_finite) {
      refuse("x", "NaN or infinity in row " + std::to_string(row), "must be finite");
    }
  }
}

// In host memory, where looking does not synchronise.
void check_is_finite(const Matrix& x) {
  if (x.layout.type == DUALGEMM_F16) return check_rows_are_finite<uint16_t>(x, 0x7C00);
  if (x.layout.type == DUALGEMM_BF16) return check_rows_are_finite<uint16_t>(x, 0x7F80);
  check_rows_are_finite<uint32_t>(x, 0x7F800000);
}

// In place of a tensor that the caller gave, or new.
Tensor output_tensor(const char* name, const OptionalTensor& given, const Place& place,
                     int32_t dtype, const Shape& shape) {
  if (!given) return new_tensor(place, dtype, shape);
  check_tensor(name, *given, place);
  check_shape(name, *given, shape);
  if (!given->is_contiguous()) refuse(name, "strided", "must be contiguous");
  return *given;
}

// The global scale of no values, as of zeros.
void write_one(const Tensor& scale) {
  const Tensor one = new_tensor({aoti_torch_device_type_cpu(), 0, false}, dtypes().float32, {1});
  *static_cast<float*>(one.data_ptr()) = 1.0f;
  TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(scale.get(), one.get(), 0));
}

void run_quantize(const Place& place, const dualgemm_quantize_problem& problem,
                  dualgemm_quantize_buffers& buffers) {
  const dualgemm_execution_options options = options_for(place);
  dualgemm_quantize_bytes bytes{};
  bytes.struct_size = sizeof bytes;
  check(dualgemm_quantize_sizes(&problem, options.device, &bytes));
  OptionalTensor workspace;
  if (bytes.workspace > 0) {
    workspace = new_tensor(place, dtypes().uint8, {bytes.workspace});
    buffers.workspace = workspace->data_ptr();
    buffers.workspace_bytes = bytes.workspace;
  }
  if (place.is_cuda) buffers.stream = current_cuda_stream(place.index);
  check(dualgemm_quantize_tensor(&problem, &buffers, &options));
}

Quantized quantize(const Tensor& x, const OptionalTensor& global_scale, const string& scale_layout,
                   bool four_over_six, bool per_row, const Transform& transform,
                   const QuantizeOutput& output) {
  const Place place = Place::of("x", x);
  check_tensor("x", x, place);
  check_is_wide("x", x);
  const Matrix source = matrix_of("x", x, false);
  if (source.columns == 0 || source.columns % DUALGEMM_SF_VEC != 0) {
    refuse("x", std::to_string(source.columns) + " columns", "must be a positive multiple of 16");
  }
  const bool swizzled = scale_layout == "swizzled_128x4";
  if (!swizzled && scale_layout != "linear") {
    refuse("scale_layout", '"' + scale_layout + '"', "must be linear or swizzled_128x4");
  }
  if (global_scale && per_row) {
    refuse("global_scale", "given", "must be None where each row finds its own");
  }
  if (!place.is_cuda) check_is_finite(source);

  Shape scale_shape = shape_with_columns(x, source.columns / DUALGEMM_SF_VEC);
  if (swizzled) {
    int64_t span = 0;
    check(dualgemm_scale_span(DUALGEMM_SCALES_SWIZZLED_128X4, source.rows > 0 ? source.rows : 1,
                              source.columns / DUALGEMM_SF_VEC, 0, &span));
    scale_shape = {source.rows > 0 ? span : 0};
  }
  Shape global_shape = {1};
  if (per_row) {
    global_shape = shape_with_columns(x, 1);
    global_shape.pop_back();
  }
  Quantized made = {
      output_tensor("out_codes", output.codes, place, dtypes().uint8,
                    shape_with_columns(x, source.columns / 2)),
      output_tensor("out_scales", output.scales, place, dtypes().float8_e4m3fn, scale_shape),
      output_tensor("out_global_scale", output.global_scale, place, dtypes().float32,
                    global_shape)};

  dualgemm_matrix q{};
  q.scale_layout = swizzled ? DUALGEMM_SCALES_SWIZZLED_128X4 : DUALGEMM_SCALES_LINEAR;
  dualgemm_quantize_problem problem = problem_for(source, q);
  problem.four_over_six = four_over_six ? 1 : 0;
  problem.has_column_factors = transform.column_factors ? 1 : 0;
  problem.hadamard = transform.hadamard;
  problem.scaling = per_row ? DUALGEMM_SCALING_ROW
                            : (global_scale ? DUALGEMM_SCALING_GIVEN : DUALGEMM_SCALING_TENSOR);
  dualgemm_quantize_buffers buffers;
  check(dualgemm_quantize_buffers_init(&buffers, sizeof buffers));
  buffers.x = source.data;
  buffers.column_factors = transform.factors(place, source.columns);
  buffers.codes = static_cast<uint8_t*>(made.codes.data_ptr());
  buffers.scales = static_cast<uint8_t*>(made.scales.data_ptr());
  if (global_scale) {
    check_tensor("global_scale", *global_scale, place);
    buffers.global_scale =
        static_cast<const float*>(vector_of("global_scale", *global_scale, 1, dtypes().float32));
  } else {
    buffers.found_scale = static_cast<float*>(made.global_scale.data_ptr());
  }
  const OnDevice on_device(place);
  if (source.rows > 0) {
    run_quantize(place, problem, buffers);
  } else if (problem.scaling == DUALGEMM_SCALING_TENSOR) {
    write_one(made.global_scale);
  }
  if (global_scale) {  // last: the library may have refused it, and then nothing is to be written
    TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(made.global_scale.get(), global_scale->get(), 1));
  }
  return made;
}

std::tuple<Tensor, Tensor, Tensor> op_quantize(Tensor x, OptionalTensor global_scale,
                                               OptionalTensor column_factors, string scale_layout,
                                               bool four_over_six, bool per_row, int64_t hadamard) {
  Quantized made = quantize(x, global_scale, scale_layout, four_over_six, per_row,
                            {column_factors, hadamard}, {});
  return {made.codes, made.scales, made.global_scale};
}
void op_quantize_out(Tensor x, OptionalTensor global_scale, OptionalTensor column_factors,
                     string scale_layout, bool four_over_six, bool per_row, int64_t hadamard,
                     Tensor out_codes, Tensor out_scales, Tensor out_global_scale) {
  quantize(x, global_scale, scale_layout, four_over_six, per_row, {column_factors, hadamard},
           {out_codes, out_scales, out_global_scale});
}

Tensor op_transform(Tensor x, OptionalTensor column_factors, int64_t hadamard) {
  const Place place = Place::of("x", x);
  check_tensor("x", x, place);
  check_is_wide("x", x);
  const Matrix source = matrix_of("x", x, false);
  const Transform transform{column_factors, hadamard};
  Tensor y =
      new_tensor(place, dtype_for(source.layout.type), shape_with_columns(x, source.columns));
  if (y.numel() == 0) return y;
  dualgemm_transform_problem problem;
  check(dualgemm_transform_problem_init(&problem, sizeof problem));
  problem.rows = source.rows;
  problem.cols = source.columns;
  problem.x = source.layout;
  problem.y.type = source.layout.type;
  problem.has_column_factors = column_factors ? 1 : 0;
  problem.hadamard = hadamard;
  dualgemm_transform_buffers buffers;
  check(dualgemm_transform_buffers_init(&buffers, sizeof buffers));
  buffers.x = source.data;
  buffers.column_factors = transform.factors(place, source.columns);
  buffers.y = y.data_ptr();
  const OnDevice on_device(place);
  if (place.is_cuda) buffers.stream = current_cuda_stream(place.index);
  const dualgemm_execution_options options = options_for(place);
  check(dualgemm_transform_rows(&problem, &buffers, &options));
  return y;
}

// global_scale: [1], or one for each row.
Tensor op_dequantize(Tensor codes, Tensor scales, Tensor global_scale, ScalarType dtype,
                     string scale_layout) {
  const Place place = Place::of("codes", codes);
  check_tensor("codes", codes, place);
  check_tensor("scales", scales, place);
  check_tensor("global_scale", global_scale, place);
  Matrix q = matrix_of("codes", codes, false);
  if (q.layout.type != DUALGEMM_E2M1) {
    refuse("codes", dtype_text(codes), "must be uint8 or float4_e2m1fn_x2");
  }
  const void* const scale_data = add_scales("scales", scales, scale_layout, false, 0, q);
  const int32_t type = data_type_of("dtype", dtype);
  Tensor x = new_tensor(place, dtype_for(type), shape_with_columns(codes, q.columns));
  if (x.numel() == 0) return x;

  Matrix target;
  target.rows = q.rows;
  target.columns = q.columns;
  target.layout.type = type;
  dualgemm_quantize_problem problem = problem_for(target, q.layout);
  const bool per_row = global_scale.numel() != 1;
  problem.scaling = per_row ? DUALGEMM_SCALING_ROW : DUALGEMM_SCALING_GIVEN;
  dualgemm_dequantize_buffers buffers;
  check(dualgemm_dequantize_buffers_init(&buffers, sizeof buffers));
  buffers.codes = static_cast<const uint8_t*>(q.data);
  buffers.scales = static_cast<const uint8_t*>(scale_data);
  buffers.global_scale = static_cast<const float*>(
      vector_of("global_scale", global_scale, per_row ? q.rows : 1, dtypes().float32));
  buffers.x = x.data_ptr();
  const OnDevice on_device(place);
  if (place.is_cuda) buffers.stream = current_cuda_stream(place.index);
  const dualgemm_execution_options options = options_for(place);
  check(dualgemm_dequantize_tensor(&problem, &buffers, &options));
  return x;
}

}  // namespace

DUALGEMM_KERNELS(m) {
  m.impl("quantize_nvfp4", TORCH_BOX(&op_quantize));
  m.impl("quantize_nvfp4.out", TORCH_BOX(&op_quantize_out));
  m.impl("dequantize_nvfp4", TORCH_BOX(&op_dequantize));
  m.impl("transform_rows", TORCH_BOX(&op_transform));
}

Tensor linear_scales(const Place& place, const Tensor& codes, const Matrix& matrix,
                     const uint8_t* scales) {
  dualgemm_scale_conversion conversion{};
  conversion.struct_size = sizeof conversion;
  conversion.rows = matrix.rows;
  conversion.sf_cols = matrix.columns / DUALGEMM_SF_VEC;
  conversion.l = matrix.batches;
  conversion.from.layout = DUALGEMM_SCALES_SWIZZLED_128X4;
  conversion.to.layout = DUALGEMM_SCALES_LINEAR;
  Tensor linear =
      new_tensor(place, dtypes().float8_e4m3fn, shape_with_columns(codes, conversion.sf_cols));
  const OnDevice on_device(place);
  void* const stream = place.is_cuda ? current_cuda_stream(place.index) : nullptr;
  const dualgemm_execution_options options = options_for(place);
  check(dualgemm_convert_tensor_scales(&conversion, scales,
                                       static_cast<uint8_t*>(linear.data_ptr()), stream, &options));
  return linear;
}

}  // namespace dualgemm::python
