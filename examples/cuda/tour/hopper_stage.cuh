// Step 6's memory: what lies in a stage of its ring, the barriers of the ring, the copy of A in
// another order, and the tensor maps by which the TMA unit finds the tiles.
#pragma once

#include <cuda.h>

#include "cuda/ptx/mbarrier.cuh"
#include "tour/problem.cuh"

namespace tour {

inline constexpr uint32_t kTileM = 64, kTileN = 64, kTileK = 256, kStages = 4;
inline constexpr uint32_t kConsumers = 256, kThreads = kConsumers + 32;

// One box of a tensor map each; rows of 128 bytes in the TMA unit's 128-byte swizzle: chunk c of 16
// bytes of row r lies at c ^ r % 8.
struct Stage {
  uint4 a[kTileK / 64][kTileM][8];         // 64 halves of a row
  uint4 weights[2][kTileN][8];             // Gate, Up: 256 codes of a row
  uint8_t scales[2][kTileN][kTileK / 16];  // not swizzled
};

struct Ring {
  Stage stages[kStages];
  dualgemm::cuda::ptx::Barrier full[kStages];   // a stage's bytes have come
  dualgemm::cuda::ptx::Barrier empty[kStages];  // its eight consuming warps are done with it
};

struct Maps {
  CUtensorMap a, weights[2], scales[2];
};

// The upper word of wgmma's descriptor of rows like those of Stage::a: 1024 bytes from 8 rows to
// the next 8, 128-byte swizzle. PTX ISA, "Matrix Descriptor Format".
inline constexpr uint32_t kDescriptorHigh = 1024 / 16 | 1u << 30;

__device__ inline void initialize(Ring& ring) {
  if (threadIdx.x == 0) {
    for (uint32_t s = 0; s < kStages; ++s) {
      dualgemm::cuda::ptx::mbarrier_init(&ring.full[s], 1);
      dualgemm::cuda::ptx::mbarrier_init(&ring.empty[s], kConsumers / 32);
    }
    dualgemm::cuda::ptx::fence_mbarrier_init();
  }
  __syncwarp();
  __syncthreads();
}

// A in the order of k in which `decode` has the weights: slot 8h + 2q + e of instruction j of a
// k-tile is k = 64q + 8(j / 2) + 2(j % 2) + h + 4e. So thread q of a quad reads 64 neighbours.
static __global__ void prepare(Problem p, __half* out) {
  const size_t to = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (to >= size_t{p.m} * p.k) return;
  const uint32_t slot = to % 16, j = to % kTileK / 16;  // of instruction j of a k-tile
  const uint32_t h = slot / 8, q = slot % 8 / 2, e = slot % 2;
  out[to] = p.a[to / kTileK * kTileK + 64 * q + j / 2 * 8 + j % 2 * 2 + h + 4 * e];
}

// Rows of `columns` elements, of which a box has `box`, by 64 rows. What lies outside is zero.
inline CUtensorMap make_map(CUtensorMapDataType type, uint32_t bytes, const void* rows,
                            uint32_t columns, uint32_t number_of_rows, uint32_t box) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                     &found);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  CUtensorMap map = {};
  const cuuint64_t extents[3] = {columns, number_of_rows, 1};
  const cuuint64_t pitches[2] = {cuuint64_t{columns} * bytes,
                                 cuuint64_t{columns} * bytes * number_of_rows};
  const cuuint32_t boxes[3] = {box, 64, 1}, steps[3] = {1, 1, 1};
  encode(&map, type, 3, const_cast<void*>(rows), extents, pitches, boxes, steps,
         CU_TENSOR_MAP_INTERLEAVE_NONE,
         box * bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

inline Maps make_maps(const Problem& p, const __half* prepared_a) {
  const auto bytes = [&](const uint8_t* rows, uint32_t columns, uint32_t box) {
    return make_map(CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, rows, columns, p.n, box);
  };
  return {make_map(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, prepared_a, p.k, p.m, 64),
          {bytes(p.gate, p.k / 2, 128), bytes(p.up, p.k / 2, 128)},
          {bytes(p.gate_scales, p.k / 16, 16), bytes(p.up_scales, p.k / 16, 16)}};
}

}  // namespace tour
