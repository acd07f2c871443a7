// A router's weight, as any float type has it.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

DUALGEMM_DEVICE float load_weight(OutputType type, const void* weights, uint32_t index) {
  if (type == OutputType::kF32) return static_cast<const float*>(weights)[index];
  const uint16_t bits = static_cast<const uint16_t*>(weights)[index];
  return type == OutputType::kBF16 ? __uint_as_float(static_cast<uint32_t>(bits) << 16)
                                   : __half2float(__ushort_as_half(bits));
}

}  // namespace dualgemm::cuda
