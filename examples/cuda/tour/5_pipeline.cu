// Step 5: a pipeline. Weights stay packed in shared memory, 4.5 bits each, and are decoded in the
// registers of the thread that multiplies them. `cp.async` fills a ring of stages in the
// background, so that reading memory and multiplying overlap.
//
// The order of k inside a k-tile is free as long as both operands agree: thread q of a quad takes
// the 16-block 16q ... 16q + 15 of a row, 8 bytes with one scale. Nibbles i and i + 4 of a word are
// a pair of halves after one shift and two masks; neighbours would take more.
#include "cuda/ptx/cp_async.cuh"
#include "cuda/ptx/mma_sync.cuh"
#include "tour/problem.cuh"

namespace tour {
namespace {

using namespace dualgemm::cuda::ptx;
constexpr int kTileM = 64, kTileN = 32, kTileK = 64, kThreads = 128, kStages = 4;

struct alignas(16) Stage {
  uint4 a[kTileM][8];           // 8 halves each; chunk c of row r lies at c ^ r % 8
  uint4 weights[2][kTileN][2];  // Gate, Up: 64 codes of a row
  uint32_t scales[2][kTileN];   // four of a row
};

__device__ void load(const Problem& p, uint32_t row0, uint32_t col0, uint32_t k0, Stage& stage) {
  if (k0 < p.k) {
    for (uint32_t i = threadIdx.x; i < kTileM * 8; i += kThreads) {
      const uint32_t row = i / 8, c = i % 8;
      const bool there = row0 + row < p.m;
      cp_async_16(&stage.a[row][c ^ row % 8],
                  p.a + (there ? size_t{row0 + row} * p.k + k0 + c * 8 : 0), there ? 16 : 0);
    }
    const uint32_t up = threadIdx.x / 64, col = threadIdx.x % 64 / 2, half = threadIdx.x % 2;
    const size_t index = size_t{col0 + col} * p.k + k0;
    cp_async_16(&stage.weights[up][col][half], (up ? p.up : p.gate) + index / 2 + 16 * half, 16);
    if (half == 0)
      cp_async_4(&stage.scales[up][col], (up ? p.up_scales : p.gate_scales) + index / 16, 4);
  }
  __syncwarp();             // the branches above have parted the warp
  cp_async_commit_group();  // an empty group, too: they are counted
}

__device__ void multiply(const Stage& stage, float (&sums)[kTileM / 8][4]) {
  const uint32_t warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  uint32_t w[4][4];  // of the k-tile's four instructions: Gate, Up, Gate, Up
#pragma unroll
  for (int up = 0; up < 2; ++up) {
    const uint32_t row = 8 * warp + g;
    const uint2 codes = reinterpret_cast<const uint2*>(stage.weights[up][row])[q];
    const __half2 scale = scale_pair(reinterpret_cast<const uint8_t*>(&stage.scales[up][row])[q]);
#pragma unroll
    for (int pair = 0; pair < 8; ++pair)
      w[pair / 2][pair % 2 * 2 + up] =
          weights_of(place_pair(pair < 4 ? codes.x : codes.y, pair % 4), scale);
  }
#pragma unroll
  for (int t = 0; t < kTileM / 8; ++t) {
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      const uint4 a =
          stage.a[8 * t + g][(2 * q + word) ^ g];  // A's values 0, 4, 1, 5 and 2, 6, 3, 7
      const uint32_t low[2] = {__byte_perm(a.x, a.z, 0x5410), __byte_perm(a.x, a.z, 0x7632)};
      const uint32_t high[2] = {__byte_perm(a.y, a.w, 0x5410), __byte_perm(a.y, a.w, 0x7632)};
      mma_m16n8k16<false>(sums[t], w[2 * word], low);
      mma_m16n8k16<false>(sums[t], w[2 * word + 1], high);
    }
  }
}

__global__ void __launch_bounds__(kThreads) pipeline_kernel(Problem p) {
  __shared__ Stage stages[kStages];
  const uint32_t row0 = blockIdx.y * kTileM, col0 = blockIdx.x * kTileN;
  float sums[kTileM / 8][4] = {};
  for (uint32_t s = 0; s < kStages - 1; ++s) load(p, row0, col0, s * kTileK, stages[s]);
  for (uint32_t t = 0; t < p.k / kTileK; ++t) {
    cp_async_wait_group<kStages - 2>();
    __syncthreads();  // all copies of tile t are there, and tile t - 1 has been used
    load(p, row0, col0, (t + kStages - 1) * kTileK, stages[(t + kStages - 1) % kStages]);
    multiply(stages[t % kStages], sums);
  }
  const uint32_t col = col0 + threadIdx.x / 32 * 8 + threadIdx.x % 32 / 4;
  for (uint32_t i = 0; i < kTileM / 4; ++i)
    store(p, row0 + i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2, col, sums[i / 2][i % 2],
          sums[i / 2][2 + i % 2]);
}

}  // namespace

void pipeline(const Problem& p, cudaStream_t stream) {
  pipeline_kernel<<<dim3(p.n / kTileN, (p.m + kTileM - 1) / kTileM), kThreads, 0, stream>>>(p);
}

}  // namespace tour
