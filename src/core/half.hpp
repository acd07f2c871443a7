// IEEE binary16 (fp16) and bfloat16. Assumes the default rounding mode (nearest even).
#pragma once

#include <bit>
#include <cstdint>

namespace dualgemm::core {

[[gnu::always_inline]] constexpr float decode_f16(uint16_t bits) noexcept {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = bits >> 10 & 0x1Fu, mantissa = bits & 0x3FFu;
  if (exponent == 0x1Fu) {
    const uint32_t quiet = mantissa != 0 ? 0x00400000u : 0u;
    return std::bit_cast<float>(sign | 0x7F800000u | quiet | mantissa << 13);
  }
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112u) << 23 | mantissa << 13);
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
}

// Nearest even; overflow to infinity; NaN stays a quiet NaN with the upper bits of its payload.
[[gnu::always_inline]] constexpr uint16_t encode_f16(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u)
    return static_cast<uint16_t>(sign | 0x7E00u | (magnitude >> 13 & 0x1FFu));
  if (magnitude >= 0x477FF000u)
    return static_cast<uint16_t>(sign | 0x7C00u);  // >= 65520 = 65504 + half a step
  if (magnitude < 0x38800000u) {                   // < 2^-14: subnormal, quantum 2^-24
    // The quantum is the last place of a float in [1/2, 1), so that the addition itself rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t rounded =
      magnitude + 0xFFFu + (magnitude >> 13 & 1u);  // half of the 13 dropped bits, to even
  return static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

[[gnu::always_inline]] constexpr float decode_bf16(uint16_t bits) noexcept {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  const uint32_t quiet = (wide & 0x7FFFFFFFu) > 0x7F800000u ? 0x00400000u : 0u;
  return std::bit_cast<float>(wide | quiet);
}

// Nearest even; overflow to infinity; NaN stays a quiet NaN with the upper bits of its payload.
[[gnu::always_inline]] constexpr uint16_t encode_bf16(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(bits >> 16 | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace dualgemm::core
