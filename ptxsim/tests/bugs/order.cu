// Public bugs of order, each made again as small as it goes: bugs.json names where each was
// reported.
#include "bug.cuh"

#define KERNEL extern "C" __global__ void

// A sum of a block: the first step reads what another warp writes.
KERNEL reduce_first(const float* x, float* y) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  REPAIR(__syncthreads();)
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = s[0];
}

// Thread 0 adds up a round's products while others write those of the next one.
KERNEL block_gemv(const float* a, const float* x, float* y, int rows) {
  __shared__ float s[128];
  for (int r = 0; r < rows; ++r) {
    s[threadIdx.x] = a[r * 128 + threadIdx.x] * x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
      float sum = 0;
      for (int k = 0; k < 128; ++k) sum += s[k];
      y[r] = sum;
    }
    REPAIR(__syncthreads();)
  }
}

// A tile is filled again while slower warps read it.
KERNEL tiles_of_surfels(const float4* surfels, float* image, int n) {
  __shared__ float4 tile[64];
  float sum = 0;
  for (int first = 0; first < n; first += 64) {
    if (threadIdx.x < 64) tile[threadIdx.x] = surfels[first + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < 64; ++k) sum += tile[k].x * tile[k].w;
    REPAIR(__syncthreads();)
  }
  image[threadIdx.x] = sum;
}

// One thread takes room for all; the others read where it begins.
KERNEL room_for_triangles(unsigned* count, unsigned* out) {
  __shared__ unsigned first;
  if (threadIdx.x == 0) first = atomicAdd(count, 128u);
  REPAIR(__syncthreads();)
  out[first + threadIdx.x] = threadIdx.x;
}

// Neighbours are compared through one array in every round, with one barrier in it.
KERNEL unique_in_rounds(const unsigned* x, unsigned* y, int rounds) {
  __shared__ unsigned s[128];
  unsigned unique = 0;
  for (int k = 0; k < rounds; ++k) {
    const unsigned v = x[k * 128 + threadIdx.x];
    s[threadIdx.x] = v;
    __syncthreads();
    unique += threadIdx.x == 0 || s[threadIdx.x - 1] != v;
    REPAIR(__syncthreads();)
  }
  y[threadIdx.x] = unique;
}

// Bins are cleared, and added to before all of them are.
KERNEL orientations(const unsigned* x, unsigned* y) {
  __shared__ unsigned bins[64];
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  REPAIR(__syncthreads();)
  atomicAdd(bins + (x[threadIdx.x] & 63), 1u);
  __syncthreads();
  if (threadIdx.x < 64) y[threadIdx.x] = bins[threadIdx.x];
}

// Lanes of a warp pass a word on through shared memory, as if they went in step.
KERNEL levels_of_a_warp(const unsigned* x, unsigned* y) {
  __shared__ unsigned levels[32];
  const int lane = threadIdx.x;
  levels[lane] = x[lane];
  REPAIR(__syncwarp();)
  if (lane % 8 == 0) levels[lane] ^= levels[lane + 4];
  REPAIR(__syncwarp();)
  if (lane % 16 == 0) levels[lane] ^= levels[lane + 8];
  REPAIR(__syncwarp();)
  y[lane] = levels[lane / 16 * 16];
}

// A warp's sum in shared memory: one lane writes it, all read it.
KERNEL reduce_in_a_warp(const float* x, float* y) {
  __shared__ float s[32];
  float v = x[threadIdx.x];
  for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(~0u, v, k);
  if (threadIdx.x == 0) s[0] = v;
  REPAIR(__syncwarp();)
  y[threadIdx.x] = s[0];
}

// Blocks leave sums for the last of them, which the counter names.
KERNEL scan_of_blocks(const float* x, float* sums, unsigned* count, float* y) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = x[blockIdx.x];
    REPAIR(__threadfence();)
    last = atomicAdd(count, 1u) == gridDim.x - 1;
    REPAIR(__threadfence();)
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (unsigned k = 0; k < gridDim.x; ++k) sum += ((volatile float*)sums)[k];
    *y = sum;
  }
}

// Blocks add to a tile in turns: all threads write, one passes the turn on.
KERNEL split_k_in_turns(const float* x, float* tile, unsigned* turn) {
  if (threadIdx.x == 0)
    while (*(volatile unsigned*)turn != blockIdx.x) {
    }
  __syncthreads();
  REPAIR(__threadfence();)
  float* mine = tile + threadIdx.x;
  *mine = *mine + x[blockIdx.x * 64 + threadIdx.x];
  REPAIR(__threadfence();)
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(turn, blockIdx.x + 1);
}

// A transform in two halves: the second one's order is another than the first one's.
KERNEL transform_in_halves(const unsigned* x, unsigned* y) {
  __shared__ unsigned s[128];
  const int t = threadIdx.x;
  s[t] = x[t] * 3;
  __syncthreads();
  const unsigned v = s[t ^ 64] + s[t];
  REPAIR(__syncthreads();)
  s[(t * 5) & 127] = v;
  __syncthreads();
  y[t] = s[t];
}

// The index of a frame is made by one thread and used by all.
KERNEL frame_of_a_cell(const unsigned* x, unsigned* y) {
  __shared__ unsigned frame, done;
  if (threadIdx.x == 0) frame = 0, done = 0;
  __syncthreads();
  while (!done) {
    y[frame * 64 + threadIdx.x] = x[frame * 64 + threadIdx.x];
    REPAIR(__syncthreads();)
    if (threadIdx.x == 0) ++frame, done = frame == 2;
    __syncthreads();
  }
}
