// What is demanded of the fused kernel on an H200.
#pragma once

#include <cstdint>
#include <optional>

namespace dualgemm::bench {

inline constexpr int64_t kFloorTargetMaxM = 16;
inline constexpr double kFloorTarget = 1.25;  // times a plain cold read of the packed weights

inline constexpr int64_t kNarrowN = 3072;  // whose tiles are few

// Its time at most, over the best of cuBLAS in fp16. Weights that are not prepared may take 10 %
// more up to 16 rows, 4 % with more.
inline double ratio_target(int64_t m, int64_t n, bool prepared) {
  struct Step {
    int64_t up_to_m;
    double ratio, narrow;
  };
  constexpr Step kSteps[] = {{8, 0.36, 0.36},  {16, 0.38, 0.42},  {32, 0.45, 0.50},
                             {64, 0.52, 0.58}, {128, 0.72, 0.80}, {256, 0.94, 1.00}};
  const double room = prepared ? 1.0 : m <= 16 ? 1.10 : 1.04;
  for (const Step& step : kSteps) {
    if (m <= step.up_to_m) return room * (n <= kNarrowN ? step.narrow : step.ratio);
  }
  return room;
}

inline std::optional<double> floor_target(int64_t m) {
  if (m > kFloorTargetMaxM) return std::nullopt;
  return kFloorTarget;
}

}  // namespace dualgemm::bench
