// How long the L2 cache keeps what a copy reads: a policy word that copies take. PTX ISA 9.0, "Data
// Movement and Conversion Instructions: createpolicy".
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

struct CachePolicy {
  uint64_t word;
};

// createpolicy.fractional.L2::evict_first.b64 policy, 1.0;      PTX ISA 7.4, sm_80, "createpolicy"
DUALGEMM_DEVICE CachePolicy createpolicy_evict_first() {
  CachePolicy policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy.word));
  return policy;
}

// createpolicy.fractional.L2::evict_last.b64 policy, 1.0;      PTX ISA 7.4, sm_80, "createpolicy"
DUALGEMM_DEVICE CachePolicy createpolicy_evict_last() {
  CachePolicy policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy.word));
  return policy;
}

}  // namespace dualgemm::cuda::ptx
