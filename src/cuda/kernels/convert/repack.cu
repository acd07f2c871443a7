#include "cuda/kernels/convert/repack.hpp"

#include <algorithm>

namespace dualgemm::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxCtas = 65535;
constexpr int kWordBytes = 8;    // of a row, one thread's piece
constexpr int kBlockRows = 128;  // a block of scales: 128 rows x 4, as 128 words of 4 bytes
constexpr int kBlockCols = 4;

uint32_t ctas_for(int64_t pieces) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>((pieces + kThreads - 1) / kThreads, 1, kMaxCtas));
}

__device__ int64_t first_piece() {
  return blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
}
__device__ int64_t piece_stride() { return gridDim.x * static_cast<int64_t>(kThreads); }

// 8 bytes at any address.
__device__ uint64_t load_word(const uint8_t* from) {
  if (reinterpret_cast<uintptr_t>(from) % kWordBytes == 0) {
    return *reinterpret_cast<const uint64_t*>(from);
  }
  uint64_t word = 0;
  for (int i = 0; i < kWordBytes; ++i) word |= static_cast<uint64_t>(from[i]) << (8 * i);
  return word;
}

// Where scale (row, col) of a swizzled 128x4 layout lies: docs/formats.md, "Scale layouts".
__device__ int64_t swizzled_offset(int64_t row, int64_t col, int64_t col_blocks) {
  const int64_t block = row / kBlockRows * col_blocks + col / kBlockCols;
  return block * (kBlockRows * kBlockCols) + row % 32 * 16 + row % kBlockRows / 32 * 4 +
         col % kBlockCols;
}

}  // namespace

// One thread a word of 8 bytes of the destination.
extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_repack_rows(const __grid_constant__ RepackRowsParams p) {
  const int64_t row_words = p.destination_row_bytes / kWordBytes;
  const int64_t words = row_words * p.rows * p.batches;
  for (int64_t word = first_piece(); word < words; word += piece_stride()) {
    const int64_t flat_row = word / row_words;
    const int64_t batch = flat_row / p.rows, row = flat_row - batch * p.rows;
    const int64_t byte = (word - flat_row * row_words) * kWordBytes;
    const uint8_t* const from =
        p.source + batch * p.source_batch_bytes + row * p.source_row_bytes + byte;
    reinterpret_cast<uint64_t*>(p.destination)[word] = byte < p.row_bytes ? load_word(from) : 0;
  }
}

// One thread a word of the destination: four scales of one row.
extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_repack_scales(const __grid_constant__ RepackScalesParams p) {
  const int64_t row_blocks = (p.rows + kBlockRows - 1) / kBlockRows;
  const int64_t col_blocks = (p.sf_cols + kBlockCols - 1) / kBlockCols;
  const int64_t words = row_blocks * col_blocks * kBlockRows * p.batches;
  for (int64_t word = first_piece(); word < words; word += piece_stride()) {
    const int64_t block = word / kBlockRows, batch_row_block = block / col_blocks;
    const int64_t batch = batch_row_block / row_blocks;
    const int64_t place = word % kBlockRows;  // of the word in its block: 4 * (row % 32) + row / 32
    const int64_t row =
        (batch_row_block - batch * row_blocks) * kBlockRows + place % 4 * 32 + place / 4;
    const int64_t col = (block - batch_row_block * col_blocks) * kBlockCols;
    const uint8_t* const from = p.source + batch * p.source_batch_bytes;
    uint32_t scales = 0;
    for (int i = 0; i < kBlockCols; ++i) {
      if (row >= p.rows || col + i >= p.sf_cols) break;
      const int64_t offset = p.source_ld != 0 ? row * p.source_ld + col + i
                                              : swizzled_offset(row, col + i, col_blocks);
      scales |= static_cast<uint32_t>(from[offset]) << (8 * i);
    }
    reinterpret_cast<uint32_t*>(p.destination)[word] = scales;
  }
}

KernelLaunch repack_rows_launch(const RepackRowsParams& params) {
  KernelLaunch launch{.kernel = {"repack", "dual_gemm_repack_rows",
                                 reinterpret_cast<const void*>(&dual_gemm_repack_rows)},
                      .threads = kThreads};
  launch.ctas = ctas_for(params.destination_row_bytes / kWordBytes * params.rows * params.batches);
  launch.set_params(params);
  return launch;
}

KernelLaunch repack_scales_launch(const RepackScalesParams& params) {
  KernelLaunch launch{.kernel = {"repack", "dual_gemm_repack_scales",
                                 reinterpret_cast<const void*>(&dual_gemm_repack_scales)},
                      .threads = kThreads};
  launch.ctas =
      ctas_for(swizzled_scale_bytes(params.rows, params.sf_cols) / kBlockCols * params.batches);
  launch.set_params(params);
  return launch;
}

int64_t swizzled_scale_bytes(int64_t rows, int64_t sf_cols) {
  return (rows + kBlockRows - 1) / kBlockRows * ((sf_cols + kBlockCols - 1) / kBlockCols) *
         (kBlockRows * kBlockCols);
}

}  // namespace dualgemm::cuda
