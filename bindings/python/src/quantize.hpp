// Tensors of 16 or 32 bits to NVFP4 and back.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "tensors.hpp"

namespace dualgemm::python {

using torch::headeronly::ScalarType;

// codes [..., rows, k/2], scales, global scale. global_scale: given [1]; none: found, of the tensor
// or, per_row, of each row.
struct Quantized {
  Tensor codes, scales, global_scale;
};
struct QuantizeOutput {
  OptionalTensor codes, scales, global_scale;
};
Quantized quantize(const Tensor& x, const OptionalTensor& global_scale,
                   const std::string& scale_layout, bool four_over_six, bool per_row,
                   const QuantizeOutput& output);

// global_scale: [1], or one for each row.
Tensor dequantize(const Tensor& codes, const Tensor& scales, const Tensor& global_scale,
                  ScalarType dtype, const std::string& scale_layout);

// Swizzled scales of `codes`, whose matrix is given, as linear ones [..., rows, columns / 16]; on the
// current stream.
Tensor linear_scales(const Place& place, const Tensor& codes, const Matrix& matrix,
                     const uint8_t* scales);

}  // namespace dualgemm::python
