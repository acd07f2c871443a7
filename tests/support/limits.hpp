// The ends of the number formats, by the names that the tests use.
#pragma once

#include <cstdint>
#include <limits>

namespace dualgemm::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr int64_t kLargestInt = std::numeric_limits<int64_t>::max();

}  // namespace dualgemm::test
