// What is demanded of the fused kernel on an H200.
#pragma once

#include <cstdint>
#include <optional>

namespace dualgemm::bench {

inline constexpr int64_t kFloorTargetMaxM = 16;
inline constexpr double kFloorTarget = 1.25;  // times a plain cold read of the packed weights

// Its time at most, over the best of cuBLAS in fp16; for K = 7168.
inline std::optional<double> ratio_target(int64_t m, int64_t k) {
  struct Step {
    int64_t up_to_m;
    double ratio;
  };
  constexpr Step kSteps[] = {{16, 0.36},  {32, 0.38},  {64, 0.45},
                             {128, 0.72}, {256, 0.92}, {512, 0.97}};
  if (k != 7168) return std::nullopt;
  for (const Step& step : kSteps) {
    if (m <= step.up_to_m) return step.ratio;
  }
  return 1.00;
}

inline std::optional<double> floor_target(int64_t m) {
  if (m > kFloorTargetMaxM) return std::nullopt;
  return kFloorTarget;
}

}  // namespace dualgemm::bench
