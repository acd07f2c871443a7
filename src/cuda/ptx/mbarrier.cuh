// mbarrier: a 64-bit object in shared memory that counts arrivals and bytes of asynchronous copies.
// PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: mbarrier".
#pragma once

#include <cstdint>

#include "cuda/ptx/shared_address.cuh"

namespace dualgemm::cuda::ptx {

struct alignas(8) Barrier {
  uint64_t opaque;
};

// mbarrier.init.shared::cta.b64 [bar], count;      PTX ISA 7.0, sm_80, "mbarrier.init"
DUALGEMM_DEVICE void mbarrier_init(Barrier* bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count)
               : "memory");
}

// fence.mbarrier_init.release.cluster;      PTX ISA 8.0, sm_90, "membar/fence". Makes the inits of
// this thread visible to the asynchronous units; a CTA or cluster barrier must follow.
DUALGEMM_DEVICE void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], bytes;      PTX ISA 8.0, sm_90,
// "mbarrier.arrive": adds bytes to the pending count of the phase, then arrives once (release).
DUALGEMM_DEVICE void mbarrier_arrive_expect_tx(Barrier* bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)),
               "r"(bytes)
               : "memory");
}

// mbarrier.arrive.shared::cta.b64 _, [bar];      PTX ISA 7.0, sm_80, "mbarrier.arrive" (release)
DUALGEMM_DEVICE void mbarrier_arrive(Barrier* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

// mbarrier.try_wait.parity.shared::cta.b64 done, [bar], parity;      PTX ISA 7.8, sm_90,
// "mbarrier.try_wait": true once the phase of that parity is complete (acquire); may time out.
DUALGEMM_DEVICE bool mbarrier_try_wait_parity(const Barrier* bar, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
      "selp.u32 %0, 1, 0, complete;\n"
      "}\n"
      : "=r"(done)
      : "r"(shared_address(bar)), "r"(parity)
      : "memory");
  return done != 0;
}

// Waits until the phase of that parity is complete. The caller is at most one phase behind.
DUALGEMM_DEVICE void mbarrier_wait_parity(const Barrier* bar, uint32_t parity) {
  while (!mbarrier_try_wait_parity(bar, parity)) {
  }
}

// mbarrier.test_wait.parity.shared::cta.b64 done, [bar], parity;      PTX ISA 7.1, sm_80,
// "mbarrier.test_wait": the same on GPUs that have no try_wait. Between two tests nanosleep.u32 32
// (PTX ISA 6.3, sm_70) where a kernel has a register for it: a quarter of what an SM with
// waiting warps issued were tests, in slots that the warps they wait for need.
template <bool kSleeps>
DUALGEMM_DEVICE void mbarrier_wait_parity_sm80(const Barrier* bar, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
        "selp.u32 %0, 1, 0, complete;\n"
        "}\n"
        : "=r"(done)
        : "r"(shared_address(bar)), "r"(parity)
        : "memory");
    if (kSleeps && done == 0) asm volatile("nanosleep.u32 32;");
  }
}

// mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ...      PTX ISA 8.0, sm_90: the same
// where threads of other CTAs arrive, and what they wrote matters.
DUALGEMM_DEVICE void mbarrier_wait_parity_cluster(const Barrier* bar, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%1], %2;\n"
        "selp.u32 %0, 1, 0, complete;\n"
        "}\n"
        : "=r"(done)
        : "r"(shared_address(bar)), "r"(parity)
        : "memory");
  }
}

}  // namespace dualgemm::cuda::ptx
