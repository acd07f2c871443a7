// Scales of NVFP4 from one layout to the other.
#pragma once

#include <cstdint>

#include "tensors.hpp"

namespace dualgemm::python {

// Swizzled scales of `codes`, whose matrix is given, as linear ones [..., rows, columns / 16]; on
// the current stream.
Tensor linear_scales(const Place& place, const Tensor& codes, const Matrix& matrix,
                     const uint8_t* scales);

}  // namespace dualgemm::python
