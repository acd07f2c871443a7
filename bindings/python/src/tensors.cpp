#include "tensors.hpp"

#include <algorithm>
#include <utility>

#include "status.hpp"

namespace dualgemm::python {
namespace {

int64_t strides_between_rows(const char* name, const Tensor& tensor, int64_t first, int64_t last) {
  // The dimensions first .. last as one: each step outside must be all steps inside.
  int64_t stride = 0;
  int64_t expected = -1;
  for (int64_t dim = last; dim >= first; --dim) {
    if (tensor.size(dim) == 1) continue;
    if (expected < 0) {
      stride = tensor.stride(dim);
    } else if (tensor.stride(dim) != expected) {
      refuse(name, "strides of dimensions " + std::to_string(first) + " to " + std::to_string(last),
             "leading dimensions are rows and must follow each other; use .contiguous()");
    }
    expected = tensor.stride(dim) * tensor.size(dim);
  }
  if (stride < 0) refuse(name, "stride " + std::to_string(stride), "must not be negative");
  return stride;
}

int64_t product(const Tensor& tensor, int64_t first, int64_t last) {
  int64_t rows = 1;
  for (int64_t dim = first; dim <= last; ++dim) rows *= tensor.size(dim);
  return rows;
}

void check_columns_are_dense(const char* name, const Tensor& tensor) {
  const int64_t last = tensor.dim() - 1;
  if (tensor.size(last) > 1 && tensor.stride(last) != 1) {
    refuse(name, "stride " + std::to_string(tensor.stride(last)) + " of the last dimension",
           "must be 1; use .contiguous()");
  }
}

bool is_dense_in_order(const Tensor& tensor, const std::vector<int64_t>& slowest_first) {
  int64_t expected = 1;
  for (auto dim = slowest_first.rbegin(); dim != slowest_first.rend(); ++dim) {
    if (tensor.size(*dim) != 1 && tensor.stride(*dim) != expected) return false;
    expected *= tensor.size(*dim);
  }
  return true;
}

bool is_swizzled(const Tensor& scales, const std::string& scale_layout, bool is_batched) {
  if (scale_layout == "linear") return false;
  if (scale_layout == "swizzled_128x4" || scales.dim() == 6) return true;
  if (scale_layout != "auto") {
    refuse("scale_layout", '"' + scale_layout + '"', "must be auto, linear or swizzled_128x4");
  }
  return scales.dim() == 1 || (is_batched && scales.dim() == 2);
}

}  // namespace

Place Place::of(const char* name, const Tensor& tensor) {
  if (!tensor.defined()) refuse(name, "None", "must be a tensor");
  Place place{};
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(tensor.get(), &place.type));
  place.index = tensor.get_device_index();
  place.is_cuda = place.type == aoti_torch_device_type_cuda();
  return place;
}

void check_tensor(const char* name, const Tensor& tensor, const Place& place) {
  const Place own = Place::of(name, tensor);
  if (own.type != place.type || (own.is_cuda && own.index != place.index)) {
    const auto text = [](const Place& at) {
      return at.is_cuda ? "cuda:" + std::to_string(at.index) : std::string("another device");
    };
    refuse(name, "on " + (own.is_cuda ? text(own) : std::string("the CPU")),
           "must be on the device of the first tensor");
  }
  int32_t layout = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_layout(tensor.get(), &layout));
  if (layout != aoti_torch_layout_strided()) refuse(name, "a sparse tensor", "must be strided");
  if (tensor.numel() == 0) return;
  int64_t last = tensor.storage_offset() + 1;  // one past the last element, elements
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    last += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  int64_t bytes = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_storage_size(tensor.get(), &bytes));
  if (bytes < last * static_cast<int64_t>(tensor.element_size())) {
    refuse(name, "a storage of " + std::to_string(bytes) + " bytes",
           "must hold its elements; was it freed?");
  }
}

const Dtypes& dtypes() {
  static const Dtypes numbers = {aoti_torch_dtype_uint8(),
                                 aoti_torch_dtype_float16(),
                                 aoti_torch_dtype_bfloat16(),
                                 aoti_torch_dtype_float32(),
                                 aoti_torch_dtype_int32(),
                                 aoti_torch_dtype_int64(),
                                 aoti_torch_dtype_float8_e4m3fn(),
                                 45};  // Float4_e2m1fn_x2: no function gives it before torch 2.11
  return numbers;
}

int32_t dtype_of(const Tensor& tensor) {
  int32_t dtype = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &dtype));
  return dtype;
}

std::string dtype_text(int32_t dtype) {
  // Numbers that torch writes into files: they stay.
  static constexpr std::pair<int32_t, const char*> kNames[] = {{0, "uint8"},
                                                               {1, "int8"},
                                                               {2, "int16"},
                                                               {3, "int32"},
                                                               {4, "int64"},
                                                               {5, "float16"},
                                                               {6, "float32"},
                                                               {7, "float64"},
                                                               {8, "complex32"},
                                                               {9, "complex64"},
                                                               {10, "complex128"},
                                                               {11, "bool"},
                                                               {15, "bfloat16"},
                                                               {23, "float8_e5m2"},
                                                               {24, "float8_e4m3fn"},
                                                               {25, "float8_e5m2fnuz"},
                                                               {26, "float8_e4m3fnuz"},
                                                               {27, "uint16"},
                                                               {28, "uint32"},
                                                               {29, "uint64"},
                                                               {44, "float8_e8m0fnu"},
                                                               {45, "float4_e2m1fn_x2"}};
  for (const auto& [number, name] : kNames) {
    if (number == dtype) return std::string("torch.") + name;
  }
  return "dtype number " + std::to_string(dtype);
}

std::string dtype_text(const Tensor& tensor) { return dtype_text(dtype_of(tensor)); }

int32_t data_type_of(const char* name, const Tensor& tensor) {
  const int32_t dtype = dtype_of(tensor);
  const Dtypes& known = dtypes();
  if (dtype == known.uint8 || dtype == known.float4_e2m1fn_x2) return DUALGEMM_E2M1;
  if (dtype == known.float16) return DUALGEMM_F16;
  if (dtype == known.bfloat16) return DUALGEMM_BF16;
  if (dtype == known.float32) return DUALGEMM_F32;
  refuse(name, dtype_text(dtype), "must be uint8, float4_e2m1fn_x2, float16, bfloat16 or float32");
}

void check_is_wide(const char* name, const Tensor& tensor) {
  const int32_t dtype = dtype_of(tensor);
  const Dtypes& known = dtypes();
  if (dtype != known.float16 && dtype != known.bfloat16 && dtype != known.float32) {
    refuse(name, dtype_text(dtype), "must be float16, bfloat16 or float32");
  }
}

int32_t data_type_of(const char* name, torch::headeronly::ScalarType dtype) {
  using torch::headeronly::ScalarType;
  switch (dtype) {
    case ScalarType::Half:
      return DUALGEMM_F16;
    case ScalarType::BFloat16:
      return DUALGEMM_BF16;
    case ScalarType::Float:
      return DUALGEMM_F32;
    default:
      refuse(name, dtype_text(static_cast<int32_t>(dtype)), "must be float16, bfloat16 or float32");
  }
}

int32_t dtype_for(int32_t data_type) {
  switch (data_type) {
    case DUALGEMM_F16:
      return dtypes().float16;
    case DUALGEMM_BF16:
      return dtypes().bfloat16;
    case DUALGEMM_F32:
      return dtypes().float32;
    default:
      return dtypes().uint8;
  }
}

Matrix matrix_of(const char* name, const Tensor& tensor, bool is_batched) {
  const int64_t dims = tensor.dim();
  if (is_batched ? dims != 3 : dims < 2) {
    refuse(name, "shape " + shape_text(tensor),
           is_batched ? "must have three dimensions, as the weights have" : "must have rows");
  }
  check_columns_are_dense(name, tensor);
  Matrix matrix;
  matrix.layout.type = data_type_of(name, tensor);
  const int64_t codes =
      matrix.layout.type == DUALGEMM_E2M1 ? 2 : 1;  // in one element of the tensor
  const int64_t first = is_batched ? 1 : 0;
  matrix.batches = is_batched ? tensor.size(0) : 1;
  matrix.rows = product(tensor, first, dims - 2);
  matrix.columns = tensor.size(dims - 1) * codes;
  if (matrix.rows > 1) {
    matrix.layout.ld = strides_between_rows(name, tensor, first, dims - 2) * codes;
    if (matrix.layout.ld == 0) refuse(name, "stride 0 between rows", "must not be expanded");
  }
  if (is_batched && matrix.batches > 1) {
    matrix.layout.batch_stride = tensor.stride(0) * codes;
    if (matrix.layout.batch_stride == 0) {
      refuse(name, "stride 0 between batches", "must not be expanded");
    }
  }
  matrix.data = tensor.data_ptr();
  return matrix;
}

void* add_scales(const char* name, const Tensor& scales, const std::string& scale_layout,
                 bool is_batched, int64_t span, Matrix& matrix) {
  const int32_t dtype = dtype_of(scales);
  if (dtype != dtypes().uint8 && dtype != dtypes().float8_e4m3fn) {
    refuse(name, dtype_text(dtype), "must be float8_e4m3fn or uint8");
  }
  const int64_t blocks = matrix.columns / DUALGEMM_SF_VEC;
  if (is_swizzled(scales, scale_layout, is_batched)) {
    matrix.layout.scale_layout = DUALGEMM_SCALES_SWIZZLED_128X4;
    if (span == 0) {
      check(dualgemm_scale_span(DUALGEMM_SCALES_SWIZZLED_128X4, matrix.rows, blocks, 0, &span));
      span *= matrix.batches;
    }
    const bool dense =
        scales.dim() == 6 ? is_dense_in_order(scales, {5, 2, 4, 0, 1, 3}) : scales.is_contiguous();
    if (!dense) refuse(name, "not contiguous", "swizzled scales must lie one after the other");
    if (scales.numel() < span) {
      refuse(name, "shape " + shape_text(scales),
             "swizzled_128x4 must have at least " + std::to_string(span) + " scales here");
    }
    return scales.data_ptr();
  }
  const int64_t dims = scales.dim();
  const int64_t first = is_batched ? 1 : 0;
  if (dims < first + 2 || scales.size(dims - 1) != blocks ||
      product(scales, first, dims - 2) != matrix.rows ||
      (is_batched && scales.size(0) != matrix.batches)) {
    refuse(name, "shape " + shape_text(scales),
           "linear scales must be [" + (is_batched ? std::to_string(matrix.batches) + ", " : "") +
               std::to_string(matrix.rows) + ", " + std::to_string(blocks) +
               "]; say scale_layout=\"swizzled_128x4\" or flatten if they are swizzled");
  }
  check_columns_are_dense(name, scales);
  matrix.layout.scale_layout = DUALGEMM_SCALES_LINEAR;
  if (matrix.rows > 1) matrix.layout.scale_ld = strides_between_rows(name, scales, first, dims - 2);
  if (is_batched && matrix.batches > 1) matrix.layout.scale_batch_stride = scales.stride(0);
  return scales.data_ptr();
}

void* vector_of(const char* name, const Tensor& tensor, int64_t elements, int32_t dtype) {
  if (dtype_of(tensor) != dtype) {
    refuse(name, dtype_text(tensor), "must be " + dtype_text(dtype));
  }
  if (tensor.numel() != elements || !tensor.is_contiguous()) {
    refuse(name, "shape " + shape_text(tensor),
           "must be " + std::to_string(elements) + " contiguous elements");
  }
  return tensor.data_ptr();
}

Tensor new_tensor(const Place& place, int32_t dtype, const Shape& shape) {
  const auto dims = static_cast<int64_t>(shape.size());
  Shape strides(shape.size());
  int64_t stride = 1;
  for (int64_t dim = dims - 1; dim >= 0; --dim) {
    strides[static_cast<size_t>(dim)] = stride;
    stride *= std::max<int64_t>(shape[static_cast<size_t>(dim)], 1);
  }
  AtenTensorHandle handle = nullptr;
  if (aoti_torch_empty_strided(dims, shape.data(), strides.data(), dtype, place.type, place.index,
                               &handle) != AOTI_TORCH_SUCCESS) {
    refuse("out_of_memory",
           "memory: " + std::to_string(stride) +
               " elements for a result or the workspace; torch did not allocate them");
  }
  return Tensor(handle);
}

std::string shape_text(const Tensor& tensor) {
  std::string text = "[";
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    text += (dim > 0 ? ", " : "") + std::to_string(tensor.size(dim));
  }
  return text + "]";
}

Shape shape_with_columns(const Tensor& rows, int64_t columns) {
  Shape shape;
  for (int64_t dim = 0; dim + 1 < rows.dim(); ++dim) shape.push_back(rows.size(dim));
  shape.push_back(columns);
  return shape;
}

void check_shape(const char* name, const Tensor& tensor, const Shape& shape) {
  bool fits = tensor.dim() == static_cast<int64_t>(shape.size());
  for (size_t dim = 0; fits && dim < shape.size(); ++dim) {
    fits = tensor.size(static_cast<int64_t>(dim)) == shape[dim];
  }
  if (fits) return;
  std::string wanted;
  for (const int64_t size : shape) wanted += (wanted.empty() ? "[" : ", ") + std::to_string(size);
  refuse(name, "shape " + shape_text(tensor), "must be " + wanted + "]");
}

}  // namespace dualgemm::python
