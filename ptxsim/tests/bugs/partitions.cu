// Public bugs of kernels whose warps have roles, and of their mbarriers, most of them cases of
// Triton's concurrency sanitizer; as order.cu.
#include "asynchronous.cuh"

#define KERNEL extern "C" __global__ void

__device__ inline void begin(uint64_t* bars, int number, int arrivals) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < number; ++i) init(bars + i, arrivals);
    fence_init();
  }
  __syncthreads();
}

// One warp reads what another one stores, and does not wait for it.
KERNEL load_without_wait(const float* x, float* y) {
  __shared__ float s[32];
  __shared__ uint64_t full;
  begin(&full, 1, 32);
  if (threadIdx.x < 32) {
    s[threadIdx.x] = x[threadIdx.x];
    arrive(&full);
  } else {
    REPAIR(wait(&full, 0);)
    y[threadIdx.x - 32] = s[threadIdx.x - 32];
  }
}

// One warp stores over what another one reads, and does not wait for it.
KERNEL store_without_wait(const float* x, float* y) {
  __shared__ float s[32];
  __shared__ uint64_t empty;
  begin(&empty, 1, 32);
  if (threadIdx.x < 32) s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) {
    y[threadIdx.x] = 2 * s[threadIdx.x];
    arrive(&empty);
  } else {
    REPAIR(wait(&empty, 0);)
    s[threadIdx.x - 32] = 0;
  }
}

// The proxy fence comes after the arrival that hands the memory to a bulk store.
KERNEL fence_after_arrival(const float* x, float* y) {
  __shared__ alignas(128) float s[32];
  __shared__ uint64_t full;
  begin(&full, 1, 32);
  if (threadIdx.x < 32) {
    s[threadIdx.x] = x[threadIdx.x];
    REPAIR(fence_proxy();)
    arrive(&full);
    BUG(fence_proxy();)
  } else if (threadIdx.x == 32) {
    wait(&full, 0);
    store(y, s, 128);
  }
}

// A load brings more bytes than the role that waits for it was told to expect.
KERNEL fewer_bytes_than_come(const float* x, float* y) {
  __shared__ alignas(128) float s[64];
  __shared__ uint64_t full;
  begin(&full, 1, 1);
  if (threadIdx.x == 0) {
    expect(&full, 128 REPAIR(*2));
    start_load(s, x, 256, &full);
  }
  wait(&full, 0);
  y[threadIdx.x] = s[threadIdx.x];
}

// Two of three roles wait for each other, the third one has ended.
KERNEL roles_that_wait_for_each_other(float* y) {
  __shared__ uint64_t bars[2];
  begin(bars, 2, 32);
  const int role = threadIdx.x / 32;
  if (role == 2) return;
  REPAIR(if (role == 0) arrive(bars + 1);)
  wait(bars + role, 0);
  BUG(if (role == 0) arrive(bars + 1);)
  if (role == 1) arrive(bars);
  y[threadIdx.x] = 1;
}

// A third copy goes into the first buffer, and the wait leaves two groups open.
KERNEL copies_in_flight(const float4* x, float* y) {
  __shared__ float4 s[2][32];
  for (int i = 0; i < 3; ++i) {
    REPAIR(if (i == 2) asm volatile("cp.async.wait_group 1;" ::: "memory");)
    BUG(if (i == 2) asm volatile("cp.async.wait_group 2;" ::: "memory");)
    copy16(&s[i % 2][threadIdx.x], x + 32 * i + threadIdx.x);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  wait_for_copies();
  y[threadIdx.x] = s[0][threadIdx.x].x;
}

// The second of two bulk stores may still read what is stored next.
KERNEL stores_in_flight(const float* x, float* y) {
  __shared__ alignas(128) float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  fence_proxy();
  __syncthreads();
  if (threadIdx.x == 0) {
    start_store(y, s, 128);
    start_store(y + 32, s + 32, 128);
    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    REPAIR(asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");)
  }
  __syncthreads();
  s[threadIdx.x] = 42;
  if (threadIdx.x == 0) wait_for_stores();
}

// A load goes into a stage whose bulk store is taken to be over: the wait leaves one group open.
KERNEL loaded_over_a_store(const float* x, float* y) {
  __shared__ alignas(128) float s[32];
  __shared__ uint64_t full;
  begin(&full, 1, 1);
  if (threadIdx.x != 0) return;
  for (int i = 0; i < 2; ++i) {
    load(s, x + 32 * i, 128, &full);
    wait(&full, i);
    start_store(y + 32 * i, s, 128);
    REPAIR(asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");)
    BUG(asm volatile("cp.async.bulk.wait_group 1;" ::: "memory");)
  }
  wait_for_stores();
}

// An mbarrier is invalidated while another warp waits on it.
KERNEL invalidated_while_waited_for(const float* x, float* y) {
  __shared__ alignas(128) float s[32];
  __shared__ uint64_t full;
  begin(&full, 1, 1);
  if (threadIdx.x == 0) load(s, x, 128, &full);
  if (threadIdx.x == 0 || threadIdx.x >= 32) wait(&full, 0);
  __syncwarp();
  REPAIR(__syncthreads();)
  if (threadIdx.x == 0) invalidate(&full);
  if (threadIdx.x >= 32) y[threadIdx.x - 32] = s[threadIdx.x - 32];
}

// The memory of an mbarrier is used for data while a copy is to arrive there.
KERNEL data_over_a_barrier(const float* x, float* y) {
  __shared__ alignas(128) float s[32];
  __shared__ uint64_t full;
  begin(&full, 1, 1);
  if (threadIdx.x == 0) load(s, x, 128, &full);
  REPAIR(wait(&full, 0);)
  REPAIR(__syncthreads();)
  REPAIR(if (threadIdx.x == 0) invalidate(&full);)
  if (threadIdx.x == 0) *(volatile uint64_t*)&full = 42;
  __syncthreads();
  y[threadIdx.x] = *(volatile uint64_t*)&full;
}
