// What becomes of both products: one output (Combine::kGlu), or two that stand side by side in D.
#pragma once

#include <cstdint>

namespace dualgemm::cuda {

struct CombineParams {
  bool side_by_side = false;
  bool activates_each = false;        // side_by_side: each becomes act of itself
  uint32_t up_column = 0;             // side_by_side: where Up's columns of D begin and Gate's end
  const uint8_t* residual = nullptr;  // as D lies; null: none
};

}  // namespace dualgemm::cuda
