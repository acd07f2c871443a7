// The compiled kernels of the quantiser and of its inverse, and what the host code knows of them.
// Apart from quantize.hpp, whose headers nvcc would read for each file of kernels.
#pragma once

#include "cuda/kernels/convert/quantize_params.hpp"
#include "cuda/ptx/target.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

// A unit is a block of 16, or a chunk of one that a thread of the inverse writes as 16 bytes.
inline constexpr int kQuantizeThreads = 256;
inline constexpr int kFewBlocks = 64 << 10;  // up to so many a thread takes one block, beyond two
inline constexpr int kFewThreads = 64;       // of a CTA then: more of them, on more SMs
inline constexpr int kManyUnroll = 2;
// Rows of one matrix whose blocks a thread takes at the most where there are many, if so many CTAs
// are left, and loads at a time (16384 x 7168 in bf16, H200, us: 2, 4 and 8 rows, two at a time 92,
// 85 and 82; four at a time, which takes 79 registers, not 63, 4 and 8 rows 91 and 90).
inline constexpr int kMostThreadRows = 16, kManyCtas = 2048, kLoadedRows = 2;
inline constexpr int kAmaxThreads = 256, kAmaxBytes = 128;  // in flight in a thread
inline constexpr int kMaxPartials = 512;  // CTAs of the search for the largest magnitude
inline constexpr int kKeptBlocks = 2;     // of a row, in a thread's registers
inline constexpr int kMaxRowThreads = 512;
// From so many rows on each is in shared memory, a thread takes so many of its blocks (7168 columns
// of bf16, H200, us; a row in registers, 4 and 8 blocks: 256 rows 3.8, 4.0, 4.5; 512 5.4, 5.4, 5.8;
// 4096 31.7, 28.7, 30.3; 16384 114, 98, 94; 8192 rows of FP32 90, 69, 71; 16384 now, with fewer
// instructions a block, 87 and 82 with 4 and 8).
inline constexpr int kStagedRows = 512, kMinStagedThreads = 64;
inline constexpr int kMaxStagedBytes = 96 << 10;  // of a row; every GPU has them
constexpr int staged_blocks(WideType type, int64_t rows) {
  return type == WideType::kF32 || rows < 8192 ? 4 : 8;
}
// Few rows are divided among CTAs, so many in all at the most, each with 32 blocks or more.
inline constexpr int kFewRowCtas = 128;
inline constexpr int kDequantizeThreads = 256;
// Chunks that a thread loads before it decodes the first. 2 and 4 the other way round: 5 % and 1 %
// more time for 8192 x 7168 in FP32 and 16384 x 7168 in bf16 (H100, 2026-11-22).
DUALGEMM_HOST_DEVICE constexpr int dequantize_unroll(WideType type) {
  return type == WideType::kF32 ? 2 : 4;
}
inline constexpr int kConvertThreads = 256, kConvertTiles = 16;  // of a CTA: tiles side by side

// matrix: of TensorParams for one matrix whose rows are all wanted.
Kernel quantize_kernel(WideType type, bool four_over_six, bool matrix, bool many);
Kernel quantize_rows_kernel(WideType type, bool four_over_six);
Kernel quantize_staged_rows_kernel(WideType type);
Kernel amax_kernel(WideType type);
// The next three transform rows first, and take TransformedParams.
Kernel quantize_transformed_kernel(WideType type, bool four_over_six);
Kernel amax_transformed_kernel(WideType type);
Kernel transform_kernel(WideType type);  // x to x, in `codes`
Kernel dequantize_tensor_kernel(WideType type, bool matrix);
Kernel convert_scales_kernel();

}  // namespace dualgemm::cuda
