// D's scales, as kernels get them that write D as NVFP4.
#pragma once

#include <cstdint>

namespace dualgemm::cuda {

struct Nvfp4Output {
  uint8_t* scales = nullptr;
  int64_t scale_ld = 0;  // linear: scales from row to row; 0: swizzled 128x4
  int64_t scale_batch_bytes = 0;
  uint32_t blocks = 0;    // of a row of D
  float quantize = 1.0f;  // what outputs are multiplied by: core::GlobalScale
};

}  // namespace dualgemm::cuda
