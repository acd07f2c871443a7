// Public bugs of clusters and of the memory that their CTAs share; as order.cu.
#include "asynchronous.cuh"
#include "clusters.cuh"

#ifdef REPAIRED
#define SCOPE ".cluster"
#else
#define SCOPE ".cta"
#endif
#define KERNEL extern "C" __global__ void __cluster_dims__(2, 1, 1)

// A buffer is handed to the other CTA through an mbarrier whose scope is one CTA.
KERNEL hand_over_to_a_peer(const float* x, float* y) {
  __shared__ float s[32];
  __shared__ uint64_t full;
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 32;\nfence.mbarrier_init.release.cluster;" ::"r"(
                     shared_address(&full))
                 : "memory");
  meet();
  if (rank_in_cluster() == 1) {
    s[threadIdx.x] = x[threadIdx.x];
    asm volatile("mbarrier.arrive.release" SCOPE
                 ".shared::cluster.b64 _, [%0];" ::"r"(address_in(&full, 0))
                 : "memory");
  } else {
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.acquire" SCOPE
                 ".shared.b64 p, [%0], 0;\n@!p bra AGAIN;\n}" ::"r"(shared_address(&full))
                 : "memory");
    y[threadIdx.x] = load_from(s + threadIdx.x, 1);
  }
  meet();
}

// CTA 0 may have ended when the other one reads its memory.
KERNEL read_of_a_peer_that_ends(const float* x, float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  meet();
  if (rank_in_cluster() == 1) y[threadIdx.x] = load_from(s + threadIdx.x, 0);
  REPAIR(meet();)
}

// CTA 0 writes into the other one's memory, which may not have begun.
KERNEL store_to_a_peer_that_begins(const float* x, float* y) {
  __shared__ float s[32];
  REPAIR(meet();)
  if (rank_in_cluster() == 0) store_to(s + threadIdx.x, 1, x[threadIdx.x]);
  meet();
  if (rank_in_cluster() == 1) y[threadIdx.x] = s[threadIdx.x];
}

// One CTA's load writes into both, and each stores there before it waits for the load.
KERNEL store_while_a_peer_loads(const float* x, float* y) {
  __shared__ alignas(128) float s[32];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    init(&full, 1);
    fence_init();
    expect(&full, 128);
  }
  meet();
  if (rank_in_cluster() == 0 && threadIdx.x == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], 128, [%2], %3;" ::"r"(shared_address(s)),
        "l"(x), "r"(shared_address(&full)), "h"((uint16_t)3)
        : "memory");
  __syncwarp();
  meet();
  REPAIR(wait(&full, 0);)
  s[threadIdx.x] = 1;
  wait(&full, 0);
  __syncwarp();
  y[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];
  meet();
}

// A .relaxed barrier lies between reads of the other CTA's memory and stores to it.
KERNEL stores_behind_a_relaxed_barrier(const float* x, float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  meet();
  y[blockIdx.x * 32 + threadIdx.x] = load_from(s + threadIdx.x, rank_in_cluster() ^ 1);
  BUG(meet_relaxed();)
  REPAIR(meet();)
  s[threadIdx.x] = 42;
}
