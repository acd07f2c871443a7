// E4M3 in the OCP "fn" form: bias 7, largest 448, no infinities, NaN = 0x7F and 0xFF.
// docs/formats.md, "E4M3 scales".
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace dualgemm::core {

inline constexpr float kE4M3Max = 448.0f;
inline constexpr uint8_t kE4M3Nan = 0x7F;

namespace detail {

constexpr float e4m3_value(uint32_t bits) noexcept {
  const uint32_t sign = (bits & 0x80u) << 24, exponent = bits >> 3 & 0xFu, mantissa = bits & 7u;
  if ((bits & 0x7Fu) == 0x7Fu) return std::bit_cast<float>(sign | 0x7FC00000u);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 120u) << 23 | mantissa << 20);
  const float subnormal = static_cast<float>(mantissa) * 0x1p-9f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
}

constexpr std::array<float, 256> e4m3_table() noexcept {
  std::array<float, 256> table{};
  for (uint32_t bits = 0; bits < 256; ++bits) table[bits] = e4m3_value(bits);
  return table;
}

// As the hardware reads a block scale: entry i is e4m3(i & 0x7F).
constexpr std::array<float, 256> scale_table() noexcept {
  std::array<float, 256> table{};
  for (uint32_t bits = 0; bits < 256; ++bits) table[bits] = e4m3_value(bits & 0x7Fu);
  return table;
}

}  // namespace detail

inline constexpr std::array<float, 256> kE4M3Values = detail::e4m3_table();
inline constexpr std::array<float, 256> kScaleValues = detail::scale_table();

[[gnu::always_inline]] constexpr float decode_e4m3(uint8_t bits) noexcept {
  return kE4M3Values[bits];
}

// The sign bit of a block scale is ignored; 0x7F and 0xFF are NaN.
[[gnu::always_inline]] constexpr float decode_scale(uint8_t bits) noexcept {
  return kScaleValues[bits];
}

// Nearest even, saturates at 448 (infinity too); NaN -> 0x7F with its sign.
[[gnu::always_inline]] constexpr uint8_t encode_e4m3(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 24 & 0x80u;
  const uint32_t magnitude_bits = bits & 0x7FFFFFFFu;
  if (magnitude_bits > 0x7F800000u) return static_cast<uint8_t>(sign | kE4M3Nan);
  float magnitude = std::bit_cast<float>(magnitude_bits);
  if (magnitude > kE4M3Max) magnitude = kE4M3Max;
  if (magnitude < 0x1p-6f) {
    // Subnormal: the quantum 2^-9 is the last place of a float in [2^14, 2^15), so that the
    // addition itself rounds.
    const float shifted = magnitude + 0x1p14f;
    return static_cast<uint8_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0x1p14f)));
  }
  const uint32_t exact = std::bit_cast<uint32_t>(magnitude);
  const uint32_t rounded =
      exact + 0x7FFFFu + (exact >> 20 & 1u);  // half of the 20 dropped bits, to even
  return static_cast<uint8_t>(sign | ((rounded >> 20) - (120u << 3)));
}

}  // namespace dualgemm::core
