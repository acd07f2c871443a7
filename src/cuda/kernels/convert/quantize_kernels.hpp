// The compiled kernels of the quantiser and of its inverse, and what the host code knows of them. Apart
// from quantize.hpp, whose headers nvcc would read for each file of kernels.
#pragma once

#include "cuda/kernels/convert/quantize_params.hpp"
#include "cuda/ptx/target.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

// A unit is a block of 16, or a chunk of one that a thread
// of the inverse writes as 16 bytes.
inline constexpr int kQuantizeThreads = 256;
inline constexpr int kFewBlocks = 64 << 10;  // up to so many a thread takes one block, beyond two
inline constexpr int kFewThreads = 64;       // of a CTA then: more of them, on more SMs
inline constexpr int kManyUnroll = 2;
// Rows of one matrix whose blocks a thread takes where there are many.
DUALGEMM_HOST_DEVICE constexpr int matrix_rows(WideType type) {
  return type == WideType::kF32 ? 2 : 4;
}
inline constexpr int kAmaxThreads = 256, kAmaxBytes = 128;  // in flight in a thread
inline constexpr int kMaxPartials = 512;  // CTAs of the search for the largest magnitude
inline constexpr int kKeptBlocks = 2;     // of a row, in a thread's registers
inline constexpr int kMaxRowThreads = 512;
// With a scale for each row: a CTA asks for its next row before it encodes one.
DUALGEMM_HOST_DEVICE constexpr bool reads_ahead(WideType type) { return type == WideType::kF32; }
// Few rows are divided among CTAs, so many in all at the most, each with 32 blocks or more.
inline constexpr int kFewRowCtas = 128;
inline constexpr int kDequantizeThreads = 256;
// Chunks that a thread loads before it decodes the first. 2 and 4 the other way round: 5 % and 1 %
// more time for 8192 x 7168 in FP32 and 16384 x 7168 in bf16 (H100, 2026-11-22).
DUALGEMM_HOST_DEVICE constexpr int dequantize_unroll(WideType type) {
  return type == WideType::kF32 ? 2 : 4;
}
inline constexpr int kConvertThreads = 256;  // 8 tiles of a row of tiles x 32 groups of 4 rows

// matrix: of TensorParams for one matrix whose rows are all wanted.
Kernel quantize_kernel(WideType type, bool four_over_six, bool matrix, bool many);
Kernel quantize_rows_kernel(WideType type, bool four_over_six);
Kernel amax_kernel(WideType type);
Kernel dequantize_tensor_kernel(WideType type, bool matrix);
Kernel convert_scales_kernel();

}  // namespace dualgemm::cuda
