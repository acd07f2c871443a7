// Step 1: two products, then the activation. A warp has one output; its lanes share the 16-blocks
// of the sum. Every weight is decoded again for every row of A, A is read twice, and two FP32
// matrices are written and read again.
#include "tour/problem.cuh"

namespace tour {
namespace {

__global__ void product(Problem p, const uint8_t* codes, const uint8_t* scales, float* out) {
  const uint32_t col = blockIdx.x * blockDim.y + threadIdx.y, row = blockIdx.y;
  float sum = 0;
  for (uint32_t block = threadIdx.x; block < p.k / 16; block += 32) {
    for (uint32_t k = block * 16; k < block * 16 + 16; ++k) {
      const float a = __half2float(p.a[size_t{row} * p.k + k]);
      sum += a * weight(codes, scales, size_t{col} * p.k + k);
    }
  }
  sum = sum_of_warp(sum);
  if (threadIdx.x == 0) out[size_t{row} * p.n + col] = sum;
}

__global__ void join(Problem p, const float* gate, const float* up) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < size_t{p.m} * p.n) p.d[i] = combine(p, gate[i], up[i]);
}

}  // namespace

void two_pass(const Problem& p, cudaStream_t stream) {
  float* const gate = static_cast<float*>(p.workspace);
  float* const up = gate + size_t{p.m} * p.n;
  const dim3 grid(p.n / 8, p.m), warps(32, 8);
  product<<<grid, warps, 0, stream>>>(p, p.gate, p.gate_scales, gate);
  product<<<grid, warps, 0, stream>>>(p, p.up, p.up_scales, up);
  join<<<(size_t{p.m} * p.n + 255) / 256, 256, 0, stream>>>(p, gate, up);
}

}  // namespace tour
