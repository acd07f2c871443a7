// The other part of ordinary_three.cu.
#define KERNEL extern "C" __global__ void
#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x;
#define PIXEL \
  const int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;

KERNEL pool_2x2(const float2* x, float* y, int width) {  // width: of y
  PIXEL const float2 a = x[2 * r * width + c], b = x[(2 * r + 1) * width + c];
  y[r * width + c] = fmaxf(fmaxf(a.x, a.y), fmaxf(b.x, b.y));
}
KERNEL upsample(const float* x, float* y, int width) {  // bilinear, to twice the size; width: of x
  PIXEL const float fx = 0.5f * c, fy = 0.5f * r;
  const int x0 = (int)fx, y0 = (int)fy;
  const float u = fx - x0, v = fy - y0;
  const float* p = x + y0 * width + x0;
  y[r * 2 * (width - 1) + c] =
      (1 - v) * ((1 - u) * p[0] + u * p[1]) + v * ((1 - u) * p[width] + u * p[width + 1]);
}
KERNEL image_to_columns(const float* x, float* y, int width, int pixels) {  // 3 x 3
  THREAD const int r = i / (width - 2), c = i % (width - 2);
  for (int k = 0; k < 9; ++k) y[k * pixels + i] = x[(r + k / 3) * width + c + k % 3];
}
KERNEL convolve_channels(const float* x, const float* w, float* y, int width,
                         int plane) {  // 3 x 3, 8 channels
  PIXEL float sum = 0;
  for (int k = 0; k < 8; ++k)
#pragma unroll
    for (int j = 0; j < 9; ++j)
      sum += w[k * 9 + j] * x[k * plane + (r + j / 3) * width + c + j % 3];
  y[r * (width - 2) + c] = sum;
}
KERNEL table_lookup(const uint4* x, const float* table, float4* y) {
  THREAD const uint4 v = x[i];
  y[i] = make_float4(table[v.x & 255], table[v.y & 255], table[v.z & 255], table[v.w & 255]);
}
KERNEL shared_permute(const float* x, const unsigned* order, float* y) {
  __shared__ float s[1024];
  const int t = threadIdx.x, first = blockIdx.x * 1024;
  for (int k = t; k < 1024; k += 256) s[k] = x[first + k];
  __syncthreads();
  for (int k = t; k < 1024; k += 256) y[first + k] = s[order[k] & 1023];
}
KERNEL again_and_again(const float4* x, float4* y, int rounds) {  // 1 MiB, by every block
  float4 sum = {};
  for (int k = 0; k < rounds; ++k) {
    const float4 v = x[(k * 256 + threadIdx.x + blockIdx.x * 1024) & 0xffff];
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  y[blockIdx.x * 256 + threadIdx.x] = sum;
}
KERNEL float_bins(const unsigned* x, float* y) { THREAD atomicAdd(y + (x[i] & 1023), 1.5f); }
KERNEL largest_of_groups(const unsigned* x, unsigned* y) { THREAD atomicMax(y + i / 64, x[i]); }
KERNEL aggregated_counters(const unsigned* x, unsigned* y, int steps) {
  __shared__ unsigned s[16];
  if (threadIdx.x < 16) s[threadIdx.x] = 0;
  __syncthreads();
  for (int k = 0; k < steps; ++k) {
    const unsigned v = x[(k * gridDim.x + blockIdx.x) * 256 + threadIdx.x] & 15;
    const unsigned same = __match_any_sync(~0u, v);
    if ((same & ((1u << threadIdx.x % 32) - 1)) == 0) atomicAdd(s + v, __popc(same));
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(y + threadIdx.x, s[threadIdx.x]);
}
KERNEL random_walk(const uint2* edges, unsigned* y, int steps, unsigned mask) {
  THREAD unsigned at = i * 31, s = i;
  for (int k = 0; k < steps; ++k) {
    const uint2 e = edges[at & mask];
    s = s * 1664525u + 1013904223u;
    at = s & 0x10000 ? e.x : e.y;
  }
  y[i] = at;
}
KERNEL transpose_add(const float* x, float* y, int n) {  // 64 x 64 tiles of a block of 256
  __shared__ float s[64][65];
  const int t = threadIdx.x, c = blockIdx.x * 64, r = blockIdx.y * 64;
  for (int k = t; k < 4096; k += 256) s[k / 64][k % 64] = x[(r + k / 64) * n + c + k % 64];
  __syncthreads();
  for (int k = t; k < 4096; k += 256) y[(c + k / 64) * n + r + k % 64] += s[k % 64][k / 64];
}
KERNEL gemv_int8(const int4* a, const int4* x, int* y, int words4) {  // a row a warp
  THREAD const int row = i / 32, lane = threadIdx.x % 32;
  int sum = 0;
  for (int k = lane; k < words4; k += 32) {
    const int4 v = a[row * words4 + k], w = x[k];
    sum = __dp4a(v.x, w.x, __dp4a(v.y, w.y, __dp4a(v.z, w.z, __dp4a(v.w, w.w, sum))));
  }
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  if (lane == 0) y[row] = sum;
}
KERNEL gemm_2x2(const float* a, const float* b, float* c, int n) {  // 32 x 32 a block of 16 x 16
  __shared__ float s[32][33], t[32][33];
  const int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 32, y = blockIdx.y * 32;
  float d00 = 0, d01 = 0, d10 = 0, d11 = 0;
  for (int k = 0; k < n; k += 32) {
    for (int e = 0; e < 2; ++e)
      for (int f = 0; f < 2; ++f) {
        s[ty + 16 * e][tx + 16 * f] = a[(y + ty + 16 * e) * n + k + tx + 16 * f];
        t[ty + 16 * e][tx + 16 * f] = b[(k + ty + 16 * e) * n + x + tx + 16 * f];
      }
    __syncthreads();
    for (int j = 0; j < 32; ++j) {
      const float u = s[ty][j], v = s[ty + 16][j], p = t[j][tx], q = t[j][tx + 16];
      d00 += u * p, d01 += u * q, d10 += v * p, d11 += v * q;
    }
    __syncthreads();
  }
  float* out = c + (y + ty) * n + x + tx;
  out[0] = d00, out[16] = d01, out[16 * n] = d10, out[16 * n + 16] = d11;
}
KERNEL distances(const float4* points, const float4* centres, unsigned* y,
                 int n) {  // the nearest centre
  THREAD const float4 p = points[i];
  float best = 1e30f;
  unsigned at = 0;
  for (int k = 0; k < n; ++k) {
    const float4 q = centres[k];
    const float a = p.x - q.x, b = p.y - q.y, c = p.z - q.z, d = a * a + b * b + c * c;
    if (d < best) best = d, at = k;
  }
  y[i] = at;
}
KERNEL mma_scores(const unsigned* q, const unsigned* keys, float* y,
                  int n) {  // 16 queries a warp, 64 of k, exp of all
  THREAD const int warp = i / 32, lane = threadIdx.x % 32;
  unsigned u[4][4];
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 4; ++j)
      u[k][j] = q[(warp * 16 + lane / 4 + j % 2 * 8) * 32 + k * 8 + j / 2 * 4 + lane % 4];
  float sum0 = 0, sum1 = 0;
  for (int t = 0; t < n; t += 8) {
    float d[4] = {};
    for (int k = 0; k < 4; ++k) {
      const unsigned v0 = keys[(t + lane / 4) * 32 + k * 8 + lane % 4],
                     v1 = keys[(t + lane / 4) * 32 + k * 8 + 4 + lane % 4];
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(u[k][0]), "r"(u[k][1]), "r"(u[k][2]), "r"(u[k][3]), "r"(v0), "r"(v1));
    }
    sum0 += __expf(d[0]) + __expf(d[1]), sum1 += __expf(d[2]) + __expf(d[3]);
  }
  y[warp * 64 + lane] = sum0, y[warp * 64 + 32 + lane] = sum1;
}
KERNEL prefix_maximum(const float4* x, float4* y) {  // along 128 values, a warp
  THREAD float4 v = x[i];
  v.y = fmaxf(v.y, v.x), v.z = fmaxf(v.z, v.y), v.w = fmaxf(v.w, v.z);
  float top = v.w;
  for (int k = 1; k < 32; k *= 2) {
    const float o = __shfl_up_sync(~0u, top, k);
    if (threadIdx.x % 32 >= k) top = fmaxf(top, o);
  }
  const float before = __shfl_up_sync(~0u, top, 1);
  if (threadIdx.x % 32 > 0)
    v.x = fmaxf(v.x, before), v.y = fmaxf(v.y, before), v.z = fmaxf(v.z, before),
    v.w = fmaxf(v.w, before);
  y[i] = v;
}
KERNEL ring_sum(const float* x, float* y,
                int rounds) {  // each thread reads its neighbour's word, round by round
  __shared__ float s[2][512];
  const int t = threadIdx.x;
  s[0][t] = x[blockIdx.x * 512 + t];
  __syncthreads();
  for (int k = 0; k < rounds; ++k) {
    s[(k + 1) & 1][t] = 0.5f * (s[k & 1][t] + s[k & 1][(t + 33) & 511]);
    __syncthreads();
  }
  y[blockIdx.x * 512 + t] = s[rounds & 1][t];
}
KERNEL strided_rows(const float* x, float* y, int pitch,
                    int columns) {  // the first columns of each row
  y[blockIdx.x * columns + threadIdx.x] = x[(size_t)blockIdx.x * pitch + threadIdx.x];
}
KERNEL partial_products(const float* x, float* y, int n, int threads) {
  THREAD float p = 1;
  for (int k = 0; k < n; ++k) {
    p *= x[k * threads + i];
    if (p > 1e6f) p = 1;
  }
  y[i] = p;
}
