// The biases of Gate and Up, as kernels get them.
#pragma once

#include <cstdint>

namespace dualgemm::cuda {

struct BiasParams {
  const void* gate = nullptr;  // [l][n] numbers of one type; null: none, and so is up
  const void* up = nullptr;
  int64_t stride = 0;  // numbers from one batch's to the next one's
  bool bf16 = false;   // else FP32
};

}  // namespace dualgemm::cuda
