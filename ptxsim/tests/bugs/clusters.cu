// Public bugs of clusters and of the memory that their CTAs share; as order.cu.
#include "bug.cuh"

#ifdef REPAIRED
#define SCOPE ".cluster"
#else
#define SCOPE ".cta"
#endif
#define KERNEL extern "C" __global__ void __cluster_dims__(2, 1, 1)

__device__ uint32_t rank_in_cluster() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ uint32_t address_in(const void* p, uint32_t rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(address)
               : "r"(shared_address(p)), "r"(rank));
  return address;
}
__device__ float load_from(const void* p, uint32_t rank) {
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];"
               : "=f"(value)
               : "r"(address_in(p, rank))
               : "memory");
  return value;
}
__device__ void store_to(void* p, uint32_t rank, float value) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address_in(p, rank)), "f"(value)
               : "memory");
}
__device__ void meet() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

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
