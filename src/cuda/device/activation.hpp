// What an epilogue does to a pair of accumulators, as kernels get it. The kinds come from the table
// alone, without dualgemm::Activation's header, so that kernels compile alone.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"
#include "dualgemm/enums.h"

namespace dualgemm::cuda {

enum class ActKind : int32_t { DUALGEMM_ACTIVATION_TABLE(DUALGEMM_CPP_ENUMERATOR) };

struct ActParams {
  ActKind kind;
  float alpha, beta, limit;  // the two SwiGLU kinds use them
};

enum class OutputType : int32_t { kF16 = 0, kBF16 = 1, kF32 = 2, kE2M1 = 3 };

// Bytes of an output; not for kE2M1, two of which share a byte.
DUALGEMM_HOST_DEVICE constexpr int bytes_of(OutputType type) {
  return type == OutputType::kF32 ? 4 : 2;
}
DUALGEMM_HOST_DEVICE constexpr const char* name_of(OutputType type) {
  return type == OutputType::kF16    ? "f16"
         : type == OutputType::kBF16 ? "bf16"
         : type == OutputType::kF32  ? "f32"
                                     : "e2m1";
}

}  // namespace dualgemm::cuda
