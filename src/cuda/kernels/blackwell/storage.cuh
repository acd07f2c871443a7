// Where a CTA's stages and barriers lie.
#pragma once

#include <cstdint>

#include "cuda/kernels/blackwell/stage.hpp"
#include "cuda/ptx/shared_address.cuh"

namespace dualgemm::cuda::blackwell {

// In dynamic shared memory, at a multiple of its alignment.
template <class Storage>
DUALGEMM_DEVICE Storage& storage_in(uint8_t* dynamic_smem) {
  const uint32_t misaligned = ptx::shared_address(dynamic_smem) % kSwizzleAlignment;
  return *reinterpret_cast<Storage*>(dynamic_smem +
                                     (kSwizzleAlignment - misaligned) % kSwizzleAlignment);
}

// Bytes of dynamic shared memory of a launch: the storage, and room to align it.
template <class Storage>
constexpr int dynamic_smem_bytes() {
  constexpr int kBytes = sizeof(Storage) + kSwizzleAlignment;
  static_assert(kBytes <= kSmemBytes, "one CTA fits an SM");
  return kBytes;
}

}  // namespace dualgemm::cuda::blackwell
