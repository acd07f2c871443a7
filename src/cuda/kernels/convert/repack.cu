#include "cuda/kernels/convert/repack.hpp"

#include <algorithm>

#include "cuda/device/scale_offset.cuh"
#include "cuda/device/unaligned_word.cuh"

namespace dualgemm::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxCtas = 65535;
constexpr int kWordBytes = 8;  // of a row, one thread's piece
constexpr int64_t kScaleTileRows =
    kTileRows;  // a scale tile: 128 rows x 4, as 128 words of 4 bytes
constexpr int64_t kScaleTileCols = kTileCols;

uint32_t ctas_for(int64_t pieces) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>((pieces + kThreads - 1) / kThreads, 1, kMaxCtas));
}

__device__ int64_t first_piece() {
  return blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
}
__device__ int64_t piece_stride() { return gridDim.x * static_cast<int64_t>(kThreads); }

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
    reinterpret_cast<uint64_t*>(p.destination)[word] =
        byte < p.row_bytes ? load_unaligned_u64(from) : 0;
  }
}

// One thread a word of the destination: four scales of one row.
extern "C" __global__ void __launch_bounds__(kThreads)
    dual_gemm_repack_scales(const __grid_constant__ RepackScalesParams p) {
  const int64_t tile_rows = (p.rows + kScaleTileRows - 1) / kScaleTileRows;
  const int64_t tile_cols = (p.sf_cols + kScaleTileCols - 1) / kScaleTileCols;
  const int64_t words = tile_rows * tile_cols * kScaleTileRows * p.batches;
  for (int64_t word = first_piece(); word < words; word += piece_stride()) {
    const int64_t tile = word / kScaleTileRows, batch_tile_row = tile / tile_cols;
    const int64_t batch = batch_tile_row / tile_rows;
    const int64_t place =
        word % kScaleTileRows;  // of the word in its tile: 4 * (row % 32) + row / 32
    const int64_t row =
        (batch_tile_row - batch * tile_rows) * kScaleTileRows + place % 4 * 32 + place / 4;
    const int64_t col = (tile - batch_tile_row * tile_cols) * kScaleTileCols;
    const uint8_t* const from = p.source + batch * p.source_batch_bytes;
    uint32_t scales = 0;
    for (int i = 0; i < kScaleTileCols; ++i) {
      if (row >= p.rows || col + i >= p.sf_cols) break;
      const int64_t offset = scale_offset(p.source_ld, static_cast<uint32_t>(tile_cols), row,
                                          static_cast<uint32_t>(col + i));
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
      ctas_for(swizzled_scale_bytes(params.rows, params.sf_cols) / kScaleTileCols * params.batches);
  launch.set_params(params);
  return launch;
}

int64_t swizzled_scale_bytes(int64_t rows, int64_t sf_cols) {
  return (rows + kScaleTileRows - 1) / kScaleTileRows *
         ((sf_cols + kScaleTileCols - 1) / kScaleTileCols) * (kScaleTileRows * kScaleTileCols);
}

}  // namespace dualgemm::cuda
