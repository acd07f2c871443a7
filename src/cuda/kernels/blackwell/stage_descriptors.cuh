// What the tensor core is told about a stage in shared memory.
#pragma once

#include <cstdint>

#include "cuda/device/descriptors.hpp"
#include "cuda/ptx/shared_address.cuh"

namespace dualgemm::cuda::blackwell {

// The six operands of one stage as descriptors; a step along K = 64 is an addition to each.
struct StageDescriptors {
  uint64_t a, gate, up, sf_a, sf_gate, sf_up;
};

// Stage: a kernel's, with these six operands.
template <class Stage>
DUALGEMM_DEVICE StageDescriptors describe(const Stage& stage) {
  const auto rows = [](const uint8_t* operand) {
    return smem_descriptor(ptx::shared_address(operand), kSwizzledRows128B, SmemSwizzle::k128B);
  };
  const auto scales = [](const uint8_t* tile) {
    return smem_descriptor(ptx::shared_address(tile), dualgemm::cuda::kScaleTileRows,
                           SmemSwizzle::kNone);
  };
  return {rows(stage.a),      rows(stage.gate),      rows(stage.up),
          scales(stage.sf_a), scales(stage.sf_gate), scales(stage.sf_up)};
}

}  // namespace dualgemm::cuda::blackwell
