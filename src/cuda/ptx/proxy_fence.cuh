// Between ordinary accesses of a thread and those of the asynchronous units. PTX ISA 9.0,
// "membar/fence", "Proxies".
#pragma once

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// fence.proxy.async.shared::cta;      PTX ISA 8.0, sm_90: what this thread has stored to or loaded
// from shared memory, or has seen of other threads by waiting at a barrier, comes before copies and
// tensor-core operations that threads ordered after it issue.
DUALGEMM_DEVICE void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace dualgemm::cuda::ptx
