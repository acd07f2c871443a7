// NVFP4 from fp16, bf16 or fp32 and back, on any GPU, bit for bit as core/quantize_on_cpu.cpp: the
// launches of quantize.hpp's functions, made without calling CUDA.
#pragma once

#include <cstdint>
#include <vector>

#include "core/quantize_problem.hpp"
#include "cuda/kernels/convert/quantize_kernels.hpp"
#include "cuda/runtime/kernel_launch.hpp"

namespace dualgemm::cuda {

int64_t quantize_workspace_bytes(const core::ResolvedQuantize& problem) noexcept;

// In order on one stream. kUnsupported: more than a GPU's kernels count to.
Expected<std::vector<KernelLaunch>> quantize_launches(const core::ResolvedQuantize& problem,
                                                      const QuantizeBuffers& buffers);
Expected<std::vector<KernelLaunch>> transform_launches(const TransformProblem& problem,
                                                       const TransformBuffers& buffers);
Expected<std::vector<KernelLaunch>> dequantize_launches(const core::ResolvedQuantize& problem,
                                                        const DequantizeBuffers& buffers);
Expected<std::vector<KernelLaunch>> convert_scales_launches(
    const core::ResolvedConversion& conversion, const uint8_t* src, uint8_t* dst);

}  // namespace dualgemm::cuda
