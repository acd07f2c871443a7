// A word whose address is no multiple of its size.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

DUALGEMM_DEVICE uint64_t load_unaligned_u64(const uint8_t* from) {
  constexpr int kBytes = sizeof(uint64_t);
  if (reinterpret_cast<uintptr_t>(from) % kBytes == 0)
    return *reinterpret_cast<const uint64_t*>(from);
  uint64_t word = 0;
  for (int i = 0; i < kBytes; ++i) word |= static_cast<uint64_t>(from[i]) << (8 * i);
  return word;
}

}  // namespace dualgemm::cuda
