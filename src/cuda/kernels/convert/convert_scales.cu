// Scales from one layout to another. A CTA takes eight tiles of 128 x 4 that are side by side: rows
// of 32 scales, whole sectors of a linear layout, and 64 neighbouring bytes of each tile.
#include "cuda/kernels/convert/quantize_kernels.hpp"
#include "cuda/kernels/convert/tensor_rows.cuh"

namespace dualgemm::cuda {
namespace {

constexpr uint32_t kTilesOfCta = 8;

struct ScaleWord {
  int64_t offset;   // in its batch, of four scales side by side
  uint32_t exists;  // how many of them do
};
__device__ ScaleWord word_of(const ScaleParams& p, const ConvertScalesParams& all, int64_t row,
                             uint32_t col) {
  const uint32_t cols = row >= all.rows || col >= all.cols ? 0u : min(all.cols - col, kTileCols);
  return {scale_offset(p.ld, all.tile_cols, row, col), cols};
}

__device__ uint32_t load_scales(const uint8_t* from, uint32_t count) {
  if (count == kTileCols && reinterpret_cast<uintptr_t>(from) % 4 == 0)
    return *reinterpret_cast<const uint32_t*>(from);
  uint32_t word = 0;
  for (uint32_t i = 0; i < count; ++i) word |= static_cast<uint32_t>(from[i]) << (8 * i);
  return word;
}
__device__ void store_scales(uint8_t* to, uint32_t word, uint32_t count) {
  if (count == kTileCols && reinterpret_cast<uintptr_t>(to) % 4 == 0) {
    *reinterpret_cast<uint32_t*>(to) = word;
    return;
  }
  for (uint32_t i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(word >> (8 * i));
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kConvertThreads)
    dual_gemm_convert_scales(const __grid_constant__ ConvertScalesParams p) {
  const uint32_t tile_row_of_all = quotient(blockIdx.x, p.tile_groups);
  const uint32_t tile_group = blockIdx.x - tile_row_of_all * p.tile_groups.value;
  const uint32_t batch = quotient(tile_row_of_all, p.tile_rows);
  const uint32_t tile_row = tile_row_of_all - batch * p.tile_rows.value;
  const uint32_t tile = tile_group * kTilesOfCta + threadIdx.x % kTilesOfCta;
  if (tile >= p.tile_cols) return;
  const int64_t first_row = static_cast<int64_t>(tile_row) * kTileRows + threadIdx.x / kTilesOfCta;
  const uint32_t col = tile * kTileCols;
  const uint8_t* const src = p.src + batch * p.from.batch_bytes;
  uint8_t* const dst = p.dst + batch * p.to.batch_bytes;
  uint32_t words[4];  // rows that are 32 apart: neighbours in a tile
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const ScaleWord from = word_of(p.from, p, first_row + 32 * i, col);
    words[i] = load_scales(src + from.offset, from.exists);
  }
  if (p.to.ld == 0) {
    uint8_t* const to = dst + word_of(p.to, p, first_row, col).offset;
    if (reinterpret_cast<uintptr_t>(to) % 16 == 0) {
      *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const ScaleWord to = word_of(p.to, p, first_row + 32 * i, col);
    store_scales(dst + to.offset, words[i], p.to.ld == 0 ? kTileCols : to.exists);
  }
}

Kernel convert_scales_kernel() {
  return {"convert_scales", "dual_gemm_convert_scales",
          reinterpret_cast<const void*>(&dual_gemm_convert_scales)};
}

}  // namespace dualgemm::cuda
