// Tensor memory and its products, as the kernels of bugs use them. A is 128 x 16 and B 16 x 16, of
// f16 that are 1, so that every element of a product is 16.
#pragma once

#include "asynchronous.cuh"

struct Cta {
  alignas(1024) uint4 a[256];
  uint4 b[32];
  uint64_t bars[3];
  uint32_t slot;
};

__device__ inline void fence_before() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ inline void fence_after() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
// A barrier of the CTA that work in tensor memory passes, too.
__device__ inline void pass() {
  fence_before();
  __syncthreads();
  fence_after();
}
__device__ inline void allocate(uint32_t* slot) {
  asm volatile(
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;\n"
      "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::"r"(shared_address(slot))
      : "memory");
}
__device__ inline void release(uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(columns) : "memory");
}
__device__ inline void fill(Cta& s) {
  const uint4 ones = make_uint4(0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00);
  for (int i = threadIdx.x; i < 256; i += blockDim.x) s.a[i] = ones;
  if (threadIdx.x < 32) s.b[threadIdx.x] = ones;
  fence_proxy();
}
// Fills the operands, initialises barriers of so many arrivals, and allocates 64 columns.
__device__ inline uint32_t begin(Cta& s, int first = 1, int second = 1, int third = 1) {
  fill(s);
  if (threadIdx.x == 0) {
    init(s.bars, first), init(s.bars + 1, second), init(s.bars + 2, third);
    fence_init();
  }
  __syncwarp();
  if (threadIdx.x < 32) allocate(&s.slot);
  pass();
  return s.slot;
}
__device__ inline void end(uint32_t columns) {
  __syncwarp();
  pass();
  if (threadIdx.x < 32) release(columns);
}

// No swizzle: halves of k lie `leading` bytes apart, 8 rows 128.
__device__ inline uint64_t operand(const void* p, int leading) {
  return (uint64_t)(shared_address(p) >> 4 & 0x3fff) | (uint64_t)(leading >> 4) << 16 |
         0x0000400800000000ull;
}
// D += A B; of one thread.
__device__ inline void multiply(uint32_t d, const void* a, const void* b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.s32 p, %3, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, 0x08040010, p;\n}" ::"r"(d),
      "l"(operand(a, 2048)), "l"(operand(b, 256)), "r"(accumulate)
      : "memory");
}
__device__ inline void commit(uint64_t* bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                   shared_address(bar))
               : "memory");
}
__device__ inline void wait_for_product(uint64_t* bar, int parity) {
  wait(bar, parity);
  __syncwarp();
  fence_after();
}

// The lanes of this warp.
__device__ inline uint32_t own_lanes(uint32_t columns) {
  return columns + ((threadIdx.x & 0x60) << 16);
}
__device__ inline float start_read(uint32_t columns) {
  float value;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];"
               : "=f"(value)
               : "r"(own_lanes(columns))
               : "memory");
  return value;
}
__device__ inline void wait_for_reads() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}
__device__ inline float read(uint32_t columns) {
  const float value = start_read(columns);
  wait_for_reads();
  return value;
}
__device__ inline void write(uint32_t columns, float value) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};\ntcgen05.wait::st.sync.aligned;" ::"r"(
          own_lanes(columns)),
      "f"(value)
      : "memory");
}
