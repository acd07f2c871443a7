// The biases of Gate and Up, as kernels get them.
#pragma once

namespace dualgemm::cuda {

struct BiasParams {
  const void* gate = nullptr;  // [l][n] numbers of one type; null: none, and so is up
  const void* up = nullptr;
  bool bf16 = false;  // else FP32
};

}  // namespace dualgemm::cuda
