// The first of the lists that ptxsim's clock was held to before it learned from them.
// ordinary.json has the launches; docs/clock.md says how it did.
#define KERNEL extern "C" __global__ void
#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x;

// Elements.
KERNEL saxpy(const float* x, float* y, float a, int n) { THREAD if (i < n) y[i] = a * x[i] + y[i]; }
KERNEL gelu(const float4* x, float4* y) {
  THREAD float4 v = x[i];
  float* e = &v.x;
  for (int k = 0; k < 4; ++k)
    e[k] = 0.5f * e[k] * (1 + tanhf(0.7978845608f * (e[k] + 0.044715f * e[k] * e[k] * e[k])));
  y[i] = v;
}
KERNEL black_scholes(const float* price, const float* strike, const float* years, float* call,
                     int n) {
  THREAD if (i >= n) return;
  const float s = 5 + 25 * (price[i] - floorf(price[i])),
              k = 1 + 99 * (strike[i] - floorf(strike[i]));
  const float t = 0.25f + 9 * (years[i] - floorf(years[i])), root = sqrtf(t);
  const float d1 = (__logf(s / k) + (0.02f + 0.045f) * t) / (0.3f * root), d2 = d1 - 0.3f * root;
  call[i] = s * normcdff(d1) - k * __expf(-0.02f * t) * normcdff(d2);
}
KERNEL mandelbrot(unsigned* y, int width, int most) {
  const int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
  const float cr = -0.2f + 0.4f * px / width, ci = 0.1f * py / width;
  float zr = 0, zi = 0;
  int k = 0;
  for (; k < most && zr * zr + zi * zi < 4; ++k) {
    const float t = zr * zr - zi * zi + cr;
    zi = 2 * zr * zi + ci;
    zr = t;
  }
  y[py * width + px] = k;
}
KERNEL monte_carlo(float* y, int n) {
  THREAD unsigned s = i * 747796405u + 2891336453u;
  float inside = 0;
  for (int k = 0; k < n; ++k) {
    s = s * 1664525u + 1013904223u;
    const float a = (s >> 8) * 0x1p-24f;
    s = s * 1664525u + 1013904223u;
    const float b = (s >> 8) * 0x1p-24f;
    inside += a * a + b * b < 1;
  }
  y[i] = inside;
}
KERNEL modular_power(const unsigned* x, unsigned* y, unsigned modulus, unsigned exponent) {
  THREAD unsigned long long base = x[i] % modulus, r = 1;
  for (unsigned e = exponent; e != 0; e >>= 1) {
    if (e & 1) r = r * base % modulus;
    base = base * base % modulus;
  }
  y[i] = (unsigned)r;
}
KERNEL polynomial_double(const double* x, double* y) {
  THREAD double v = x[i], r = 0.5;
  for (int k = 0; k < 64; ++k) r = r * v + (k - 31.5);
  y[i] = r;
}
KERNEL int4_to_half(const unsigned* x, unsigned* y) {
  THREAD const unsigned v = x[i];
  for (int k = 0; k < 4; ++k) {
    unsigned h;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;"
        : "=r"(h)
        : "f"((float)(v >> (8 * k + 4) & 15) - 8), "f"((float)(v >> (8 * k) & 15) - 8));
    y[4 * i + k] = h;
  }
}

// Sums along rows and blocks.
__device__ float warp_sum(float v) {
  for (int k = 16; k > 0; k /= 2) v += __shfl_xor_sync(~0u, v, k);
  return v;
}
__device__ float warp_max(float v) {
  for (int k = 16; k > 0; k /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, k));
  return v;
}
__device__ float block_sum(float v, float* s) {
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < blockDim.x / 32 ? s[threadIdx.x % 32] : 0;
  v = warp_sum(v);
  __syncthreads();
  return v;
}
KERNEL sum_atomic(const float4* x, float* y, int steps) {
  __shared__ float s[32];
  float v = 0;
  for (int k = 0; k < steps; ++k) {
    const float4 f = x[(k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x];
    v += f.x + f.y + f.z + f.w;
  }
  v = block_sum(v, s);
  if (threadIdx.x == 0) atomicAdd(y, v);
}
KERNEL sum_tree(const float* x, float* y) {
  __shared__ float s[512];
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 512 + t];
  for (int k = 256; k > 0; k /= 2) {
    __syncthreads();
    if (t < k) s[t] += s[t + k];
  }
  if (t == 0) y[blockIdx.x] = s[0];
}
KERNEL softmax(const float* x, float* y, int columns) {
  __shared__ float s[32];
  const float* row = x + (size_t)blockIdx.x * columns;
  float top = -1e30f, sum = 0;
  for (int k = threadIdx.x; k < columns; k += blockDim.x) top = fmaxf(top, row[k]);
  top = warp_max(top);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = top;
  __syncthreads();
  top = warp_max(threadIdx.x % 32 < blockDim.x / 32 ? s[threadIdx.x % 32] : -1e30f);
  __syncthreads();
  for (int k = threadIdx.x; k < columns; k += blockDim.x) sum += __expf(row[k] - top);
  sum = 1 / block_sum(sum, s);
  for (int k = threadIdx.x; k < columns; k += blockDim.x)
    y[(size_t)blockIdx.x * columns + k] = __expf(row[k] - top) * sum;
}
KERNEL rms_norm(const float* x, const float* w, float* y, int columns) {
  __shared__ float s[32];
  const size_t row = (size_t)blockIdx.x * columns;
  float sum = 0;
  for (int k = threadIdx.x; k < columns; k += blockDim.x) sum += x[row + k] * x[row + k];
  const float r = rsqrtf(block_sum(sum, s) / columns + 1e-6f);
  for (int k = threadIdx.x; k < columns; k += blockDim.x) y[row + k] = x[row + k] * r * w[k];
}
KERNEL layer_norm_warp(const float4* x, float4* y) {  // 512 columns, a warp each
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float4 v[4];
  float sum = 0, squares = 0;
  for (int k = 0; k < 4; ++k) {
    v[k] = x[row * 128 + k * 32 + lane];
    sum += v[k].x + v[k].y + v[k].z + v[k].w;
    squares += v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w;
  }
  sum = warp_sum(sum) / 512;
  const float r = rsqrtf(warp_sum(squares) / 512 - sum * sum + 1e-5f);
  for (int k = 0; k < 4; ++k) {
    float4 o = {(v[k].x - sum) * r, (v[k].y - sum) * r, (v[k].z - sum) * r, (v[k].w - sum) * r};
    y[row * 128 + k * 32 + lane] = o;
  }
}
KERNEL argmax(const float* x, int* y, int columns) {  // a warp a row
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float best = -1e30f;
  int at = 0;
  for (int k = lane; k < columns; k += 32) {
    const float v = x[(size_t)row * columns + k];
    if (v > best) best = v, at = k;
  }
  for (int k = 16; k > 0; k /= 2) {
    const float v = __shfl_down_sync(~0u, best, k);
    const int a = __shfl_down_sync(~0u, at, k);
    if (v > best) best = v, at = a;
  }
  if (lane == 0) y[row] = at;
}
KERNEL scan_block(const unsigned* x, unsigned* y) {  // Hillis and Steele, 1024 a block
  __shared__ unsigned s[2][1024];
  const int t = threadIdx.x, i = blockIdx.x * 1024 + t;
  int p = 0;
  s[0][t] = x[i];
  __syncthreads();
  for (int k = 1; k < 1024; k *= 2) {
    s[1 - p][t] = t >= k ? s[p][t] + s[p][t - k] : s[p][t];
    p = 1 - p;
    __syncthreads();
  }
  y[i] = s[p][t];
}
KERNEL scan_warp(const unsigned* x, unsigned* y) {
  __shared__ unsigned s[32];
  THREAD const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned v = x[i];
  for (int k = 1; k < 32; k *= 2) {
    const unsigned o = __shfl_up_sync(~0u, v, k);
    if (lane >= k) v += o;
  }
  if (lane == 31) s[warp] = v;
  __syncthreads();
  for (int k = 0; k < warp; ++k) v += s[k];
  y[i] = v;
}

// Neighbours and transposes.
KERNEL stencil_1d(const float* x, float* y) {
  __shared__ float s[256 + 16];
  THREAD const int t = threadIdx.x + 8;
  s[t] = x[i + 8];
  if (threadIdx.x < 8) s[t - 8] = x[i], s[t + 256] = x[i + 8 + 256];
  __syncthreads();
  float sum = 0;
  for (int k = -8; k <= 8; ++k) sum += s[t + k];
  y[i] = sum;
}
KERNEL stencil_2d(const float* x, float* y, int width) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x + 1,
            r = blockIdx.y * blockDim.y + threadIdx.y + 1;
  const float* p = x + r * width + c;
  y[r * width + c] = 0.2f * (p[0] + p[-1] + p[1] + p[-width] + p[width]);
}
KERNEL stencil_3d(const float* x, float* y, int width, int plane, int planes) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x + 1,
            r = blockIdx.y * blockDim.y + threadIdx.y + 1;
  const float* p = x + r * width + c;
  for (int k = 1; k < planes - 1; ++k)
    y[k * plane + r * width + c] =
        0.5f * p[k * plane] + 0.1f * (p[k * plane - 1] + p[k * plane + 1] + p[k * plane - width] +
                                      p[k * plane + width] + p[(k - 1) * plane]);
}
KERNEL transpose_naive(const float* x, float* y, int n) {
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) y[c * n + r + k] = x[(r + k) * n + c];
}
KERNEL transpose_conflicts(const float* x, float* y, int n) {
  __shared__ float s[32][32];
  const int c = blockIdx.x * 32, r = blockIdx.y * 32;
  for (int k = threadIdx.y; k < 32; k += 8) s[k][threadIdx.x] = x[(r + k) * n + c + threadIdx.x];
  __syncthreads();
  for (int k = threadIdx.y; k < 32; k += 8) y[(c + k) * n + r + threadIdx.x] = s[threadIdx.x][k];
}
KERNEL transpose_padded(const float* x, float* y, int n) {
  __shared__ float s[32][33];
  const int c = blockIdx.x * 32, r = blockIdx.y * 32;
  for (int k = threadIdx.y; k < 32; k += 8) s[k][threadIdx.x] = x[(r + k) * n + c + threadIdx.x];
  __syncthreads();
  for (int k = threadIdx.y; k < 32; k += 8) y[(c + k) * n + r + threadIdx.x] = s[threadIdx.x][k];
}
