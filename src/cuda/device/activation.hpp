// What an epilogue does to a pair of accumulators, as kernels get it. Mirrors dualgemm::Activation
// without its header, so that kernels compile alone.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

enum class ActKind : int32_t {
  kSilu = 0,
  kClampedSwiglu = 1,
  kSwigluOai = 2,
  kGeluErf = 3,
  kGeluTanh = 4,
  kRelu2 = 5,
  kSigmoid = 6,
  kIdentity = 7,
};

struct ActParams {
  ActKind kind;
  float alpha, beta, limit;  // the two SwiGLU kinds only
};

enum class OutputType : int32_t { kF16 = 0, kBF16 = 1, kF32 = 2 };

DUALGEMM_HOST_DEVICE constexpr int bytes_of(OutputType type) {
  return type == OutputType::kF32 ? 4 : 2;
}
DUALGEMM_HOST_DEVICE constexpr const char* name_of(OutputType type) {
  return type == OutputType::kF16 ? "f16" : type == OutputType::kBF16 ? "bf16" : "f32";
}

}  // namespace dualgemm::cuda
