// How far a quantised matrix is from its original.
#pragma once

#include <cstdint>

#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::checkpoint {

struct QuantizationError {
  int64_t values = 0;
  double rel_l2 = 0.0;   // ||q - x|| / ||x||; 0 when both are 0
  double max_abs = 0.0;  // largest |q - x|
  double mean_abs = 0.0;
  double amax = 0.0;    // largest |x|
  double snr_db = 0.0;  // -20 log10(rel_l2); infinite when exact
  int64_t clipped =
      0;  // |x| above 6 * scale * global: the rounding of the scale cut the block's largest values
  int64_t became_zero = 0;  // q = 0 though x is not
  int64_t zero_blocks = 0;  // scale 0 though the block is not all zero

  double clipped_share() const noexcept {
    return values == 0 ? 0.0 : static_cast<double>(clipped) / static_cast<double>(values);
  }
  double zero_share() const noexcept {
    return values == 0 ? 0.0 : static_cast<double>(became_zero) / static_cast<double>(values);
  }
};

// x[rows][cols] as given to quantize_nvfp4 (ldx elements between rows, 0 = cols), tight codes and
// scales as it returned them (kLinear tight or kSwizzled128x4). threads: 0 = all; the result does
// not depend on it.
Expected<QuantizationError> quantization_error(const void* x, DataType x_type, int64_t rows,
                                               int64_t cols, int64_t ldx, const uint8_t* codes,
                                               const uint8_t* scales, ScaleLayout layout,
                                               float global_scale, int threads = 0);

}  // namespace dualgemm::checkpoint
