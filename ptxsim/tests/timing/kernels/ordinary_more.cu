// The other part of ordinary.cu.
#define KERNEL extern "C" __global__ void
#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x;

KERNEL histogram_shared(const unsigned* x, unsigned* y, int steps) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (int k = 0; k < steps; ++k) {
    const unsigned v = x[(k * gridDim.x + blockIdx.x) * 256 + threadIdx.x];
    atomicAdd(s + (v & 255), 1), atomicAdd(s + (v >> 8 & 255), 1),
        atomicAdd(s + (v >> 16 & 255), 1), atomicAdd(s + (v >> 24), 1);
  }
  __syncthreads();
  atomicAdd(y + threadIdx.x, s[threadIdx.x]);
}
KERNEL histogram_global(const unsigned* x, unsigned* y) {
  THREAD atomicAdd(y + (x[i] & 0xffff), 1);
}
KERNEL embedding(const unsigned* ids, const float4* table,
                 float4* y) {  // rows of 512 bytes, a warp each
  THREAD const unsigned row = ids[i / 32] & 0x1ffff;
  y[i] = table[row * 32 + threadIdx.x % 32];
}
KERNEL scatter(const unsigned* x, unsigned* y) { THREAD y[(x[i] * 2654435761u) >> 10] = i; }
KERNEL binary_search(const unsigned* sorted, const unsigned* x, unsigned* y, int n) {
  THREAD const unsigned v = x[i] & 0xfffff;
  int low = 0, high = n;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (sorted[middle] < v)
      low = middle + 1;
    else
      high = middle;
  }
  y[i] = low;
}
KERNEL hash_probe(const unsigned* table, const unsigned* x, unsigned* y, unsigned mask) {
  THREAD unsigned h = x[i] * 2654435761u, found = 0;
  for (int k = 0; k < 4; ++k) {
    h ^= h >> 16;
    h *= 2246822519u;
    found += table[h & mask] == x[i];
  }
  y[i] = found;
}
KERNEL list_walk(const unsigned* next, unsigned* y, int steps,
                 unsigned mask) {  // next[] is random: each load waits for the last
  THREAD unsigned p = i * 97;
  for (int k = 0; k < steps; ++k) p = next[p & mask];
  y[i] = p;
}
KERNEL spmv(const unsigned* columns, const float* values, const float* x, float* y,
            int per_row) {  // a row a thread
  THREAD float sum = 0;
  for (int k = 0; k < per_row; ++k)
    sum += values[i * per_row + k] * x[columns[i * per_row + k] & 0xffff];
  y[i] = sum;
}
KERNEL bitonic_block(const unsigned* x, unsigned* y) {
  __shared__ unsigned s[1024];
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 1024 + t];
  for (int size = 2; size <= 1024; size *= 2)
    for (int k = size / 2; k > 0; k /= 2) {
      __syncthreads();
      const int other = t ^ k;
      if (other > t) {
        const unsigned a = s[t], b = s[other];
        if ((a > b) == ((t & size) == 0)) s[t] = b, s[other] = a;
      }
    }
  __syncthreads();
  y[blockIdx.x * 1024 + t] = s[t];
}
KERNEL n_body(const float4* x, float4* y, int n) {
  __shared__ float4 s[256];
  THREAD const float4 me = x[i];
  float ax = 0, ay = 0, az = 0;
  for (int tile = 0; tile < n; tile += 256) {
    s[threadIdx.x] = x[tile + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < 256; ++k) {
      const float dx = s[k].x - me.x, dy = s[k].y - me.y, dz = s[k].z - me.z;
      const float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-4f), f = s[k].w * r * r * r;
      ax += dx * f, ay += dy * f, az += dz * f;
    }
    __syncthreads();
  }
  y[i] = make_float4(ax, ay, az, 0);
}
KERNEL gemv_warp(const float4* a, const float4* x, float* y, int columns4) {  // a row a warp
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (int k = lane; k < columns4; k += 32) {
    const float4 v = a[(size_t)row * columns4 + k], w = x[k];
    sum += v.x * w.x + v.y * w.y + v.z * w.z + v.w * w.w;
  }
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  if (lane == 0) y[row] = sum;
}
KERNEL gemm_naive(const float* a, const float* b, float* c, int n) {
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
  c[y * n + x] = sum;
}
KERNEL gemm_tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float s[16][16], t[16][16];
  const int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    s[ty][tx] = a[y * n + k + tx], t[ty][tx] = b[(k + ty) * n + x];
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum += s[ty][j] * t[j][tx];
    __syncthreads();
  }
  c[y * n + x] = sum;
}
KERNEL gemm_registers(const float* a, const float* b, float* c,
                      int n) {  // 64 x 64 a block of 256, 4 x 4 a thread
  __shared__ float s[16][64], t[16][64];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    for (int j = threadIdx.x; j < 1024; j += 256) {
      s[j % 16][j / 16] = a[(row + j / 16) * n + k + j % 16];
      t[j / 64][j % 64] = b[(k + j / 64) * n + column + j % 64];
    }
    __syncthreads();
    for (int j = 0; j < 16; ++j) {
      float u[4], v[4];
      for (int e = 0; e < 4; ++e) u[e] = s[j][ty * 4 + e], v[e] = t[j][tx * 4 + e];
      for (int e = 0; e < 4; ++e)
        for (int f = 0; f < 4; ++f) sum[e][f] += u[e] * v[f];
    }
    __syncthreads();
  }
  for (int e = 0; e < 4; ++e)
    for (int f = 0; f < 4; ++f) c[(row + ty * 4 + e) * n + column + tx * 4 + f] = sum[e][f];
}
KERNEL gemm_mma(const unsigned* a, const unsigned* b, float* c,
                int n) {  // fp16, 16 x 8 a warp, operands from L1 and L2
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32,
            words = n / 2;
  const int row = warp / (n / 8) * 16 + lane / 4, column = warp % (n / 8) * 8 + lane / 4;
  float d[4] = {};
  for (int k = 0; k < words; k += 8) {
    const unsigned a0 = a[row * words + k + lane % 4], a1 = a[(row + 8) * words + k + lane % 4];
    const unsigned a2 = a[row * words + k + 4 + lane % 4],
                   a3 = a[(row + 8) * words + k + 4 + lane % 4];
    const unsigned b0 = b[column * words + k + lane % 4], b1 = b[column * words + k + 4 + lane % 4];
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  const int out = warp % (n / 8) * 8 + lane % 4 * 2;
  c[row * n + out] = d[0], c[row * n + out + 1] = d[1], c[(row + 8) * n + out] = d[2],
              c[(row + 8) * n + out + 1] = d[3];
}
KERNEL copy_async(const float4* x, float4* y, int steps) {  // two stages of cp.async
  __shared__ float4 s[2][256];
  const int t = threadIdx.x, first = blockIdx.x * steps * 256 + t;
  const unsigned at = (unsigned)__cvta_generic_to_shared(&s[0][t]);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\ncp.async.commit_group;" ::"r"(at),
               "l"(x + first)
               : "memory");
  for (int k = 0; k < steps; ++k) {
    if (k + 1 < steps)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + ((k + 1) & 1) * 4096),
                   "l"(x + first + (k + 1) * 256)
                   : "memory");
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    const float4 v = s[k & 1][255 - t];
    y[first + k * 256] = v;
    __syncthreads();
  }
}
KERNEL fft_radix2(const float2* x, float2* y) {  // 1024 points a block of 512
  __shared__ float2 s[1024];
  const int t = threadIdx.x;
  for (int k = t; k < 1024; k += 512) s[__brev(k) >> 22] = x[blockIdx.x * 1024 + k];
  for (int size = 1; size < 1024; size *= 2) {
    __syncthreads();
    const int at = t / size * 2 * size + t % size;
    float sine, cosine;
    __sincosf(-3.14159265f * (t % size) / size, &sine, &cosine);
    const float2 a = s[at], b = s[at + size];
    const float2 w = {b.x * cosine - b.y * sine, b.x * sine + b.y * cosine};
    s[at] = make_float2(a.x + w.x, a.y + w.y);
    s[at + size] = make_float2(a.x - w.x, a.y - w.y);
  }
  __syncthreads();
  for (int k = t; k < 1024; k += 512) y[blockIdx.x * 1024 + k] = s[k];
}
KERNEL rope(float2* x, const float2* table, int half) {  // a head a block, `half` pairs
  const size_t at = (size_t)blockIdx.x * half + threadIdx.x;
  const float2 v = x[at], w = table[(blockIdx.x / 32 & 1023) * half + threadIdx.x];
  x[at] = make_float2(v.x * w.x - v.y * w.y, v.x * w.y + v.y * w.x);
}
