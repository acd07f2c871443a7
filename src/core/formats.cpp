// The public scalar codecs forward to the inline ones that the library itself uses.
#include "dualgemm/formats.hpp"

#include "core/e2m1.hpp"
#include "core/e4m3.hpp"
#include "core/half.hpp"

namespace dualgemm {

float decode_e2m1(uint8_t code) noexcept { return core::decode_e2m1(code); }
uint8_t encode_e2m1(float value) noexcept { return core::encode_e2m1(value); }
float decode_e4m3(uint8_t bits) noexcept { return core::decode_e4m3(bits); }
float decode_scale(uint8_t bits) noexcept { return core::decode_scale(bits); }
uint8_t encode_e4m3(float value) noexcept { return core::encode_e4m3(value); }
float decode_f16(uint16_t bits) noexcept { return core::decode_f16(bits); }
uint16_t encode_f16(float value) noexcept { return core::encode_f16(value); }
float decode_bf16(uint16_t bits) noexcept { return core::decode_bf16(bits); }
uint16_t encode_bf16(float value) noexcept { return core::encode_bf16(value); }

}  // namespace dualgemm
