// NVFP4 -> fp16 or bf16 on any GPU: e2m1 * e4m3, exact in both (at most 6 significant bits).
#pragma once

#include "cuda/device/activation.hpp"
#include "cuda/kernels/common/source.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

struct DequantizeParams {
  Nvfp4Source source;
  SourceExtent extent;
  uint8_t* out;  // [batches][out_rows][cols], aligned to 16 bytes
};

// type: kF16 or kBF16. The sign bit of a scale is ignored, NaN is kept.
KernelLaunch dequantize_launch(const DequantizeParams& params, OutputType type);

}  // namespace dualgemm::cuda
