// What the parameters of ptxsim's clock are measured with: each kernel is dominated by one thing.
// microbenchmarks.json has the launches, scripts/clock_kernels the runs.
#define KERNEL extern "C" __global__ void
#define THREAD unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

KERNEL empty(unsigned* x, unsigned* y) {}

// Chains: one warp waits for its own results.
KERNEL chain_fma(float* x, float* y, int n) {
  THREAD float a = x[i], b = x[i + 1];
#pragma unroll 16
  for (int k = 0; k < n; ++k) a = a * b + 1.0f;
  y[i] = a;
}
KERNEL chain_logic(unsigned* x, unsigned* y, int n) {
  THREAD unsigned a = x[i], b = x[i + 1];
#pragma unroll 16
  for (int k = 0; k < n; ++k) a = (a ^ b) + 3;
  y[i] = a;
}
KERNEL chain_imad(unsigned* x, unsigned* y, int n) {
  THREAD unsigned a = x[i], b = x[i + 1];
#pragma unroll 16
  for (int k = 0; k < n; ++k) a = a * b + 7;
  y[i] = a;
}
KERNEL chain_imad64(unsigned long long* x, unsigned long long* y, int n) {
  THREAD unsigned long long a = x[i], b = x[i + 1];
#pragma unroll 16
  for (int k = 0; k < n; ++k) a = a * b + 7;
  y[i] = a;
}
KERNEL chain_fp64(double* x, double* y, int n) {
  THREAD double a = x[i], b = x[i + 1];
#pragma unroll 16
  for (int k = 0; k < n; ++k) a = a * b + 1.0;
  y[i] = a;
}
KERNEL chain_mufu(float* x, float* y, int n) {
  THREAD float a = x[i];
#pragma unroll 16
  for (int k = 0; k < n; ++k) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(a));
  y[i] = a;
}
KERNEL chain_div_s32(int* x, int* y, int n) {
  THREAD int a = x[i];
  for (int k = 0; k < n; ++k) a = 1000000007 / (a | 1) + k;
  y[i] = a;
}
KERNEL chain_div_u64(unsigned long long* x, unsigned long long* y, int n) {
  THREAD unsigned long long a = x[i];
  for (int k = 0; k < n; ++k) a = 0xfedcba9876543210ull / (a | 0x100000001ull) + k;
  y[i] = a;
}
KERNEL chain_div_f32(float* x, float* y, int n) {
  THREAD float a = x[i];
  for (int k = 0; k < n; ++k) a = 3.0f / (a + 1.5f);
  y[i] = a;
}
KERNEL chain_sqrt(float* x, float* y, int n) {
  THREAD float a = x[i];
  for (int k = 0; k < n; ++k) a = sqrtf(a + 1.5f);
  y[i] = a;
}
KERNEL chain_sin(float* x, float* y, int n) {
  THREAD float a = x[i];
  for (int k = 0; k < n; ++k) a = __sinf(a) + 1.0f;
  y[i] = a;
}
KERNEL chain_shared(unsigned* x, unsigned* y, int n) {
  __shared__ unsigned s[1024];
  for (unsigned k = threadIdx.x; k < 1024; k += blockDim.x) s[k] = x[k];
  __syncthreads();
  unsigned a = threadIdx.x & 31;
#pragma unroll 8
  for (int k = 0; k < n; ++k) a = s[a] + (threadIdx.x & 31);
  y[threadIdx.x] = a;
}
KERNEL chain_conflicts(unsigned* x, unsigned* y, int n) {
  __shared__ unsigned s[1024];
  for (unsigned k = threadIdx.x; k < 1024; k += blockDim.x) s[k] = x[k];
  __syncthreads();
  unsigned a = 32 * (threadIdx.x & 31);
#pragma unroll 8
  for (int k = 0; k < n; ++k) a = s[a] + 32 * (threadIdx.x & 31);
  y[threadIdx.x] = a;
}
// x holds zeros: every load's address hangs on the load before. `mask` + 1 words are gone through
// in steps.
KERNEL chain_load(unsigned* x, unsigned* y, int n, unsigned step, unsigned mask) {
  unsigned p = threadIdx.x;
#pragma unroll 4
  for (int k = 0; k < n; ++k) p = (p + x[p] + step) & mask;
  y[threadIdx.x] = p;
}
// Each warp begins in lines of its own.
KERNEL chain_load_l2(unsigned* x, unsigned* y, int n, unsigned step, unsigned mask) {
  THREAD unsigned p = i % 32 + i / 32 * 96;
#pragma unroll 4
  for (int k = 0; k < n; ++k) p = (p + __ldcg(x + p) + step) & mask;
  y[threadIdx.x] = p;
}
KERNEL chain_shuffle(unsigned* x, unsigned* y, int n) {
  THREAD unsigned a = x[i];
#pragma unroll 16
  for (int k = 0; k < n; ++k) a = __shfl_xor_sync(~0u, a, 1) + 1;
  y[i] = a;
}
KERNEL chain_vote(unsigned* x, unsigned* y, int n) {
  THREAD unsigned a = x[i];
#pragma unroll 16
  for (int k = 0; k < n; ++k) a += __ballot_sync(~0u, a & 1);
  y[i] = a;
}
KERNEL chain_atomic(unsigned* x, unsigned* y, int n) {
  THREAD unsigned a = x[i];
  for (int k = 0; k < n; ++k) a = atomicAdd(y + 32 * i + (a & 1), 1);
  x[i] = a;
}
KERNEL chain_mma(unsigned* x, float* y, int n) {
  unsigned a = x[threadIdx.x];
  float d[4] = {};
#pragma unroll 8
  for (int k = 0; k < n; ++k)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a));
  y[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
KERNEL chain_barrier(unsigned* x, unsigned* y, int n) {
#pragma unroll 16
  for (int k = 0; k < n; ++k) __syncthreads();
  y[threadIdx.x] = 1;
}
// A loop that is not unrolled, of one load and its use.
KERNEL chain_loop(float* x, float* y, int n) {
  __shared__ float s[1024];
  for (unsigned k = threadIdx.x; k < 1024; k += blockDim.x) s[k] = x[k];
  __syncthreads();
  float a = 0;
#pragma unroll 1
  for (int k = 0; k < n; ++k) a = a * s[k & 1023] + 1.0f;
  y[threadIdx.x] = a;
}

KERNEL chain_div_f64(double* x, double* y, int n) {
  THREAD double a = x[i];
  for (int k = 0; k < n; ++k) a = 3.0 / (a + 1.5);
  y[i] = a;
}
KERNEL chain_exp(float* x, float* y, int n) {
  THREAD float a = x[i];
  for (int k = 0; k < n; ++k) a = expf(a) - 1.0f;
  y[i] = a;
}
KERNEL chain_log(float* x, float* y, int n) {
  THREAD float a = x[i];
  for (int k = 0; k < n; ++k) a = logf(a) + 4.0f;
  y[i] = a;
}
KERNEL chain_tanh(float* x, float* y, int n) {
  THREAD float a = x[i];
  for (int k = 0; k < n; ++k) a = tanhf(a) + 1.0f;
  y[i] = a;
}
// Loops whose rounds wait for what they load.
KERNEL loop_global(float* x, float* y, int n, unsigned threads) {
  THREAD float a = 0;
#pragma unroll 1
  for (int k = 0; k < n; ++k) a = a * 0.5f + x[i + k * threads];
  y[i] = a;
}
KERNEL loop_tiles(float* x, float* y, int n, unsigned threads) {
  __shared__ float s[256];
  THREAD float a = 0;
  for (int k = 0; k < n; ++k) {
    s[threadIdx.x] = x[i + k * threads];
    __syncthreads();
    for (int j = 0; j < 16; ++j) a = a * 0.5f + s[(threadIdx.x + j * 16) & 255];
    __syncthreads();
  }
  y[i] = a;
}

// Rates: many warps, four or eight results each that do not wait for each other.
#define RATE(name, type, step)                                                                  \
  KERNEL name(type* x, type* y, int n) {                                                        \
    THREAD type b = x[0], a0 = x[i], a1 = a0 + 1, a2 = a0 + 2, a3 = a0 + 3;                     \
    _Pragma("unroll 8") for (int k = 0; k < n; ++k){step(a0) step(a1) step(a2) step(a3)} y[i] = \
        a0 + a1 + a2 + a3 + b;                                                                  \
  }
#define FMA(a) a = a * b + a;
RATE(rate_fma, float, FMA)
#define FP64(a) a = a * b + a;
RATE(rate_fp64, double, FP64)
#define IMAD(a) a = a * b + a;
RATE(rate_imad, unsigned, IMAD)
#define LOGIC(a) a = (a ^ b) + 3;
RATE(rate_logic, unsigned, LOGIC)
#define MUFU(a) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(a));
RATE(rate_mufu, float, MUFU)
#define SHUFFLE(a) a = __shfl_xor_sync(~0u, a, 1);
RATE(rate_shuffle, unsigned, SHUFFLE)
#define CONVERT(a) a = (float)(int)a + b;
RATE(rate_convert, float, CONVERT)
#define DIVIDE_S32(a) a = 1000000007 / (a | 1);
RATE(rate_div_s32, int, DIVIDE_S32)
#define DIVIDE_F32(a) a = b / (a + 1.5f);
RATE(rate_div_f32, float, DIVIDE_F32)

KERNEL rate_mma(unsigned* x, float* y, int n) {
  THREAD unsigned a = x[i];
  float d[4][4] = {};
#pragma unroll 4
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < 4; ++j)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},{%0,%1,%2,%3};"
          : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
          : "r"(a));
  y[i] = d[0][0] + d[1][1] + d[2][2] + d[3][3];
}

// Lanes `step` words apart: 1, no two in a bank; 2, 4, 8, 32, so many.
KERNEL rate_shared(unsigned* x, unsigned* y, int n, unsigned step) {
  __shared__ unsigned s[2048];
  for (unsigned k = threadIdx.x; k < 2048; k += blockDim.x) s[k] = x[k];
  __syncthreads();
  unsigned a = 0, at = (threadIdx.x & 31) * step;
#pragma unroll 8
  for (int k = 0; k < n; ++k) a += s[(at + k * 32) & 2047];
  y[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
KERNEL rate_shared16(uint4* x, uint4* y, int n) {
  __shared__ uint4 s[512];
  for (unsigned k = threadIdx.x; k < 512; k += blockDim.x) s[k] = x[k];
  __syncthreads();
  uint4 a = {};
#pragma unroll 8
  for (int k = 0; k < n; ++k) {
    const uint4 v = s[((threadIdx.x & 31) + k * 32) & 511];
    a.x += v.x, a.y ^= v.y, a.z += v.z, a.w ^= v.w;
  }
  y[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
KERNEL rate_shared_atomic(unsigned* x, unsigned* y, int n, unsigned mask) {
  __shared__ unsigned s[1024];
  for (unsigned k = threadIdx.x; k < 1024; k += blockDim.x) s[k] = 0;
  __syncthreads();
  for (int k = 0; k < n; ++k) atomicAdd(s + ((threadIdx.x + k) & mask), 1);
  __syncthreads();
  y[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x];
}
// Each CTA reads its own `mask` + 1 words again and again: they lie in L1.
KERNEL rate_l1(unsigned* x, unsigned* y, int n, unsigned mask) {
  unsigned a = 0;
#pragma unroll 8
  for (int k = 0; k < n; ++k) a += x[(threadIdx.x + 33 * 32 * k) & mask];
  y[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
KERNEL rate_l1_16(uint4* x, uint4* y, int n, unsigned mask) {
  uint4 a = {};
#pragma unroll 8
  for (int k = 0; k < n; ++k) {
    const uint4 v = x[(threadIdx.x + 33 * 32 * k) & mask];
    a.x += v.x, a.y ^= v.y, a.z += v.z, a.w ^= v.w;
  }
  y[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
// Lanes `step` words apart.
KERNEL rate_l1_strided(unsigned* x, unsigned* y, int n, unsigned step, unsigned mask) {
  unsigned a = 0;
#pragma unroll 8
  for (int k = 0; k < n; ++k) a += x[(threadIdx.x * step + k) & mask];
  y[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
KERNEL rate_read(uint4* x, uint4* y, int n, unsigned threads) {
  THREAD uint4 a = {};
#pragma unroll 8
  for (int k = 0; k < n; ++k) {
    const uint4 v = __ldcg(x + i + k * threads);
    a.x += v.x, a.y ^= v.y, a.z += v.z, a.w ^= v.w;
  }
  if ((a.x ^ a.y ^ a.z ^ a.w) == 0x12345678) y[i] = a;
}
KERNEL rate_copy(uint4* x, uint4* y) { THREAD y[i] = x[i]; }
KERNEL rate_copy4(unsigned* x, unsigned* y) { THREAD y[i] = x[i]; }
KERNEL rate_write(uint4* x, uint4* y) { THREAD y[i] = make_uint4(i, 1, 2, 3); }
KERNEL rate_strided(unsigned* x, unsigned* y, unsigned step, unsigned mask) {
  THREAD y[i] = x[(i * step) & mask];
}
KERNEL rate_strided_stores(unsigned* x, unsigned* y, unsigned step, unsigned mask) {
  THREAD y[(i * step) & mask] = i;
}
KERNEL rate_gather(unsigned* x, unsigned* y, unsigned mask) {
  THREAD unsigned h = i * 2654435761u;
  h ^= h >> 15;
  h *= 2246822519u;
  y[i] = x[(h ^ (h >> 13)) & mask];
}
KERNEL rate_atomic(unsigned* x, unsigned* y, unsigned mask) { THREAD atomicAdd(y + (i & mask), i); }
KERNEL rate_atomic_returning(unsigned* x, unsigned* y, unsigned mask) {
  THREAD x[i] = atomicAdd(y + (i & mask), i);
}
