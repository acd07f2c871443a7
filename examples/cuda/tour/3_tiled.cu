// Step 3: tiles. A CTA has 64 rows and 64 columns of D. What it reads lies in shared memory for a
// while and serves 64 outputs: memory is read 64 times less often, and a CTA decodes a weight once.
// A thread has 4 x 4 outputs: 12 values from shared memory feed 32 multiplications.
#include "tour/problem.cuh"

namespace tour {
namespace {

constexpr int kTile = 64, kTileK = 16, kThreads = 256;
using Tile = float[kTileK][kTile + 4];  // k outermost: a thread's four values are neighbours

__device__ void load(const Problem& p, uint32_t row0, uint32_t col0, uint32_t k0, Tile& a,
                     Tile& gate, Tile& up) {
  const uint32_t row = threadIdx.x / 4, first = threadIdx.x % 4 * 4;
  for (uint32_t k = first; k < first + 4; ++k) {
    const size_t in_a = size_t{row0 + row} * p.k + k0 + k;
    const size_t in_weights = size_t{col0 + row} * p.k + k0 + k;
    a[k][row] = row0 + row < p.m ? __half2float(p.a[in_a]) : 0;
    gate[k][row] = weight(p.gate, p.gate_scales, in_weights);
    up[k][row] = weight(p.up, p.up_scales, in_weights);
  }
}

__global__ void __launch_bounds__(kThreads) tiled_kernel(Problem p) {
  __shared__ Tile a, gate, up;
  const uint32_t row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  const uint32_t x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4;
  float gates[4][4] = {}, ups[4][4] = {};
  for (uint32_t k0 = 0; k0 < p.k; k0 += kTileK) {
    load(p, row0, col0, k0, a, gate, up);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTileK; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          gates[i][j] += a[k][y + i] * gate[k][x + j];
          ups[i][j] += a[k][y + i] * up[k][x + j];
        }
      }
    }
    __syncthreads();  // all have read before the next tile overwrites it
  }
  for (int i = 0; i < 4; ++i) {
    if (row0 + y + i >= p.m) return;
    for (int j = 0; j < 4; ++j)
      p.d[size_t{row0 + y + i} * p.n + col0 + x + j] = combine(p, gates[i][j], ups[i][j]);
  }
}

}  // namespace

void tiled(const Problem& p, cudaStream_t stream) {
  tiled_kernel<<<dim3(p.n / kTile, (p.m + kTile - 1) / kTile), kThreads, 0, stream>>>(p);
}

}  // namespace tour
