// Addresses in the shared window, as 32-bit instruction operands.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda::ptx {

// cvta.to.shared.u64      PTX ISA 9.0, "cvta". In a cluster of one CTA it is also the
// shared::cluster address, which the own CTA's window is part of ("State spaces: shared").
DUALGEMM_DEVICE uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace dualgemm::cuda::ptx
