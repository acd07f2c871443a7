// The 128 opaque bytes that describe a tensor to the TMA unit, without the driver's header.
#pragma once

#include <cstdint>

namespace dualgemm::cuda {

struct alignas(128) TensorMap {
  uint64_t opaque[16];
};
static_assert(sizeof(TensorMap) == 128,
              "the size of CUtensorMap; its users need 64-byte alignment, CUDA 13 gives it 128");

}  // namespace dualgemm::cuda
