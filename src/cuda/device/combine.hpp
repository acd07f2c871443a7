// What becomes of both products: one output (Combine::kGlu), or two that stand side by side in D.
#pragma once

#include <cstdint>

namespace dualgemm::cuda {

struct CombineParams {
  bool side_by_side = false;
  uint32_t up_column = 0;             // side_by_side: where Up's columns of D begin and Gate's end
  const uint8_t* residual = nullptr;  // as D lies; null: none
  // side_by_side: the sums are those of Up alone, and D = act(R1) * sum with Gate's product R1 in
  // FP32, (l, m, columns of D) without gaps; null: D is the sum.
  const float* r1 = nullptr;
};

}  // namespace dualgemm::cuda
