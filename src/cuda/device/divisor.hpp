// Divisions by numbers that the host knows. A device has no instruction for them: the compiler's
// sequence takes about 25 instructions and 100 cycles, four of them stood before the first copy of
// a CTA.
#pragma once

#include <cstdint>

#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

struct Divisor {
  uint32_t value = 1;
  uint32_t inverse = ~0u;  // floor((2^32 - 1) / value)

  Divisor() = default;
  explicit constexpr Divisor(uint32_t number) : value(number), inverse(~0u / number) {}
};

// floor(number / divisor): the product is that or one less, for every number.
DUALGEMM_HOST_DEVICE constexpr uint32_t quotient(uint32_t number, const Divisor& divisor) {
  const auto at_least =
      static_cast<uint32_t>(static_cast<uint64_t>(number) * divisor.inverse >> 32);
  return at_least + (number - at_least * divisor.value >= divisor.value ? 1 : 0);
}

}  // namespace dualgemm::cuda
