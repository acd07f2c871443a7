// Kernels that ptxsim's clock is held to: none of its parameters is fitted to them.
// held_out.json has the launches and the date on which the list was closed.
#include <cuda_fp16.h>
#define KERNEL extern "C" __global__ void
#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x;

KERNEL bias_relu(const float4* x, const float4* bias, float4* y, int columns4) {
  THREAD const float4 v = x[i], b = bias[i % columns4];
  y[i] = make_float4(fmaxf(v.x + b.x, 0), fmaxf(v.y + b.y, 0), fmaxf(v.z + b.z, 0),
                     fmaxf(v.w + b.w, 0));
}
KERNEL dropout(const float* x, float* y, unsigned seed) {
  THREAD unsigned h = (i ^ seed) * 0x9e3779b9u;
  h ^= h >> 16, h *= 0x85ebca6bu, h ^= h >> 13;
  y[i] = h & 1 ? 2 * x[i] : 0;
}
KERNEL residual_halves(const uint4* x, const uint4* y, uint4* z) {
  THREAD uint4 a = x[i];
  const uint4 b = y[i];
  __half2 *u = (__half2*)&a, *v = (__half2*)&b;
  for (int k = 0; k < 4; ++k) u[k] = __hadd2(u[k], v[k]);
  z[i] = a;
}
KERNEL planes(const float* x, float* y, int pixels) {  // 3 channels of a pixel to 3 planes
  THREAD for (int k = 0; k < 3; ++k) y[k * pixels + i] = x[3 * i + k];
}
KERNEL to_e4m3(const float4* x, unsigned* y) {
  THREAD const float4 v = x[i];
  unsigned short a, b;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(a) : "f"(v.y), "f"(v.x));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(b) : "f"(v.w), "f"(v.z));
  y[i] = a | b << 16;
}
KERNEL integrate(float* px, float* py, float* pz, float* vx, float* vy, float* vz, float dt) {
  THREAD const float r = rsqrtf(px[i] * px[i] + py[i] * py[i] + pz[i] * pz[i] + 0.1f),
                     f = -r * r * r * dt;
  vx[i] += f * px[i], vy[i] += f * py[i], vz[i] += f * pz[i];
  px[i] += dt * vx[i], py[i] += dt * vy[i], pz[i] += dt * vz[i];
}
KERNEL runge_kutta(const float* x, float* y, int steps) {
  THREAD float v = x[i];
  for (int k = 0; k < steps; ++k) {
    const float a = __sinf(v), b = __sinf(v + 0.05f * a), c = __sinf(v + 0.05f * b),
                d = __sinf(v + 0.1f * c);
    v += 0.1f / 6 * (a + 2 * b + 2 * c + d);
  }
  y[i] = v;
}
KERNEL fir(const float* x, float* y) {
  THREAD float sum = 0;
#pragma unroll
  for (int k = 0; k < 32; ++k) sum += (0.01f * k + 0.1f) * x[i + k];
  y[i] = sum;
}
KERNEL sum_double(const double* x, double* y, int steps) {
  __shared__ double s[8];
  double sum = 0;
  for (int k = 0; k < steps; ++k) sum += x[(k * gridDim.x + blockIdx.x) * 256 + threadIdx.x];
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}
KERNEL stencil_double(const double* x, double* y, int width) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x + 1,
            r = blockIdx.y * blockDim.y + threadIdx.y + 1;
  const double* p = x + r * width + c;
  y[r * width + c] = 0.25 * (p[-1] + p[1] + p[-width] + p[width]) - p[0];
}
KERNEL scan64(const long long* x, long long* y) {  // along 32 values, a warp
  THREAD long long v = x[i];
  for (int k = 1; k < 32; k *= 2) {
    const long long o = __shfl_up_sync(~0u, v, k);
    if (threadIdx.x % 32 >= k) v += o;
  }
  y[i] = v;
}
KERNEL transpose_bits(const unsigned* x, unsigned* y) {  // 32 x 32 bits, a warp
  THREAD const unsigned v = x[i], lane = threadIdx.x % 32;
  unsigned mine = 0;
  for (int k = 0; k < 32; ++k) {
    const unsigned b = __ballot_sync(~0u, v >> k & 1);
    if (lane == k) mine = b;
  }
  y[i] = mine;
}
KERNEL row_maximum(const float* x, float* y, int columns) {  // a block of 512 a row
  __shared__ float s[16];
  float top = -1e30f;
  for (int k = threadIdx.x; k < columns; k += 512) top = fmaxf(top, x[blockIdx.x * columns + k]);
  for (int k = 16; k > 0; k /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, k));
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = top;
  __syncthreads();
  if (threadIdx.x < 16) {
    top = s[threadIdx.x];
    for (int k = 8; k > 0; k /= 2) top = fmaxf(top, __shfl_xor_sync(0xffff, top, k));
    if (threadIdx.x == 0) y[blockIdx.x] = top;
  }
}
KERNEL log_sum_exp(const float* x, float* y, int columns) {  // a warp a row, in one pass
  THREAD const int row = i / 32, lane = threadIdx.x % 32;
  float top = -1e30f, sum = 0;
  for (int k = lane; k < columns; k += 32) {
    const float v = x[row * columns + k], t = fmaxf(top, v);
    sum = sum * __expf(top - t) + __expf(v - t);
    top = t;
  }
  for (int k = 16; k > 0; k /= 2) {
    const float t = __shfl_xor_sync(~0u, top, k), s = __shfl_xor_sync(~0u, sum, k),
                m = fmaxf(top, t);
    sum = sum * __expf(top - m) + s * __expf(t - m);
    top = m;
  }
  if (lane == 0) y[row] = top + __logf(sum);
}
KERNEL norms_of_64(const float4* x, float* y) {  // 16 lanes a vector
  THREAD const float4 v = x[i];
  float s = v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  for (int k = 8; k > 0; k /= 2) s += __shfl_xor_sync(~0u, s, k);
  if (threadIdx.x % 16 == 0) y[i / 16] = sqrtf(s);
}
KERNEL column_scan(float* x, int rows, int columns) {  // in place, a thread a column
  THREAD float sum = 0;
  for (int k = 0; k < rows; ++k) x[k * columns + i] = sum += x[k * columns + i];
}
KERNEL average_4x4(const float4* x, float* y, int width4) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < 4; ++k) {
    const float4 v = x[(4 * r + k) * width4 + c];
    sum += v.x + v.y + v.z + v.w;
  }
  y[r * width4 + c] = sum / 16;
}
KERNEL vertical_taps(const float* x, float* y, int width,
                     int rows) {  // a thread a column, 5 taps in registers
  THREAD float a = x[i], b = x[width + i], c = x[2 * width + i], d = x[3 * width + i];
  for (int k = 4; k < rows; ++k) {
    const float e = x[k * width + i];
    y[(k - 4) * width + i] = 0.1f * (a + e) + 0.2f * (b + d) + 0.4f * c;
    a = b, b = c, c = d, d = e;
  }
}
KERNEL sobel(const float* x, float* y, int width) {
  __shared__ float s[10][34];
  const int tx = threadIdx.x, ty = threadIdx.y, c = blockIdx.x * 32, r = blockIdx.y * 8;
  for (int k = ty * 32 + tx; k < 340; k += 256)
    s[k / 34][k % 34] = x[(r + k / 34) * width + c + k % 34];
  __syncthreads();
  const float h = s[ty][tx + 2] + 2 * s[ty + 1][tx + 2] + s[ty + 2][tx + 2] - s[ty][tx] -
                  2 * s[ty + 1][tx] - s[ty + 2][tx];
  const float v = s[ty + 2][tx] + 2 * s[ty + 2][tx + 1] + s[ty + 2][tx + 2] - s[ty][tx] -
                  2 * s[ty][tx + 1] - s[ty][tx + 2];
  y[(r + ty) * width + c + tx] = sqrtf(h * h + v * v);
}
KERNEL median_of_5(const float* x, float* y) {
  THREAD float a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3], e = x[i + 4], t;
#define ORDER(p, q) t = fminf(p, q), q = fmaxf(p, q), p = t;
  ORDER(a, b) ORDER(c, d) ORDER(a, c) ORDER(b, d) ORDER(b, c) ORDER(c, e) ORDER(b, c) y[i] = c;
}
