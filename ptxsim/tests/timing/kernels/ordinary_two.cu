// The second of the lists that ptxsim's clock was held to before it learned from them.
// ordinary_two.json has the launches; docs/clock.md says how it did.
#define KERNEL extern "C" __global__ void
#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x;

// Elements.
KERNEL triad(const float2* x, const float2* y, float2* z, float s) {
  THREAD const float2 a = x[i], b = y[i];
  z[i] = make_float2(a.x + s * b.x, a.y + s * b.y);
}
KERNEL copy_bytes(const unsigned char* x, unsigned char* y) { THREAD y[i] = x[i] ^ 0x55; }
KERNEL fill(unsigned long long* y, unsigned long long v) { THREAD y[i] = v + i; }
KERNEL silu_mul(const float4* x, const float4* g, float4* y) {
  THREAD const float4 a = x[i], b = g[i];
  y[i] = make_float4(a.x * b.x / (1 + __expf(-b.x)), a.y * b.y / (1 + __expf(-b.y)),
                     a.z * b.z / (1 + __expf(-b.z)), a.w * b.w / (1 + __expf(-b.w)));
}
KERNEL gray(const unsigned char* rgb, unsigned char* y) {
  THREAD const unsigned r = rgb[3 * i], g = rgb[3 * i + 1], b = rgb[3 * i + 2];
  y[i] = (77 * r + 150 * g + 29 * b) >> 8;
}
KERNEL adam(float* w, const float* g, float* m, float* v, float rate) {
  THREAD const float d = g[i];
  const float a = m[i] = 0.9f * m[i] + 0.1f * d, b = v[i] = 0.999f * v[i] + 0.001f * d * d;
  w[i] -= rate * a / (sqrtf(b) + 1e-8f);
}
KERNEL group_maximum(const float4* x, float* y) {  // of 16 values, a thread each
  THREAD float top = 0;
  for (int k = 0; k < 4; ++k) {
    const float4 v = x[4 * i + k];
    top = fmaxf(top, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
  }
  y[i] = top;
}
KERNEL power(const float* x, float* y, float e) { THREAD y[i] = powf(x[i], e); }
KERNEL sine(const float* x, float* y) { THREAD y[i] = sinf(x[i]) + cosf(x[i]); }
KERNEL newton_double(const double* x, double* y) {
  THREAD const double v = x[i];
  double r = v;
  for (int k = 0; k < 6; ++k) r = 0.5 * (r + v / r);
  y[i] = r;
}

// Integers.
KERNEL xorshift(unsigned* y, int n) {
  THREAD unsigned s = i * 2654435761u + 1;
  for (int k = 0; k < n; ++k) s ^= s << 13, s ^= s >> 17, s ^= s << 5;
  y[i] = s;
}
KERNEL rounds(const unsigned* x, unsigned* y, int n) {
  THREAD unsigned a = x[i], b = a ^ 0x67452301, c = a + 0x98badcfe, d = ~a;
  for (int k = 0; k < n; ++k) {
    const unsigned f = (b & c) | (~b & d), t = a + f + 0x5a827999 + k;
    a = d, d = c, c = b, b = b + (t << 7 | t >> 25);
  }
  y[i] = a + b + c + d;
}
KERNEL collatz(unsigned* y) {
  THREAD unsigned v = i + 1, steps = 0;
  for (; v != 1; ++steps) v = v & 1 ? 3 * v + 1 : v / 2;
  y[i] = steps;
}
KERNEL crc_table(const unsigned* x, const unsigned* table, unsigned* y, int words) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = table[threadIdx.x];
  __syncthreads();
  unsigned c = ~0u;
  for (int k = 0; k < words; ++k) {
    unsigned v = x[k * gridDim.x * blockDim.x + blockIdx.x * blockDim.x + threadIdx.x];
    for (int j = 0; j < 4; ++j, v >>= 8) c = s[(c ^ v) & 255] ^ c >> 8;
  }
  y[blockIdx.x * blockDim.x + threadIdx.x] = c;
}
KERNEL modulo(const unsigned* x, unsigned* y, unsigned m, int n) {
  THREAD unsigned v = x[i];
  for (int k = 0; k < n; ++k) v = v * 1664525u % m + k;
  y[i] = v;
}

// Sums.
KERNEL dot(const float4* x, const float4* y, float* z, int steps) {
  float sum = 0;
  for (int k = 0; k < steps; ++k) {
    const int at = (k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    const float4 a = x[at], b = y[at];
    sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  }
  for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(~0u, sum, k);
  if (threadIdx.x % 32 == 0) atomicAdd(z, sum);
}
KERNEL row_sum(const float* x, float* y, int columns) {  // a block a row
  __shared__ float s[8];
  float sum = 0;
  for (int k = threadIdx.x; k < columns; k += 256) sum += x[blockIdx.x * columns + k];
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}
KERNEL column_sum(const float* x, float* y, int rows, int columns) {  // a thread a column
  THREAD float sum = 0;
  for (int k = 0; k < rows; ++k) sum += x[k * columns + i];
  y[i] = sum;
}
KERNEL welford(const float* x, float* y, int n, int threads) {
  THREAD float mean = 0, m2 = 0;
  for (int k = 0; k < n; ++k) {
    const float v = x[k * threads + i], d = v - mean;
    mean += d / (k + 1);
    m2 += d * (v - mean);
  }
  y[i] = m2 / n;
}
KERNEL count_if(const unsigned* x, unsigned* y, int steps, unsigned limit) {
  unsigned count = 0;
  for (int k = 0; k < steps; ++k)
    count += __popc(
        __ballot_sync(~0u, x[(k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] < limit));
  if (threadIdx.x % 32 == 0) atomicAdd(y, count);
}
KERNEL compact(const unsigned* x, unsigned* y, unsigned* count, unsigned limit) {
  THREAD const unsigned v = x[i], lane = threadIdx.x % 32;
  const unsigned takes = __ballot_sync(~0u, v < limit);
  unsigned at = 0;
  if (lane == 0) at = atomicAdd(count, __popc(takes));
  at = __shfl_sync(~0u, at, 0) + __popc(takes & ((1u << lane) - 1));
  if (v < limit) y[at & 0x7ffff] = v;  // the count goes on from launch to launch
}
