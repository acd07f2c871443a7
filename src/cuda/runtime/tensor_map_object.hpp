// The 128 opaque bytes that describe a tensor to the TMA unit, without the driver's header.
#pragma once

#include <cstdint>

namespace dualgemm::cuda {

struct alignas(64) TensorMap {
  uint64_t opaque[16];
};
static_assert(sizeof(TensorMap) == 128, "the size of CUtensorMap");

}  // namespace dualgemm::cuda
