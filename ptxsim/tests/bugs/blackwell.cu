// Public bugs of what came with sm_100 beside tensor memory: bulk fills and requests for work; as
// order.cu.
#include "asynchronous.cuh"
#include "clusters.cuh"

#define KERNEL extern "C" __global__ void
#define PAIR KERNEL __cluster_dims__(2, 1, 1)

// Memory is cleared by one thread for its next use while others still read it.
KERNEL cleared_while_read(const float* x, float* y) {
  __shared__ alignas(16) float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const float value = s[63 - threadIdx.x];
  REPAIR(__syncthreads();)
  if (threadIdx.x == 0)
    asm volatile(
        "st.bulk.weak.shared::cta [%0], 256, 0;" ::"l"((uint64_t)__cvta_generic_to_shared(s))
        : "memory");
  __syncthreads();
  y[threadIdx.x] = value + s[threadIdx.x];
}

__device__ inline void request_work(void* answer, uint64_t* bar) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
      ".multicast::cluster::all.b128 [%0], [%1];" ::"r"(shared_address(answer)),
      "r"(shared_address(bar))
      : "memory");
}
__device__ inline void begin(uint64_t* bar) {
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  meet();
}

// The answer to a request for work is sent to both CTAs; one of them expects no bytes, and waits.
PAIR answer_for_one_of_two(float* y) {
  __shared__ alignas(16) float answer[4];
  __shared__ uint64_t bar;
  begin(&bar);
  const bool expects = true REPAIR(|| true) BUG(&&rank_in_cluster() == 0);
  if (expects && threadIdx.x == 0) expect(&bar, 16);
  meet();
  if (rank_in_cluster() == 0 && threadIdx.x == 0) request_work(answer, &bar);
  wait(&bar, 0);
  __syncwarp();
  y[blockIdx.x * 32 + threadIdx.x] = answer[0];
  meet();
}

// The next request overwrites an answer that threads have read, without a proxy fence.
PAIR answer_over_an_answer(float* y) {
  __shared__ alignas(16) float answer[4];
  __shared__ uint64_t bar;
  begin(&bar);
  float value = 0;
  for (int i = 0; i < 2; ++i) {
    if (threadIdx.x == 0) expect(&bar, 16);
    REPAIR(fence_proxy();)
    meet();
    if (rank_in_cluster() == 0 && threadIdx.x == 0) request_work(answer, &bar);
    wait(&bar, i);
    __syncwarp();
    value += answer[0];
  }
  y[blockIdx.x * 32 + threadIdx.x] = value;
  meet();
}
