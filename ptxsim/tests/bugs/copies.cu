// Public bugs of asynchronous copies and tensor cores; as order.cu.
#include "bug.cuh"

#define KERNEL extern "C" __global__ void

__device__ void copy16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
__device__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
__device__ void init(uint64_t* bar, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count)
               : "memory");
}
__device__ void wait(uint64_t* bar, int parity) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra "
      "AGAIN;\n}" ::"r"(shared_address(bar)),
      "r"(parity)
      : "memory");
}
__device__ void load(void* to, const void* from, int bytes, uint64_t* bar) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(bar)),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(bar))
      : "memory");
}
__device__ void store(void* to, const void* from, int bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;" ::"l"(to),
      "r"(shared_address(from)), "r"(bytes)
      : "memory");
}
__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ void fence_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

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
  asm volatile("wgmma.wait_group.sync.aligned 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
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
  REPAIR(asm volatile("wgmma.wait_group.sync.aligned 0;"
                      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");)
  a[threadIdx.x] = x[127 - threadIdx.x];
  asm volatile("wgmma.wait_group.sync.aligned 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
  y[threadIdx.x] = d[0] + d[3] + *(float*)(a + threadIdx.x);
}
