// CTAs of a cluster and each other's shared memory. PTX ISA 9.0, "barrier.cluster", "mapa", "st".
#pragma once

#include <cstdint>

#include "cuda/ptx/shared_address.cuh"

namespace dualgemm::cuda::ptx {

// barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;      PTX ISA 7.8,
// sm_90: all threads of the cluster that have not exited, whole warps. What they wrote before is
// visible after.
DUALGEMM_DEVICE void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

// Its two halves, for what can be done between them: barrier.cluster.arrive.release.aligned; then
// barrier.cluster.wait.acquire.aligned;      PTX ISA 7.8, sm_90. Every thread does both, in turns.
DUALGEMM_DEVICE void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
DUALGEMM_DEVICE void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// mov.u32 d, %cluster_ctarank;      PTX ISA 7.8, sm_90, "%cluster_ctarank"
DUALGEMM_DEVICE uint32_t cluster_cta_rank() {
  uint32_t d;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(d));
  return d;
}

// mapa.shared::cluster.u32 d, address, rank;      PTX ISA 7.8, sm_90: the same place in the shared
// memory of the cluster's CTA `rank`.
DUALGEMM_DEVICE uint32_t mapa(const void* shared, uint32_t rank) {
  uint32_t d;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(d) : "r"(shared_address(shared)), "r"(rank));
  return d;
}

// st.shared::cluster.v4.f32 [to], {...};      PTX ISA 7.8, sm_90; `to` from mapa
DUALGEMM_DEVICE void st_shared_cluster(uint32_t to, float a, float b, float c, float d) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(a), "f"(b),
               "f"(c), "f"(d)
               : "memory");
}

// ld.shared::cluster.f32 d, [from];      PTX ISA 7.8, sm_90; `from` from mapa
DUALGEMM_DEVICE float ld_shared_cluster(uint32_t from) {
  float d;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(d) : "r"(from) : "memory");
  return d;
}

// mbarrier.arrive.expect_tx.shared::cluster.b64 _, [bar], bytes;      PTX ISA 8.0, sm_90,
// "mbarrier.arrive": at a barrier of any CTA of the cluster; `bar` from mapa.
DUALGEMM_DEVICE void mbarrier_arrive_expect_tx_cluster(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}

// mbarrier.arrive.release.cluster.shared::cluster.b64 _, [bar];      PTX ISA 8.0, sm_90: at a
// barrier of any CTA of the cluster; `bar` from mapa.
DUALGEMM_DEVICE void mbarrier_arrive_cluster(uint32_t bar) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar)
               : "memory");
}

}  // namespace dualgemm::cuda::ptx
