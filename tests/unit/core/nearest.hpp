// The definition of rounding to nearest even, as a search over every representable value: the judge
// of the encoders.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace dualgemm::test {

// values[i] = magnitude of code i, ascending and finite. Nearest in double, where the differences
// near a tie are exact; a tie goes to the even code; beyond the last value the last code.
inline uint32_t nearest_code(const std::vector<double>& values, double magnitude) {
  if (magnitude >= values.back()) return static_cast<uint32_t>(values.size()) - 1;
  uint32_t best = 0;
  for (uint32_t code = 1; code < values.size(); ++code) {
    const double distance = std::abs(values[code] - magnitude),
                 so_far = std::abs(values[best] - magnitude);
    if (distance < so_far || (distance == so_far && code % 2 == 0)) best = code;
  }
  return best;
}

inline const std::vector<double>& e2m1_magnitudes() {
  static const std::vector<double> values = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  return values;
}

// OCP 8-bit floating point specification, E4M3: 2^(e-7) * (1 + m/8), for e = 0 2^-6 * m/8; e = 15,
// m = 7 is NaN.
inline const std::vector<double>& e4m3_magnitudes() {
  static const std::vector<double> values = [] {
    std::vector<double> table;
    for (int e = 0; e < 16; ++e) {
      for (int m = 0; m < 8; ++m) {
        if (e == 15 && m == 7) continue;
        table.push_back(e == 0 ? std::ldexp(m / 8.0, -6) : std::ldexp(1.0 + m / 8.0, e - 7));
      }
    }
    return table;
  }();
  return values;
}

}  // namespace dualgemm::test
