// Copies of a few bytes from global to shared memory, by each thread. PTX ISA 9.0, "Data Movement
// and Conversion Instructions: Non-bulk copy". They complete in groups; a thread sees what it
// copied after it has waited for the group.
#pragma once

#include <cstdint>

#include "cuda/ptx/cache_policy.cuh"
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/shared_address.cuh"

namespace dualgemm::cuda::ptx {

// cp.async.cg.shared.global.L2::256B [to], [from], 16, bytes;      PTX ISA 7.4, sm_80, "cp.async":
// 16 bytes at multiples of 16, those from `bytes` on are zero and not read.
DUALGEMM_DEVICE void cp_async_16(void* to, const void* from, uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes)
               : "memory");
}

// The same with all 16 bytes, to an address as an operand: made from a pointer in a loop it is made
// anew each time.
DUALGEMM_DEVICE void cp_async_16(uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(to), "l"(from)
               : "memory");
}

// cp.async.cg.shared.global.L2::cache_hint [to], [from], 16, policy;      PTX ISA 7.4, sm_80,
// "cp.async": the same without what lies beside it, kept in L2 as the policy says
DUALGEMM_DEVICE void cp_async_16_kept(uint32_t to, const void* from, CachePolicy policy) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "l"(policy.word)
               : "memory");
}

// cp_async_16 by the lanes that want it, without a branch.
DUALGEMM_DEVICE void cp_async_16_if(bool wanted, uint32_t to, const void* from) {
  asm volatile(
      "{\n"
      ".reg .pred is_wanted;\n"
      "setp.ne.u32 is_wanted, %2, 0;\n"
      "@is_wanted cp.async.cg.shared.global.L2::256B [%0], [%1], 16;\n"
      "}\n" ::"r"(to),
      "l"(from), "r"(static_cast<uint32_t>(wanted))
      : "memory");
}

// cp.async.ca.shared.global [to], [from], 4, bytes;      PTX ISA 7.0, sm_80, "cp.async": the same
// with 4 bytes
DUALGEMM_DEVICE void cp_async_4(void* to, const void* from, uint32_t bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes)
               : "memory");
}

// The same two to an address as an operand.
DUALGEMM_DEVICE void cp_async_16(uint32_t to, const void* from, uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(bytes)
               : "memory");
}
DUALGEMM_DEVICE void cp_async_4(uint32_t to, const void* from, uint32_t bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}

// cp.async.ca.shared.global.L2::128B [to], [from], 8, bytes;      PTX ISA 7.4, sm_80, "cp.async":
// the same with 8 bytes
DUALGEMM_DEVICE void cp_async_8(uint32_t to, const void* from, uint32_t bytes) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" ::"r"(to), "l"(from),
               "r"(bytes)
               : "memory");
}

// cp.async.commit_group;      PTX ISA 7.0, sm_80: this thread's copies since the last one
DUALGEMM_DEVICE void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];      PTX ISA 7.0, sm_80,
// "cp.async.mbarrier.arrive": one of the arrivals that the barrier counts on, once all copies that
// this thread has started are complete. What the thread stored itself is not ordered by it.
DUALGEMM_DEVICE void cp_async_mbarrier_arrive(Barrier* bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(bar))
               : "memory");
}

// cp.async.wait_group kPending;      PTX ISA 7.0, sm_80: all but the youngest kPending groups are
// complete
template <int kPending>
DUALGEMM_DEVICE void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// cp.async.wait_all;      PTX ISA 7.0, sm_80: all copies of this thread are complete
DUALGEMM_DEVICE void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace dualgemm::cuda::ptx
