// Two's complement numbers of a part of a word.
#pragma once

#include <cstdint>

namespace ptxsim {

// The low `count` bits of `bits`, 1 to 64 of them, the highest of which is the sign; those above do
// not count.
constexpr int64_t sign_extended(uint64_t bits, unsigned count) {
  return static_cast<int64_t>(bits << (64 - count)) >> (64 - count);
}

}  // namespace ptxsim
