// Rows to E4M3 with one FP32 scale each, for strategy fp8; docs/numerics.md, "The strategy fp8".
#pragma once

#include "cuda/kernels/common/source.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

// scale = amax(row) / 448, code = e4m3(x / scale), each rounded to FP32; a row of zeros: scale 0,
// codes 0. A NaN or an infinity makes the row's scale or some of its codes NaN.
template <class Source>
struct RequantizeParams {
  Source source;
  SourceExtent extent;
  uint8_t* codes;  // [batches][out_rows][cols], aligned to 16 bytes
  float* scales;   // [batches][out_rows]
};

enum class HalfType { kF16, kBF16 };

KernelLaunch requantize_launch(const RequantizeParams<Nvfp4Source>& params);
KernelLaunch requantize_launch(const RequantizeParams<HalfSource>& params, HalfType type);

}  // namespace dualgemm::cuda
