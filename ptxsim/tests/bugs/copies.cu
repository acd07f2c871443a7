// Public bugs of asynchronous copies and tensor cores; as order.cu.
#include "asynchronous.cuh"

#define KERNEL extern "C" __global__ void

// Each thread waits for its own copies, and reads those of others.
KERNEL dequantize_after_wait(const float4* x, float* y) {
  __shared__ float4 s[64];
  copy16(s + threadIdx.x, x + threadIdx.x);
  wait_for_copies();
  REPAIR(__syncthreads();)
  y[threadIdx.x] = s[63 - threadIdx.x].x;
}

// Threads of the first row copy; the barrier does not wait for copies.
KERNEL barrier_without_wait(const float4* x, float* y) {
  __shared__ float4 s[32];
  if (threadIdx.y == 0) copy16(s + threadIdx.x, x + threadIdx.x);
  REPAIR(wait_for_copies();)
  __syncthreads();
  y[threadIdx.y * 32 + threadIdx.x] = s[threadIdx.x].y;
}

// A buffer is read, and filled again by a bulk copy.
KERNEL refill_after_reads(const float* x, float* y) {
  __shared__ alignas(128) float s[64];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    init(&bar, 1);
    fence_init();
    load(s, x, 256, &bar);
  }
  __syncthreads();
  wait(&bar, 0);
  float sum = s[threadIdx.x];
  REPAIR(fence_proxy();)
  REPAIR(__syncthreads();)
  if (threadIdx.x == 0) load(s, x + 64, 256, &bar);
  wait(&bar, 1);
  sum += s[threadIdx.x];
  y[threadIdx.x] = sum;
}

// What threads write is stored by a bulk copy.
KERNEL store_state(const float* x, float* y) {
  __shared__ alignas(128) float s[64];
  s[threadIdx.x] = 2 * x[threadIdx.x];
  REPAIR(fence_proxy();)
  __syncthreads();
  if (threadIdx.x == 0) store(y, s, 256);
}

// A barrier is used by the copy before its initialisation is known there.
KERNEL init_of_a_barrier(const float* x, float* y) {
  __shared__ alignas(128) float s[64];
  __shared__ uint64_t bar;
  if (threadIdx.x == 32) {
    init(&bar, 1);
    REPAIR(fence_init();)
  }
  __syncthreads();
  if (threadIdx.x == 0) load(s, x, 256, &bar);
  wait(&bar, 0);
  y[threadIdx.x] = s[threadIdx.x];
}

// Two operands arrive at two barriers; the sum reads the second one without a wait.
KERNEL wait_for_one_of_two(const float* x, float* y) {
  __shared__ alignas(128) float a[64], b[64];
  __shared__ uint64_t bars[2];
  if (threadIdx.x == 0) {
    init(bars, 1), init(bars + 1, 1);
    fence_init();
    load(a, x, 256, bars);
    load(b, x + 64, 256, bars + 1);
  }
  __syncthreads();
  wait(bars, 0);
  REPAIR(wait(bars + 1, 0);)
  y[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
  wait(bars + 1, 0);
}

__device__ uint64_t
descriptor(const void* p) {  // no swizzle: 8 x 16 bytes, 128 and 256 bytes apart
  return (uint64_t)(shared_address(p) >> 4 & 0x3fff) | 8ull << 16 | 16ull << 32;
}
__device__ void fence_wgmma() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void multiply(float (&d)[4], const void* a, const void* b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 0, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(descriptor(a)), "l"(descriptor(b))
      : "memory");
}

template <int kOpen>
__device__ inline void wait_for_products(float (&d)[4]) {
  asm volatile("wgmma.wait_group.sync.aligned %4;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "n"(kOpen)
               : "memory");
}

// Threads write the operands of an asynchronous MMA.
KERNEL operands_by_threads(const uint4* x, float* y) {
  __shared__ alignas(128) uint4 a[128], b[16];
  a[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x < 16) b[threadIdx.x] = x[threadIdx.x];
  REPAIR(fence_proxy();)
  __syncthreads();
  float d[4];
  fence_wgmma();
  multiply(d, a, b);
  wait_for_products<0>(d);
  y[threadIdx.x] = d[0] + d[3];
}

// The operands' memory is used again before the MMA that reads it is over.
KERNEL memory_of_an_mma(const uint4* x, float* y) {
  __shared__ alignas(128) uint4 a[128], b[16];
  a[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x < 16) b[threadIdx.x] = x[threadIdx.x];
  fence_proxy();
  __syncthreads();
  float d[4];
  fence_wgmma();
  multiply(d, a, b);
  REPAIR(wait_for_products<0>(d);)
  a[threadIdx.x] = x[127 - threadIdx.x];
  wait_for_products<0>(d);
  y[threadIdx.x] = d[0] + d[3] + *(float*)(a + threadIdx.x);
}

// Operands have two buffers where products that are left open for a round need three.
KERNEL a_buffer_too_few(const uint4* x, float* y) {
  constexpr int kBuffers = 2 REPAIR(+1);
  __shared__ alignas(128) uint4 a[kBuffers][128], b[16];
  __shared__ uint64_t full[kBuffers];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kBuffers; ++i) init(full + i, 1);
    fence_init();
    load(a[0], x, 2048, full);
  }
  if (threadIdx.x < 16) b[threadIdx.x] = x[threadIdx.x];
  fence_proxy();
  __syncthreads();
  float d[4] = {};
  fence_wgmma();
  for (int i = 0; i < 4; ++i) {
    const int next = (i + 1) % kBuffers;
    __syncthreads();
    if (i < 3 && threadIdx.x == 0) load(a[next], x + 128 * (i + 1), 2048, full + next);
    wait(full + i % kBuffers, i / kBuffers & 1);
    __syncwarp();
    multiply(d, a[i % kBuffers], b);
    wait_for_products<1>(d);
  }
  wait_for_products<0>(d);
  y[threadIdx.x] = d[0] + d[3];
}

// One warp waits for its part of a product and loads an operand again, which other warps' parts may
// still read.
KERNEL loaded_behind_the_wait_of_a_warp(const uint4* x, float* y) {
  __shared__ alignas(128) uint4 a[128], b[16];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) init(&full, 1), fence_init();
  a[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x < 16) b[threadIdx.x] = x[threadIdx.x];
  fence_proxy();
  __syncthreads();
  float d[4];
  fence_wgmma();
  multiply(d, a, b);
  wait_for_products<0>(d);
  REPAIR(__syncthreads();)
  if (threadIdx.x == 0) load(a, x, 2048, &full);
  wait(&full, 0);
  y[threadIdx.x] = d[0] + d[3];
}
