// A matrix in device memory that the probes copy from by the TMA unit.
#pragma once

#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/tensor_map_object.hpp"

namespace dualgemm::bench {

struct CopiedMatrix {
  // A matrix of `blocks` times kStageRows rows, `columns` times kRowBytes bytes each; zeros: a copy
  // does not depend on what it copies.
  static Expected<CopiedMatrix> make(uint32_t blocks, uint32_t columns);

  cuda::DeviceMemory memory;
  cuda::TensorMap map;
  uint32_t blocks = 0, columns = 0;
};

}  // namespace dualgemm::bench
