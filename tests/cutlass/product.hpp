// One element of a matrix product, in double.
#pragma once

#include <cmath>
#include <cstdint>

namespace cutlass_case {

// The sum, and the sum of the terms' magnitudes, which rounding errors are relative to.
struct Product {
  double sum = 0;
  double magnitude = 0;
};

template <class Operand>
Product dot(const Operand& a, const Operand& b, int64_t batch, int64_t row, int64_t col,
            int64_t k) {
  Product product;
  for (int64_t i = 0; i < k; ++i) {
    const double term = a.at(batch, row, i) * b.at(batch, col, i);
    product.sum += term;
    product.magnitude += std::fabs(term);
  }
  return product;
}

}  // namespace cutlass_case
