// Public bugs of pairs of CTAs that use tensor memory together; as order.cu.
#include "clusters.cuh"
#include "tensor_memory.cuh"

#define CLUSTER(ctas) extern "C" __global__ void __cluster_dims__(ctas, 1, 1)

__device__ inline void allocate_pair(uint32_t* slot) {
  asm volatile(
      "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 64;\n"
      "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::"r"(shared_address(slot))
      : "memory");
}
__device__ inline void release_pair(uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 64;" ::"r"(columns) : "memory");
}
__device__ inline void commit_pair(uint64_t* bar, uint32_t ctas) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;" ::"r"(shared_address(bar)),
      "h"((uint16_t)ctas)
      : "memory");
}
__device__ inline void meet_with_tensor_memory() {
  __syncwarp();
  fence_before();
  meet();
  fence_after();
}
// As begin(), for a pair of CTAs.
__device__ inline uint32_t begin_pair(Cta& s) {
  fill(s);
  if (threadIdx.x == 0) {
    init(s.bars, 1), init(s.bars + 1, 1), init(s.bars + 2, 2);
    fence_init();
  }
  __syncwarp();
  if (threadIdx.x < 32) allocate_pair(&s.slot);
  meet_with_tensor_memory();
  return s.slot;
}
__device__ inline void end_pair(uint32_t columns) {
  meet_with_tensor_memory();
  if (threadIdx.x < 32) release_pair(columns);
}

// A CTA frees the memory of a pair when the other one may not have come to its allocation.
CLUSTER(2) freed_before_the_peer_has_it(float* y) {
  __shared__ uint32_t slot;
  if (threadIdx.x < 32) allocate_pair(&slot);
  REPAIR(meet_with_tensor_memory();)
  BUG(pass();)
  y[blockIdx.x * 128 + threadIdx.x] = slot;
  BUG(pass();)
  REPAIR(meet_with_tensor_memory();)
  if (threadIdx.x < 32) release_pair(slot);
}

// A CTA ends while the commit of the other one may still arrive at its mbarrier.
CLUSTER(2) commit_to_a_peer_that_ends(float* y) {
  __shared__ Cta s;
  const uint32_t d = begin_pair(s);
  end_pair(d);
  if (rank_in_cluster() == 0) {
    if (threadIdx.x == 0) commit_pair(s.bars, 3);
    wait(s.bars, 0);
  }
  y[blockIdx.x * 128 + threadIdx.x] = 1;
  REPAIR(wait(s.bars, 0);)
  REPAIR(__syncwarp();)
  REPAIR(meet();)
}

// A CTA that issues nothing invalidates an mbarrier before the other one's commit has arrived.
CLUSTER(2) invalidated_before_a_commit(float* y) {
  __shared__ Cta s;
  const uint32_t d = begin_pair(s);
  if (rank_in_cluster() == 0) {
    if (threadIdx.x == 0) commit_pair(s.bars, 3);
    wait(s.bars, 0);
  }
  REPAIR(wait(s.bars, 0);)
  __syncthreads();
  if (threadIdx.x == 0) invalidate(s.bars);
  y[blockIdx.x * 128 + threadIdx.x] = 1;
  end_pair(d);
}

// Commits go to the first pair of a cluster of two pairs.
CLUSTER(4) commit_to_the_first_pair(float* y) {
  __shared__ Cta s;
  const uint32_t d = begin_pair(s);
  const uint32_t leader = rank_in_cluster() & ~1u;
  if (rank_in_cluster() == leader && threadIdx.x == 0)
    commit_pair(s.bars + leader / 2, 3 REPAIR(<< leader));
  wait(s.bars + leader / 2, 0);
  __syncwarp();
  y[blockIdx.x * 128 + threadIdx.x] = 1;
  end_pair(d);
}

// A copy for both CTAs reads what the other one has loaded, and waits for its own load alone.
CLUSTER(2) scales_of_the_peer(const uint4* x, float* y) {
  __shared__ Cta s;
  const uint32_t d = begin_pair(s);
  if (threadIdx.x == 0) {
    load(s.a, x, 512, s.bars);
    BUG(if (rank_in_cluster() == 0) wait(s.bars, 0);)
    REPAIR(wait(s.bars, 0);)
    REPAIR(asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                            address_in(s.bars + 2, 0))
                        : "memory");)
    if (rank_in_cluster() == 0) {
      REPAIR(asm volatile(
                 "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.acquire.cluster"
                 ".shared.b64 p, [%0], 0;\n@!p bra AGAIN;\n}" ::"r"(shared_address(s.bars + 2))
                 : "memory");)
      asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(d), "l"(operand(s.a, 0))
                   : "memory");
      commit_pair(s.bars + 1, 3);
    }
  }
  wait_for_product(s.bars + 1, 0);
  wait(s.bars, 0);
  __syncwarp();
  y[blockIdx.x * 128 + threadIdx.x] = read(d);
  end_pair(d);
}
