// The type that a comes in, as kernels get it.
#pragma once

#include <cstdint>

namespace dualgemm::cuda {

enum class AType : int32_t { kE2M1 = 0, kF16 = 1, kBF16 = 2 };

}  // namespace dualgemm::cuda
