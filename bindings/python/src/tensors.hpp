// What the library must know of a tensor: address, type, strides.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dualgemm/dualgemm.h"

namespace dualgemm::python {

using torch::stable::Tensor;
using OptionalTensor = std::optional<Tensor>;

// Where all tensors of a call must lie.
struct Place {
  int32_t type;   // torch's number of the device type
  int32_t index;  // which GPU
  bool is_cuda;

  // The place of the first tensor of a call; refuses None, which torch hands on as a tensor that is
  // undefined.
  static Place of(const char* name, const Tensor& tensor);
};

// Refuses a tensor elsewhere than `place`, not strided, or whose storage ends before its elements.
void check_tensor(const char* name, const Tensor& tensor, const Place& place);

// torch's numbers of dtypes, the same in every version of torch from 2.10 on.
struct Dtypes {
  int32_t uint8, float16, bfloat16, float32, int32, int64, float8_e4m3fn, float4_e2m1fn_x2;
};
const Dtypes& dtypes();
int32_t dtype_of(const Tensor& tensor);

// As Python calls it: "torch.int64".
std::string dtype_text(int32_t dtype);
std::string dtype_text(const Tensor& tensor);

// DUALGEMM_E2M1 for uint8 and float4_e2m1fn_x2, whose elements hold two codes.
int32_t data_type_of(const char* name, const Tensor& tensor);
// Refuses all but float16, bfloat16 and float32.
void check_is_wide(const char* name, const Tensor& tensor);
// The DUALGEMM_ data type of a dtype that a caller asks for: float16, bfloat16 or float32.
int32_t data_type_of(const char* name, torch::headeronly::ScalarType dtype);
// The dtype for a DUALGEMM_ data type; E2M1: uint8.
int32_t dtype_for(int32_t data_type);

// A tensor of [batches, rows, columns] or of [..., rows, columns], whose leading dimensions are
// rows, too. Columns and strides count what the library counts: codes, not bytes.
struct Matrix {
  int64_t batches = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  dualgemm_matrix layout{};
  void* data = nullptr;
};
Matrix matrix_of(const char* name, const Tensor& tensor, bool is_batched);

// Adds the scales of `matrix` to its layout; returns where they lie. `scale_layout`: "auto",
// "linear" or "swizzled_128x4". span: bytes that swizzled scales must have at least; 0: those of
// the matrix.
void* add_scales(const char* name, const Tensor& scales, const std::string& scale_layout,
                 bool is_batched, int64_t span, Matrix& matrix);

// The elements of a vector that lies tight, float32 by default.
void* vector_of(const char* name, const Tensor& tensor, int64_t elements, int32_t dtype);

using Shape = std::vector<int64_t>;
Tensor new_tensor(const Place& place, int32_t dtype, const Shape& shape);

std::string shape_text(const Tensor& tensor);
// That of `rows` with another last dimension.
Shape shape_with_columns(const Tensor& rows, int64_t columns);
void check_shape(const char* name, const Tensor& tensor, const Shape& shape);

}  // namespace dualgemm::python
