// Integer arithmetic on sizes. Operands are not negative and far below 2^63: what comes from
// outside is checked by core/problem.hpp before.
#pragma once

#include <cstdint>

namespace dualgemm::core {

constexpr int64_t ceil_div(int64_t a, int64_t b) noexcept { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) noexcept { return ceil_div(a, b) * b; }

}  // namespace dualgemm::core
