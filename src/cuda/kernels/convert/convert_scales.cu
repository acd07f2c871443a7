// Scales from one layout to another. A CTA takes sixteen tiles of 128 x 4 that are side by side; a
// warp reads and writes whole sectors of either layout: 64 bytes of two rows, 32 of each tile.
#include "cuda/kernels/convert/quantize_kernels.hpp"
#include "cuda/kernels/convert/tensor_rows.cuh"

namespace dualgemm::cuda {
namespace {

// A tile has 32 groups of 16 bytes: four scales of each of four rows that are 32 apart. A thread
// takes two groups. (262144 x 448, H200, 2026-11-24, the kernel alone, % of a copy to swizzled and
// to linear: this 89 and 90; 8 tiles, one group 82 and 81; 32 tiles, four groups 41 and 87; those
// of the next row of tiles as well, so that places are found once for more, 84 and 84, of 8 tiles
// 87 and 84.)
constexpr int kGroups = 32, kGroupRows = 4;
constexpr int kGroupsOfPass = kConvertThreads / kConvertTiles, kPasses = kGroups / kGroupsOfPass;

// Four scales side by side, of which `count` exist.
__device__ uint32_t load_scales(const uint8_t* from, uint32_t count, bool aligned) {
  if (count == kTileCols && aligned) return *reinterpret_cast<const uint32_t*>(from);
  uint32_t word = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < count; ++i) word |= static_cast<uint32_t>(from[i]) << (8 * i);
  return word;
}
__device__ void store_scales(uint8_t* to, uint32_t word, uint32_t count, bool aligned) {
  if (count == kTileCols && aligned) {
    *reinterpret_cast<uint32_t*>(to) = word;
    return;
  }
#pragma unroll 1
  for (uint32_t i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(word >> (8 * i));
}

// Where a thread has its words of four scales in one layout.
struct Words {
  uint8_t* first;
  int64_t row_step, pass_step;  // to the group's next row, to the next group
  bool swizzled, aligned;       // to accesses of 4 bytes; the group of a tile to 16
};
__device__ Words words_of(uint8_t* batch, const ScaleParams& p, const ConvertScalesParams& all,
                          int64_t row, uint32_t tile) {
  constexpr int kGroupBytes = kGroupRows * kTileCols;
  uint8_t* const first = batch + scale_offset(p.ld, all.tile_cols, row, tile * kTileCols);
  const auto places = reinterpret_cast<uintptr_t>(batch) | static_cast<uintptr_t>(p.ld);
  if (p.ld == 0)
    return {first, kTileCols, kGroupsOfPass * kGroupBytes, true, places % kGroupBytes == 0};
  return {first, kGroups * p.ld, kGroupsOfPass * p.ld, false, places % kTileCols == 0};
}

// All of a thread's words exist and are aligned.
__device__ void convert_whole(const Words& from, const Words& to) {
  uint32_t words[kPasses][kGroupRows];
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const uint8_t* const at = from.first + pass * from.pass_step;
    uint32_t(&own)[kGroupRows] = words[pass];
    if (from.swizzled) {
      const uint4 all = *reinterpret_cast<const uint4*>(at);
      own[0] = all.x, own[1] = all.y, own[2] = all.z, own[3] = all.w;
      continue;
    }
#pragma unroll
    for (int i = 0; i < kGroupRows; ++i)
      own[i] = *reinterpret_cast<const uint32_t*>(at + i * from.row_step);
  }
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    uint8_t* const at = to.first + pass * to.pass_step;
    const uint32_t(&own)[kGroupRows] = words[pass];
    if (to.swizzled) {
      *reinterpret_cast<uint4*>(at) = make_uint4(own[0], own[1], own[2], own[3]);
      continue;
    }
#pragma unroll
    for (int i = 0; i < kGroupRows; ++i)
      *reinterpret_cast<uint32_t*>(at + i * to.row_step) = own[i];
  }
}

// A group at any address, of whose rows those exist that are fewer than `rows` below the first one,
// and of whose columns `cols`. A swizzled tile is written whole, what does not exist as 0.
__device__ void convert_some(const Words& from, const Words& to, int64_t rows, uint32_t cols) {
  uint32_t words[kGroupRows];
#pragma unroll
  for (int i = 0; i < kGroupRows; ++i)
    words[i] =
        load_scales(from.first + i * from.row_step, i * kGroups < rows ? cols : 0u, from.aligned);
#pragma unroll
  for (int i = 0; i < kGroupRows; ++i) {
    const uint32_t count = to.swizzled ? kTileCols : i * kGroups < rows ? cols : 0u;
    store_scales(to.first + i * to.row_step, words[i], count, to.aligned);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kConvertThreads)
    dual_gemm_convert_scales(const __grid_constant__ ConvertScalesParams p) {
  const uint32_t tile_row_of_all = quotient(blockIdx.x, p.tile_groups);
  const uint32_t tile_group = blockIdx.x - tile_row_of_all * p.tile_groups.value;
  const uint32_t batch = quotient(tile_row_of_all, p.tile_rows);
  const uint32_t tile_row = tile_row_of_all - batch * p.tile_rows.value;
  const uint32_t tile = tile_group * kConvertTiles + threadIdx.x % kConvertTiles;
  if (tile >= p.tile_cols) return;
  const int64_t row = static_cast<int64_t>(tile_row) * kTileRows + threadIdx.x / kConvertTiles;
  Words from = words_of(const_cast<uint8_t*>(p.src) + batch * p.from.batch_bytes, p.from, p, row,
                        tile),
        to = words_of(p.dst + batch * p.to.batch_bytes, p.to, p, row, tile);
  const uint32_t cols = min(p.cols - tile * kTileCols, kTileCols);
  const int64_t rows = p.rows - row;  // from the first one on
  constexpr int kLastRow = (kPasses - 1) * kGroupsOfPass + (kGroupRows - 1) * kGroups;
  if (from.aligned && to.aligned && cols == kTileCols && rows > kLastRow)
    return convert_whole(from, to);
#pragma unroll 1
  for (int pass = 0; pass < kPasses; ++pass) {
    convert_some(from, to, rows - pass * kGroupsOfPass, cols);
    from.first += from.pass_step, to.first += to.pass_step;
  }
}

Kernel convert_scales_kernel() {
  return {"convert_scales", "dual_gemm_convert_scales",
          reinterpret_cast<const void*>(&dual_gemm_convert_scales)};
}

}  // namespace dualgemm::cuda
