// NVFP4 -> fp32 on any GPU: e2m1 * e4m3, exact (at most 6 significant bits).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

// All pointers are device memory. codes: [rows][cols/2], low nibble = even column. scales:
// [rows][cols/16], linear, the sign bit ignored as for every block scale, NaN kept. out:
// [rows][cols]. cols % 16 == 0. Enqueues on `stream` and returns; an error is one of the launch.
Status dequantize_nvfp4(const uint8_t* codes, const uint8_t* scales, int64_t rows, int64_t cols,
                        float* out, cudaStream_t stream);

}  // namespace dualgemm::cuda
