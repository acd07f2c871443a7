// E2M1 ("FP4"): sign, two exponent bits, one mantissa bit; no infinities, no NaN. docs/formats.md,
// "E2M1 codes".
//
// The functions of e2m1.hpp, e4m3.hpp, half.hpp and quantize_block.hpp are always inlined: the
// files of src/cpu/isa are compiled for newer processors, and a copy emitted there must not be the
// one that the linker keeps for all files.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace dualgemm::core {

inline constexpr std::array<float, 16> kE2M1Values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,
                                                      4.0f,  6.0f,  -0.0f, -0.5f, -1.0f, -1.5f,
                                                      -2.0f, -3.0f, -4.0f, -6.0f};

// Twice the value, an integer: products and sums of these are exact in int8 x int8 -> int32. -0
// becomes 0.
inline constexpr std::array<int8_t, 16> kE2M1Doubled = {0, 1,  2,  3,  4,  6,  8,  12,
                                                        0, -1, -2, -3, -4, -6, -8, -12};

// Only the low four bits count.
[[gnu::always_inline]] constexpr float decode_e2m1(uint8_t code) noexcept {
  return kE2M1Values[code & 0xF];
}

// Code of |value|. `magnitude` must not be negative. Each threshold is the midpoint of two
// neighbours; it belongs to the neighbour whose code is even, hence < and <= in turn. The negated
// form makes a NaN count everywhere: 7. Without branches, so that a loop over this vectorises.
[[gnu::always_inline]] constexpr uint32_t encode_e2m1_magnitude(float magnitude) noexcept {
  return static_cast<uint32_t>(!(magnitude <= 0.25f)) +
         static_cast<uint32_t>(!(magnitude < 0.75f)) +
         static_cast<uint32_t>(!(magnitude <= 1.25f)) +
         static_cast<uint32_t>(!(magnitude < 1.75f)) + static_cast<uint32_t>(!(magnitude <= 2.5f)) +
         static_cast<uint32_t>(!(magnitude < 3.5f)) + static_cast<uint32_t>(!(magnitude <= 5.0f));
}

// Nearest, ties to the even code, saturates at 6; the sign is kept even where the magnitude becomes
// 0; NaN -> 7 with its sign.
[[gnu::always_inline]] constexpr uint8_t encode_e2m1(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint8_t>(encode_e2m1_magnitude(std::bit_cast<float>(bits & 0x7FFFFFFFu)) |
                              (bits >> 31 << 3));
}

}  // namespace dualgemm::core
