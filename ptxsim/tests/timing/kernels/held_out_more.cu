// The other part of held_out.cu.
#define KERNEL extern "C" __global__ void
#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x;

__constant__ float kWeights[256] = {1, 2, 3};

KERNEL constant_table(const float* x, float* y,
                      int n) {  // every lane reads the same word of constant memory
  THREAD float v = x[i], sum = 0;
  for (int k = 0; k < n; ++k) sum = sum * v + kWeights[k & 255];
  y[i] = sum;
}
KERNEL spmv_columns(const unsigned* columns, const float* values, const float* x, float* y,
                    int per_row, int rows) {
  THREAD float sum = 0;
  for (int k = 0; k < per_row; ++k) sum += values[k * rows + i] * x[columns[k * rows + i] & 0xffff];
  y[i] = sum;
}
KERNEL scatter_add(const unsigned* to, const float* x, float* y, unsigned mask) {
  THREAD atomicAdd(y + (to[i] & mask), x[i]);
}
KERNEL degrees(const unsigned* edges, unsigned* y, unsigned mask) {
  THREAD atomicAdd(y + (edges[i] & mask), 1);
}
KERNEL pointer_jumps(const unsigned* parent, unsigned* y, unsigned mask) {
  THREAD unsigned p = parent[i] & mask;
  p = parent[p] & mask, p = parent[p] & mask;
  y[i] = p;
}
KERNEL four_gathers(const float* x, float* y, unsigned mask) {
  THREAD unsigned h = i * 2654435761u;
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) h = h * 1664525u + 1013904223u, sum += x[h >> 8 & mask];
  y[i] = sum;
}
KERNEL bloom(const unsigned* x, const unsigned* bits, unsigned* y, unsigned mask) {
  THREAD unsigned h = x[i], found = 1;
  for (int k = 0; k < 3; ++k)
    h *= 0x9e3779b1u, h ^= h >> 15, found &= bits[h >> 5 & mask] >> (h & 31);
  y[i] = found;
}
KERNEL match_keys(const uint4* x, const uint4* keys, unsigned* y, int n) {
  THREAD const uint4 v = x[i];
  unsigned at = ~0u;
  for (int k = 0; k < n; ++k) {
    const uint4 w = keys[k];
    if (v.x == w.x && v.y == w.y && v.z == w.z && v.w == w.w) at = k;
  }
  y[i] = at;
}
KERNEL spheres(const float4* rays, const float4* list, float* y, int n) {
  __shared__ float4 s[64];
  if (threadIdx.x < n) s[threadIdx.x] = list[threadIdx.x];
  __syncthreads();
  THREAD const float4 d = rays[i];
  float best = 1e30f;
  for (int k = 0; k < n; ++k) {
    const float4 c = s[k];
    const float b = d.x * c.x + d.y * c.y + d.z * c.z,
                q = b * b - (c.x * c.x + c.y * c.y + c.z * c.z) + c.w * c.w;
    if (q > 0) best = fminf(best, b - __fsqrt_rn(q));
  }
  y[i] = best;
}
KERNEL triangle_product(const float* a, const float* x, float* y,
                        int n) {  // a row a warp, from the diagonal on
  THREAD const int row = i / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (int k = row / 32 * 32 + lane; k < n; k += 32) sum += k >= row ? a[row * n + k] * x[k] : 0;
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  if (lane == 0) y[row] = sum;
}
KERNEL rank_one(float4* a, const float* x, const float4* y, int columns4) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  const float u = x[r];
  const float4 v = y[c];
  float4 w = a[r * columns4 + c];
  w.x += u * v.x, w.y += u * v.y, w.z += u * v.z, w.w += u * v.w;
  a[r * columns4 + c] = w;
}
KERNEL gemm_8x8(const float* a, const float* b, float* c,
                int n) {  // 128 x 128 a block of 256, 8 x 8 a thread; a is transposed
  __shared__ float4 s[8][32], t[8][32];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, load_k = threadIdx.x / 32,
            load_x = threadIdx.x % 32;
  const int row = blockIdx.y * 128, column = blockIdx.x * 128;
  float sum[8][8] = {};
  for (int k = 0; k < n; k += 8) {
    s[load_k][load_x] = *(const float4*)(a + (k + load_k) * n + row + 4 * load_x);
    t[load_k][load_x] = *(const float4*)(b + (k + load_k) * n + column + 4 * load_x);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float4 u0 = s[j][ty], u1 = s[j][16 + ty], v0 = t[j][tx], v1 = t[j][16 + tx];
      const float u[8] = {u0.x, u0.y, u0.z, u0.w, u1.x, u1.y, u1.z, u1.w},
                  v[8] = {v0.x, v0.y, v0.z, v0.w, v1.x, v1.y, v1.z, v1.w};
#pragma unroll
      for (int e = 0; e < 8; ++e)
#pragma unroll
        for (int f = 0; f < 8; ++f) sum[e][f] += u[e] * v[f];
    }
    __syncthreads();
  }
#pragma unroll
  for (int e = 0; e < 8; ++e)
#pragma unroll
    for (int f = 0; f < 8; ++f)
      c[(row + ty * 4 + e % 4 + e / 4 * 64) * n + column + tx * 4 + f % 4 + f / 4 * 64] = sum[e][f];
}
KERNEL symmetric_product(const float4* x, float* y,
                         int rows) {  // y = x' x of 64 columns, a part of the rows a block of 256
  __shared__ float4 s[16][16];
  const int t = threadIdx.x, a = t % 16, b = t / 16;
  float sum[4][4] = {};
  for (int k = 0; k < rows; k += 16) {
    s[t / 16][t % 16] = x[(blockIdx.x * rows + k + t / 16) * 16 + t % 16];
    __syncthreads();
    for (int j = 0; j < 16; ++j) {
      const float4 u = s[j][a], v = s[j][b];
      sum[0][0] += u.x * v.x, sum[0][1] += u.x * v.y, sum[0][2] += u.x * v.z,
          sum[0][3] += u.x * v.w;
      sum[1][0] += u.y * v.x, sum[1][1] += u.y * v.y, sum[1][2] += u.y * v.z,
          sum[1][3] += u.y * v.w;
      sum[2][0] += u.z * v.x, sum[2][1] += u.z * v.y, sum[2][2] += u.z * v.z,
          sum[2][3] += u.z * v.w;
      sum[3][0] += u.w * v.x, sum[3][1] += u.w * v.y, sum[3][2] += u.w * v.z,
          sum[3][3] += u.w * v.w;
    }
    __syncthreads();
  }
  for (int e = 0; e < 4; ++e)
    for (int f = 0; f < 4; ++f) y[blockIdx.x * 4096 + (4 * a + e) * 64 + 4 * b + f] = sum[e][f];
}
KERNEL counters_of_threads(const unsigned* x, unsigned* y,
                           int steps) {  // 16 bins for each thread, in shared memory
  __shared__ unsigned char s[16][256];
  const int t = threadIdx.x;
  for (int k = 0; k < 16; ++k) s[k][t] = 0;
  for (int k = 0; k < steps; ++k) {
    const unsigned v = x[(k * gridDim.x + blockIdx.x) * 256 + t];
    ++s[v & 15][t], ++s[v >> 8 & 15][t];
  }
  __syncthreads();
  if (t < 16) {
    unsigned sum = 0;
    for (int k = 0; k < 256; ++k) sum += s[t][k];
    y[blockIdx.x * 16 + t] = sum;
  }
}
KERNEL row_prefix(const float* x, float* y, int columns) {  // a warp a row, 32 at a time
  THREAD const int row = i / 32, lane = threadIdx.x % 32;
  float before = 0;
  for (int k = lane; k < columns; k += 32) {
    float v = x[row * columns + k];
    for (int j = 1; j < 32; j *= 2) {
      const float o = __shfl_up_sync(~0u, v, j);
      if (lane >= j) v += o;
    }
    v += before;
    y[row * columns + k] = v;
    before = __shfl_sync(~0u, v, 31);
  }
}
KERNEL gemm_bf16(const unsigned* a, const unsigned* b, float* c,
                 int n) {                    // 32 x 32 a block of 4 warps, through shared memory
  __shared__ unsigned s[32][17], t[32][17];  // 32 of k
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, words = n / 2;
  float d[2][4] = {};
  for (int k = 0; k < words; k += 16) {
    for (int j = threadIdx.x; j < 512; j += 128) {
      s[j / 16][j % 16] = a[(blockIdx.y * 32 + j / 16) * words + k + j % 16];
      t[j / 16][j % 16] = b[(blockIdx.x * 32 + j / 16) * words + k + j % 16];
    }
    __syncthreads();
    for (int h = 0; h < 16; h += 8) {
      const int r = warp / 2 * 16 + lane / 4, q = h + lane % 4;
      for (int e = 0; e < 2; ++e) {
        const int x = warp % 2 * 16 + e * 8 + lane / 4;
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+f"(d[e][0]), "+f"(d[e][1]), "+f"(d[e][2]), "+f"(d[e][3])
            : "r"(s[r][q]), "r"(s[r + 8][q]), "r"(s[r][q + 4]), "r"(s[r + 8][q + 4]), "r"(t[x][q]),
              "r"(t[x][q + 4]));
      }
    }
    __syncthreads();
  }
  const int r = blockIdx.y * 32 + warp / 2 * 16 + lane / 4;
  for (int e = 0; e < 2; ++e) {
    const int x = blockIdx.x * 32 + warp % 2 * 16 + e * 8 + lane % 4 * 2;
    c[r * n + x] = d[e][0], c[r * n + x + 1] = d[e][1], c[(r + 8) * n + x] = d[e][2],
              c[(r + 8) * n + x + 1] = d[e][3];
  }
}
KERNEL copy_tiles(const float4* x, float4* y, int width4) {  // 16 x 16 of 16 bytes through cp.async
  __shared__ float4 s[16][16];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16,
            at = (blockIdx.y * 16 + ty) * width4 + blockIdx.x * 16 + tx;
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;" ::
          "r"((unsigned)__cvta_generic_to_shared(&s[ty][tx])),
      "l"(x + at)
      : "memory");
  __syncthreads();
  y[at] = s[15 - ty][tx];
}
KERNEL rotate_bytes(const unsigned char* x, unsigned char* y, int n) {  // by a quarter
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  y[c * n + n - 1 - r] = x[r * n + c];
}
KERNEL popular_word(const unsigned* x, unsigned* y,
                    int steps) {  // xor and counts, by a warp's reduction
  unsigned v = 0;
  for (int k = 0; k < steps; ++k)
    v += __reduce_add_sync(~0u, x[(k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] & 7);
  if (threadIdx.x % 32 == 0) y[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = v;
}
KERNEL dot_products_half(const uint4* a, const uint4* b, float* y) {  // 256 halves, a warp each
  THREAD const uint4 u = a[i], v = b[i];
  float sum = 0;
  const unsigned p[4] = {u.x, u.y, u.z, u.w}, q[4] = {v.x, v.y, v.z, v.w};
  for (int k = 0; k < 4; ++k) {
    float l, h, m, o;
    asm("{.reg .f16 a, b;\n mov.b32 {a, b}, %2;\n cvt.f32.f16 %0, a;\n cvt.f32.f16 %1, b;}"
        : "=f"(l), "=f"(h)
        : "r"(p[k]));
    asm("{.reg .f16 a, b;\n mov.b32 {a, b}, %2;\n cvt.f32.f16 %0, a;\n cvt.f32.f16 %1, b;}"
        : "=f"(m), "=f"(o)
        : "r"(q[k]));
    sum += l * m + h * o;
  }
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  if (threadIdx.x % 32 == 0) y[i / 32] = sum;
}
