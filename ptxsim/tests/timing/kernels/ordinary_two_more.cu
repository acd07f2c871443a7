// The other part of ordinary_two.cu.
#define KERNEL extern "C" __global__ void
#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x;

KERNEL blur(const float* x, float* y, int width) {  // 3 x 3, through a tile with a border
  __shared__ float s[18][34];
  const int tx = threadIdx.x, ty = threadIdx.y, c = blockIdx.x * 32, r = blockIdx.y * 16;
  for (int k = ty * 32 + tx; k < 18 * 34; k += 512)
    s[k / 34][k % 34] = x[(r + k / 34) * width + c + k % 34];
  __syncthreads();
  float sum = 0;
  for (int dy = 0; dy < 3; ++dy)
    for (int dx = 0; dx < 3; ++dx) sum += s[ty + dy][tx + dx];
  y[(r + ty) * width + c + tx] = sum / 9;
}
KERNEL relax(const float* x, float* y, int n) {  // rounds in shared memory
  __shared__ float s[2][258];
  const int t = threadIdx.x + 1;
  s[0][t] = x[blockIdx.x * 256 + threadIdx.x];
  if (threadIdx.x < 2) s[0][threadIdx.x * 257] = s[1][threadIdx.x * 257] = 0;
  __syncthreads();
  for (int k = 0; k < n; ++k) {
    s[1 - (k & 1)][t] = 0.25f * (s[k & 1][t - 1] + s[k & 1][t + 1]) + 0.5f * s[k & 1][t];
    __syncthreads();
  }
  y[blockIdx.x * 256 + threadIdx.x] = s[n & 1][t];
}
KERNEL convolve(const float* x, const float* w, float* y,
                int length) {  // 7 taps, a channel a block row
  const int i = blockIdx.x * blockDim.x + threadIdx.x, channel = blockIdx.y;
  float sum = 0;
  for (int k = 0; k < 7; ++k) sum += w[channel * 7 + k] * x[channel * (length + 8) + i + k];
  y[channel * length + i] = sum;
}
KERNEL life(const unsigned char* x, unsigned char* y, int width) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x + 1,
            r = blockIdx.y * blockDim.y + threadIdx.y + 1;
  int n = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) n += x[(r + dy) * width + c + dx] & 1;
  y[r * width + c] = n == 3 || (n == 4 && (x[r * width + c] & 1));
}
KERNEL heat(const float4* x, float4* y, int width4) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x,
            r = blockIdx.y * blockDim.y + threadIdx.y + 1;
  const float4 a = x[(r - 1) * width4 + c], b = x[r * width4 + c], d = x[(r + 1) * width4 + c];
  y[r * width4 + c] =
      make_float4(0.25f * (a.x + d.x) + 0.5f * b.x, 0.25f * (a.y + d.y) + 0.5f * b.y,
                  0.25f * (a.z + d.z) + 0.5f * b.z, 0.25f * (a.w + d.w) + 0.5f * b.w);
}
KERNEL shared_walk(const unsigned* next, unsigned* y, int n) {
  __shared__ unsigned s[2048];
  for (int k = threadIdx.x; k < 2048; k += blockDim.x) s[k] = next[k];
  __syncthreads();
  unsigned p = threadIdx.x * 5;
  for (int k = 0; k < n; ++k) p = s[p & 2047];
  y[blockIdx.x * blockDim.x + threadIdx.x] = p;
}
KERNEL neighbours(const unsigned* edges, const float* value, float* y, int degree,
                  unsigned mask) {  // a vertex a warp
  const int vertex = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float top = 0;
  for (int k = lane; k < degree; k += 32)
    top = fmaxf(top, value[edges[vertex * degree + k] & mask]);
  for (int k = 16; k > 0; k /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, k));
  if (lane == 0) y[vertex] = top;
}
KERNEL tree_walk(const uint2* nodes, const unsigned* x, unsigned* y,
                 int depth) {  // a node: limit, value
  THREAD const unsigned v = x[i];
  unsigned at = 1, sum = 0;
  for (int k = 0; k < depth; ++k) {
    const uint2 node = nodes[at];
    sum += node.y;
    at = 2 * at + (v > node.x ? 1 : 0);
  }
  y[i] = sum;
}
KERNEL gather_rows(const unsigned* ids, const float* table, float* y,
                   int columns) {  // a row a block
  const unsigned row = ids[blockIdx.x] & 0xffff;
  for (int k = threadIdx.x; k < columns; k += blockDim.x)
    y[blockIdx.x * columns + k] = 2 * table[row * columns + k];
}
KERNEL merge_sort_step(const unsigned* x, unsigned* y) {  // odd and even places, 256 a block
  __shared__ unsigned s[256];
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  for (int k = 0; k < 256; ++k) {
    __syncthreads();
    if ((t & 1) == (k & 1) && t < 255 && s[t] > s[t + 1]) {
      const unsigned v = s[t];
      s[t] = s[t + 1], s[t + 1] = v;
    }
  }
  __syncthreads();
  y[blockIdx.x * 256 + t] = s[t];
}
KERNEL small_products(const float4* a, const float4* b, float4* c) {  // 4 x 4 each, a row a thread
  THREAD const float4 u = a[i];
  const int first = i & ~3;
  float4 sum = {};
  const float* e = &u.x;
  for (int k = 0; k < 4; ++k) {
    const float4 v = b[first + k];
    sum.x += e[k] * v.x, sum.y += e[k] * v.y, sum.z += e[k] * v.z, sum.w += e[k] * v.w;
  }
  c[i] = sum;
}
KERNEL gemv_columns(const float* a, const float* x, float* y, int rows,
                    int columns) {  // y = x a, 32 parts of the rows
  __shared__ float s[8][32];
  const int c = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int k = threadIdx.y; k < rows; k += 8) sum += a[k * columns + c] * x[k];
  s[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int k = 1; k < 8; ++k) sum += s[k][threadIdx.x];
    y[c] = sum;
  }
}
KERNEL shortest_paths_step(float* d, int n, int k) {  // Floyd and Warshall
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  d[y * n + x] = fminf(d[y * n + x], d[y * n + k] + d[k * n + x]);
}
KERNEL attention_scores(const float4* q, const float4* keys, float* y,
                        int n) {  // 64 values, a query a block
  __shared__ float4 s[16];
  if (threadIdx.x < 16) s[threadIdx.x] = q[blockIdx.x * 16 + threadIdx.x];
  __syncthreads();
  for (int k = threadIdx.x; k < n; k += blockDim.x) {
    float sum = 0;
    for (int j = 0; j < 16; ++j) {
      const float4 a = s[j], b = keys[k * 16 + j];
      sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    y[blockIdx.x * n + k] = sum * 0.125f;
  }
}
KERNEL gemm_int8(const int* a, const int* b, int* c,
                 int words) {  // 32 x 32 a block of 32 x 8, dp4a
  __shared__ int s[32][33], t[32][33];
  const int tx = threadIdx.x, ty = threadIdx.y;
  int sum[4] = {};
  for (int k = 0; k < words; k += 32) {
    for (int r = ty; r < 32; r += 8) {
      s[r][tx] = a[(blockIdx.y * 32 + r) * words + k + tx];
      t[r][tx] = b[(blockIdx.x * 32 + r) * words + k + tx];
    }
    __syncthreads();
    for (int j = 0; j < 32; ++j)
      for (int e = 0; e < 4; ++e) sum[e] = __dp4a(s[ty + 8 * e][j], t[tx][j], sum[e]);
    __syncthreads();
  }
  for (int e = 0; e < 4; ++e)
    c[(blockIdx.y * 32 + ty + 8 * e) * gridDim.x * 32 + blockIdx.x * 32 + tx] = sum[e];
}
KERNEL gemm_ldmatrix(const uint4* a, const uint4* b, float* c,
                     int n) {           // fp16, 64 x 32 a block of 4 warps
  __shared__ uint4 s[64][5], t[32][5];  // 32 of k, padded
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row8 = n / 8;
  float d[4][4] = {};
  for (int k = 0; k < row8; k += 4) {
    for (int j = threadIdx.x; j < 256; j += 128)
      s[j / 4][j % 4] = a[(blockIdx.y * 64 + j / 4) * row8 + k + j % 4];
    t[threadIdx.x / 4][threadIdx.x % 4] =
        b[(blockIdx.x * 32 + threadIdx.x / 4) * row8 + k + threadIdx.x % 4];
    __syncthreads();
    for (int h = 0; h < 2; ++h) {
      unsigned u[4], v[8];
      const unsigned at =
          (unsigned)__cvta_generic_to_shared(&s[warp * 16 + lane % 16][h * 2 + lane / 16]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3])
                   : "r"(at));
      for (int e = 0; e < 2; ++e) {
        const unsigned bt = (unsigned)__cvta_generic_to_shared(
            &t[e * 16 + lane % 8 + lane / 16 * 8][h * 2 + lane / 8 % 2]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(v[4 * e]), "=r"(v[4 * e + 1]), "=r"(v[4 * e + 2]), "=r"(v[4 * e + 3])
                     : "r"(bt));
      }
      for (int e = 0; e < 4; ++e)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+f"(d[e][0]), "+f"(d[e][1]), "+f"(d[e][2]), "+f"(d[e][3])
            : "r"(u[0]), "r"(u[1]), "r"(u[2]), "r"(u[3]), "r"(v[2 * e]), "r"(v[2 * e + 1]));
    }
    __syncthreads();
  }
  float* out = c + (blockIdx.y * 64 + warp * 16 + lane / 4) * n + blockIdx.x * 32 + lane % 4 * 2;
  for (int e = 0; e < 4; ++e) {
    out[e * 8] = d[e][0], out[e * 8 + 1] = d[e][1];
    out[8 * n + e * 8] = d[e][2], out[8 * n + e * 8 + 1] = d[e][3];
  }
}
KERNEL products_double(const double* a, const double* b, double* c, int n) {  // 16 x 16 tiles
  __shared__ double s[16][17], t[16][17];
  const int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
  double sum = 0;
  for (int k = 0; k < n; k += 16) {
    s[ty][tx] = a[y * n + k + tx], t[ty][tx] = b[(k + ty) * n + x];
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum += s[ty][j] * t[j][tx];
    __syncthreads();
  }
  c[y * n + x] = sum;
}
KERNEL bins(const float* x, unsigned* y, int steps) {  // 64 of them, a copy for each warp
  __shared__ unsigned s[8][64];
  for (int k = threadIdx.x; k < 512; k += 256) s[k / 64][k % 64] = 0;
  __syncthreads();
  for (int k = 0; k < steps; ++k) {
    const unsigned v = __float_as_uint(x[(k * gridDim.x + blockIdx.x) * 256 + threadIdx.x]);
    atomicAdd(&s[threadIdx.x / 32][v >> 7 & 63], 1);
  }
  __syncthreads();
  if (threadIdx.x < 64) {
    unsigned sum = 0;
    for (int k = 0; k < 8; ++k) sum += s[k][threadIdx.x];
    atomicAdd(y + threadIdx.x, sum);
  }
}
KERNEL transpose_vectors(const float4* x, float4* y, int rows,
                         int columns) {  // of 16 bytes, through L1 and L2 alone
  const int c = blockIdx.x * 8 + threadIdx.x % 8, r = blockIdx.y * 32 + threadIdx.x / 8;
  y[c * rows + r] = x[r * columns + c];
}
