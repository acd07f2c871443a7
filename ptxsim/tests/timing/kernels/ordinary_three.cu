// The third of the lists that ptxsim's clock was held to before it learned from them.
// ordinary_three.json has the launches; docs/clock.md says how it did.
#include <cuda_fp16.h>
#define KERNEL extern "C" __global__ void
#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x;

// Elements.
KERNEL sum_of_three(const float4* x, const float4* y, const float4* z, float4* out) {
  THREAD const float4 a = x[i], b = y[i], c = z[i];
  out[i] = make_float4(a.x + b.x + c.x, a.y + b.y + c.y, a.z + b.z + c.z, a.w + b.w + c.w);
}
KERNEL halves_to_floats(const __half2* x, float2* y) { THREAD y[i] = __half22float2(x[i]); }
KERNEL reverse(const float* x, float* y, int n) { THREAD y[n - 1 - i] = x[i]; }
KERNEL interleave(const float* x, const float* y, float* out) {
  THREAD out[2 * i] = x[i];
  out[2 * i + 1] = y[i];
}
KERNEL bit_reversal(const float2* x, float2* y, int bits) {
  THREAD y[i] = x[__brev(i) >> (32 - bits)];
}
KERNEL dequantize_rows(const int* x, const float* scale, float4* y, int columns4) {
  THREAD const int v = x[i];
  const float s = scale[i / columns4];
  y[i] = make_float4(s * (v << 24 >> 24), s * (v << 16 >> 24), s * (v << 8 >> 24), s * (v >> 24));
}
KERNEL quantize_rows(const float4* x, const float* scale, unsigned* y, int columns4) {
  THREAD const float4 v = x[i];
  const float s = 1 / scale[i / columns4];
  const int a = __float2int_rn(v.x * s), b = __float2int_rn(v.y * s), c = __float2int_rn(v.z * s),
            d = __float2int_rn(v.w * s);
  y[i] = (a & 255) | (b & 255) << 8 | (c & 255) << 16 | d << 24;
}
KERNEL half_chain(const __half2* x, __half2* y, int n) {
  THREAD const __half2 a = x[i];
  __half2 b = a, c = a, d = a, e = a;
#pragma unroll 4
  for (int k = 0; k < n; ++k)
    b = __hfma2(b, a, a), c = __hfma2(c, a, b), d = __hfma2(d, a, c), e = __hfma2(e, a, d);
  y[i] = __hadd2(__hadd2(b, c), __hadd2(d, e));
}
KERNEL polynomial(const float* x, float* y) {
  THREAD const float v = x[i];
  float r = 0.3f;
  for (int k = 0; k < 24; ++k) r = r * v + 0.1f * k;
  y[i] = r;
}
KERNEL gamma_curve(const float4* x, float4* y, float e) {
  THREAD const float4 v = x[i];
  y[i] = make_float4(exp2f(e * __log2f(v.x)), exp2f(e * __log2f(v.y)), exp2f(e * __log2f(v.z)),
                     exp2f(e * __log2f(v.w)));
}
KERNEL invert_3x3(const float* x, float* y, int n) {
  THREAD float a[9];
  for (int k = 0; k < 9; ++k) a[k] = x[k * n + i];
  const float c0 = a[4] * a[8] - a[5] * a[7], c1 = a[5] * a[6] - a[3] * a[8],
              c2 = a[3] * a[7] - a[4] * a[6];
  const float r = 1 / (a[0] * c0 + a[1] * c1 + a[2] * c2 + 2);
  y[i] = c0 * r, y[n + i] = c1 * r, y[2 * n + i] = c2 * r;
  y[3 * n + i] = (a[2] * a[7] - a[1] * a[8]) * r, y[4 * n + i] = (a[0] * a[8] - a[2] * a[6]) * r;
}
KERNEL quaternions(const float4* x, float4* y) {
  THREAD const float4 q = x[i];
  const float r = rsqrtf(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
  y[i] = make_float4(q.x * r, q.y * r, q.z * r, q.w * r);
}
KERNEL mix64(const unsigned long long* x, unsigned long long* y, int n) {
  THREAD unsigned long long v = x[i];
  for (int k = 0; k < n; ++k) v ^= v >> 33, v *= 0xff51afd7ed558ccdull, v ^= v >> 29, v += k;
  y[i] = v;
}
KERNEL bit_counts(const uint4* x, unsigned* y) {
  THREAD const uint4 v = x[i];
  y[i] = __popc(v.x) + __clz(v.y) + __ffs(v.z) + __popc(v.w ^ v.x);
}
KERNEL determinants(const double* x, double* y, int n) {
  THREAD double a[16];
  for (int k = 0; k < 16; ++k) a[k] = x[k * n + i];
  double d = 1;
#pragma unroll
  for (int p = 0; p < 3; ++p) {
    d *= a[5 * p];
#pragma unroll
    for (int r = p + 1; r < 4; ++r) {
      const double f = a[4 * r + p] / (a[5 * p] + 3);
#pragma unroll
      for (int c = p; c < 4; ++c) a[4 * r + c] -= f * a[4 * p + c];
    }
  }
  y[i] = d * a[15];
}

// Rows and time.
KERNEL softmax_warp(const float* x, float* y) {  // 1024 columns, a warp a row
  THREAD const int row = i / 32, lane = threadIdx.x % 32;
  float v[32], top = -1e30f, sum = 0;
#pragma unroll
  for (int k = 0; k < 32; ++k) v[k] = x[row * 1024 + k * 32 + lane], top = fmaxf(top, v[k]);
  for (int k = 16; k > 0; k /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, k));
#pragma unroll
  for (int k = 0; k < 32; ++k) v[k] = __expf(v[k] - top), sum += v[k];
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
#pragma unroll
  for (int k = 0; k < 32; ++k) y[row * 1024 + k * 32 + lane] = v[k] / sum;
}
KERNEL layer_norm_block(const float4* x, const float4* w,
                        float4* y) {  // 1024 columns, a block a row
  __shared__ float s[2][8];
  const float4 v = x[blockIdx.x * 256 + threadIdx.x], g = w[threadIdx.x];
  float a = v.x + v.y + v.z + v.w, b = v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  for (int k = 16; k > 0; k /= 2) a += __shfl_xor_sync(~0u, a, k), b += __shfl_xor_sync(~0u, b, k);
  if (threadIdx.x % 32 == 0) s[0][threadIdx.x / 32] = a, s[1][threadIdx.x / 32] = b;
  __syncthreads();
  a = b = 0;
  for (int k = 0; k < 8; ++k) a += s[0][k], b += s[1][k];
  const float mean = a / 1024, r = rsqrtf(b / 1024 - mean * mean + 1e-5f);
  y[blockIdx.x * 256 + threadIdx.x] = make_float4((v.x - mean) * r * g.x, (v.y - mean) * r * g.y,
                                                  (v.z - mean) * r * g.z, (v.w - mean) * r * g.w);
}
KERNEL moving_average(const float* x, float* y, int steps, int channels) {
  THREAD float a = 0;
  for (int k = 0; k < steps; ++k) {
    a = 0.9f * a + 0.1f * x[k * channels + i];
    y[k * channels + i] = a;
  }
}
KERNEL minimum_block(const float* x, float* y, int steps) {
  __shared__ float s[32];
  float v = 1e30f;
  for (int k = 0; k < steps; ++k)
    v = fminf(v, x[(k * gridDim.x + blockIdx.x) * 1024 + threadIdx.x]);
  for (int k = 16; k > 0; k /= 2) v = fminf(v, __shfl_xor_sync(~0u, v, k));
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = s[threadIdx.x];
    for (int k = 16; k > 0; k /= 2) v = fminf(v, __shfl_xor_sync(~0u, v, k));
    if (threadIdx.x == 0) y[blockIdx.x] = v;
  }
}
KERNEL segments(const unsigned* begin, const float* x, float* y) {  // a warp a segment of 0 to 127
  THREAD const int segment = i / 32, lane = threadIdx.x % 32;
  const unsigned at = segment * 128, n = begin[segment] & 127;
  float sum = 0;
  for (unsigned k = lane; k < n; k += 32) sum += x[at + k];
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  if (lane == 0) y[segment] = sum;
}
