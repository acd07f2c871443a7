// Where a matrix of a problem lies, as kernels are told. Apart from source.hpp, which they include.
#pragma once

#include "core/problem.hpp"
#include "cuda/kernels/common/source.hpp"

namespace dualgemm::cuda {

inline Nvfp4Source nvfp4_source(const core::ResolvedMatrix& matrix, const void* codes,
                                const uint8_t* scales) noexcept {
  const bool linear = matrix.scale_layout == ScaleLayout::kLinear;
  return {.codes = static_cast<const uint8_t*>(codes),
          .scales = scales,
          .row_bytes = matrix.row_bytes(),
          .batch_bytes = core::bytes_of(matrix.type, matrix.batch_stride),
          .scale_ld = linear ? matrix.scale_ld : 0,
          .scale_batch_bytes = matrix.scale_batch_stride};
}

}  // namespace dualgemm::cuda
