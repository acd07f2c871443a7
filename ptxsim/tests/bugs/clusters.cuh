// Memory and barriers of the CTAs of a cluster, as the kernels of bugs use them.
#pragma once

#include "bug.cuh"

__device__ inline uint32_t rank_in_cluster() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline uint32_t address_in(const void* p, uint32_t rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(address)
               : "r"(shared_address(p)), "r"(rank));
  return address;
}
__device__ inline float load_from(const void* p, uint32_t rank) {
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];"
               : "=f"(value)
               : "r"(address_in(p, rank))
               : "memory");
  return value;
}
__device__ inline void store_to(void* p, uint32_t rank, float value) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address_in(p, rank)), "f"(value)
               : "memory");
}
__device__ inline void meet() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
__device__ inline void meet_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::
                   : "memory");
}
