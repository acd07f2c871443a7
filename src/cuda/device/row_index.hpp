// Rows of A that are read by index: Problem::a_rows.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

struct RowIndex {
  const int32_t* of_a = nullptr;  // for each row of the products; null: rows of A in order
  uint32_t rows = 0;              // of A

  // The row of A that row `row` of the products is. The index may be the work of the grid in front.
  DUALGEMM_HOST_DEVICE constexpr uint32_t operator()(uint32_t row) const {
    if (of_a == nullptr) return row;
    const auto found = static_cast<uint32_t>(of_a[row]);
    return found < rows ? found : rows - 1;
  }
};

}  // namespace dualgemm::cuda
