// What every step of the tour computes, and how it reads one NVFP4 weight.
//
//   D = silu(alpha_gate * A * Gate^T) * (alpha_up * A * Up^T)
#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace tour {

// All pointers are of the device. m is any number of rows; n is a multiple of 64, k of 256.
struct Problem {
  uint32_t m, n, k;
  const __half* a;                         // (m, k)
  const uint8_t *gate, *up;                // (n, k / 2): E2M1 codes, low nibble = even k
  const uint8_t *gate_scales, *up_scales;  // (n, k / 16): E4M3, one for 16 neighbours along k
  float alpha_gate, alpha_up;
  __half* d;        // (m, n)
  void* workspace;  // workspace_bytes(problem)
};

// Step 1 keeps two FP32 products there, step 6 a copy of A.
inline size_t workspace_bytes(const Problem& p) {
  const size_t products = 2 * sizeof(float) * size_t{p.m} * p.n;
  const size_t copy = sizeof(__half) * size_t{p.m} * p.k;
  return products > copy ? products : copy;
}

__device__ inline float silu(float x) { return x / (1 + expf(-x)); }

__device__ inline __half combine(const Problem& p, float gate, float up) {
  return __float2half(silu(p.alpha_gate * gate) * (p.alpha_up * up));
}

// Stores an output, if its row exists. Sums of decoded pairs are in units of 2^-7: see below.
__device__ inline void store(const Problem& p, uint32_t row, uint32_t col, float gate, float up) {
  if (row < p.m) p.d[size_t{row} * p.n + col] = combine(p, 128 * gate, 128 * up);
}

__device__ inline __half scale_of(uint8_t byte) {
  return __half(__nv_cvt_fp8_to_halfraw(byte, __NV_E4M3));
}

// An E2M1 code s eem is a half whose sign, two lowest exponent bits and highest mantissa bit it is,
// times 2^14: subnormals included. A scale times 2^7 still fits into a half, so a decoded weight is
// (code * 2^-14) * (scale * 2^7), exactly, and `store` multiplies sums by 2^7.

__device__ inline float weight(const uint8_t* codes, const uint8_t* scales, size_t index) {
  const uint32_t code = codes[index / 2] >> index % 2 * 4;
  const uint16_t half = (code & 8) << 12 | (code & 7) << 9;
  return __half2float(__ushort_as_half(half)) * 16384 * __half2float(scale_of(scales[index / 16]));
}

__device__ inline float sum_of_warp(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xFFFFFFFF, x, offset);
  return x;
}

// Two halves in a register: nibbles i and i + 4 of a word, times 2^-14 ...
__device__ inline uint32_t place_pair(uint32_t word, int i) {
  const uint32_t nibbles = word >> 4 * i;
  return (nibbles & 0x00080008) << 12 | (nibbles & 0x00070007) << 9;
}

// ... a scale times 2^7 in both halves ...
__device__ inline __half2 scale_pair(uint8_t byte) {
  return __half2half2(__hmul(scale_of(byte), __float2half(128)));
}

// ... and their product, two weights as a matrix instruction takes them.
__device__ inline uint32_t weights_of(uint32_t placed, __half2 scale) {
  const __half2 pair = __hmul2(reinterpret_cast<const __half2&>(placed), scale);
  return reinterpret_cast<const uint32_t&>(pair);
}

// The steps, each in a file of its own.
void two_pass(const Problem& problem, cudaStream_t stream);
void one_pass(const Problem& problem, cudaStream_t stream);
void tiled(const Problem& problem, cudaStream_t stream);
void tensor_cores(const Problem& problem, cudaStream_t stream);
void pipeline(const Problem& problem, cudaStream_t stream);
void hopper(const Problem& problem, cudaStream_t stream);

}  // namespace tour
