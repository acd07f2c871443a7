// Step 4: tensor cores. Decoded weights are exact in fp16, so `mma` may multiply them. Weights are
// the 16 rows of its first operand, A's rows the 8 columns of its second: 8 columns of Gate above
// the same 8 of Up, so that both sums of an output end in one thread, and the activation needs no
// exchange.
#include "cuda/ptx/mma_sync.cuh"
#include "tour/problem.cuh"

namespace tour {
namespace {

using dualgemm::cuda::ptx::mma_m16n8k16;
constexpr int kTileM = 64, kTileN = 32, kTileK = 64, kThreads = 128;
constexpr int kPitch = kTileK + 8;  // 16 bytes more than 128: eight rows lie in different banks

// Neighbours 2i and 2i + 1 of a word.
__device__ uint32_t place_neighbours(uint32_t word, int i) {
  const uint32_t byte = word >> 8 * i & 0xFF;
  return place_pair(byte & 0xF | (byte & 0xF0) << 12, 0);
}

// 16-block `block` of row `row` of 2 * kTileN: per warp 8 of Gate, then 8 of Up.
__device__ void decode_block(const Problem& p, uint32_t col0, uint32_t k0, uint32_t row,
                             uint32_t block, __half* to) {
  const bool up = row % 16 >= 8;
  const size_t index = size_t{col0 + row / 16 * 8 + row % 8} * p.k + k0 + block * 16;
  const uint2 codes = *reinterpret_cast<const uint2*>((up ? p.up : p.gate) + index / 2);
  const __half2 scale = scale_pair((up ? p.up_scales : p.gate_scales)[index / 16]);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    reinterpret_cast<uint32_t*>(to)[i] =
        weights_of(place_neighbours(i < 4 ? codes.x : codes.y, i % 4), scale);
}

__global__ void __launch_bounds__(kThreads) tensor_core_kernel(Problem p) {
  __shared__ alignas(16) __half a[kTileM][kPitch], weights[2 * kTileN][kPitch];
  const uint32_t row0 = blockIdx.y * kTileM, col0 = blockIdx.x * kTileN;
  const uint32_t warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  float sums[kTileM / 8][4] = {};
  for (uint32_t k0 = 0; k0 < p.k; k0 += kTileK) {
    for (uint32_t i = threadIdx.x; i < 2 * kTileN * 4; i += kThreads)
      decode_block(p, col0, k0, i / 4, i % 4, &weights[i / 4][i % 4 * 16]);
    for (uint32_t i = threadIdx.x; i < kTileM * 8; i += kThreads) {
      const uint32_t row = i / 8, k = i % 8 * 8;
      uint4 eight = make_uint4(0, 0, 0, 0);
      if (row0 + row < p.m)
        eight = *reinterpret_cast<const uint4*>(p.a + size_t{row0 + row} * p.k + k0 + k);
      *reinterpret_cast<uint4*>(&a[row][k]) = eight;
    }
    __syncthreads();
    const auto pair = [](const __half& first) { return reinterpret_cast<const uint32_t&>(first); };
#pragma unroll
    for (int k = 2 * q; k < kTileK; k += 16) {
      const __half *gate = weights[16 * warp + g], *up = weights[16 * warp + 8 + g];
      const uint32_t w[4] = {pair(gate[k]), pair(up[k]), pair(gate[k + 8]), pair(up[k + 8])};
#pragma unroll
      for (int t = 0; t < kTileM / 8; ++t) {
        const uint32_t rows[2] = {pair(a[8 * t + g][k]), pair(a[8 * t + g][k + 8])};
        mma_m16n8k16<false>(sums[t], w, rows);
      }
    }
    __syncthreads();
  }
  for (uint32_t i = 0; i < kTileM / 4; ++i)
    store(p, row0 + i / 2 * 8 + 2 * q + i % 2, col0 + 8 * warp + g, sums[i / 2][i % 2],
          sums[i / 2][2 + i % 2]);
}

}  // namespace

void tensor_cores(const Problem& p, cudaStream_t stream) {
  tensor_core_kernel<<<dim3(p.n / kTileN, (p.m + kTileM - 1) / kTileM), kThreads, 0, stream>>>(p);
}

}  // namespace tour
