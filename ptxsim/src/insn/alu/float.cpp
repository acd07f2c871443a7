// Floating-point instructions: the list of the roots that are theirs alone, and their common
// modifiers.
#include "insn/alu/arithmetic.hpp"
#include "insn/alu/float_decode.hpp"
#include "insn/alu/float_values.hpp"
#include "insn/registry.hpp"

namespace ptxsim {

uint64_t take_float_modifiers(Decode& d, bool& explicit_rounding) {
  const int rounding = d.modifiers().take_one_of({"rn", "rz", "rm", "rp"});
  explicit_rounding = rounding >= 0;
  uint64_t modifiers =
      explicit_rounding ? static_cast<uint64_t>(rounding) : 0;  // in the order of Rounding
  if (d.modifiers().take("ftz")) modifiers |= kFtz;
  if (d.modifiers().take("sat")) modifiers |= kSat;
  return modifiers;
}

std::span<const Decoder> decoders_float() {
  static constexpr Decoder kDecoders[] = {
      {"fma", decode_float_fma},       {"rcp", decode_float_function},
      {"sqrt", decode_float_function}, {"rsqrt", decode_float_function},
      {"ex2", decode_float_function},  {"lg2", decode_float_function},
      {"sin", decode_float_function},  {"cos", decode_float_function},
      {"tanh", decode_float_function}, {"copysign", decode_copysign},
  };
  return kDecoders;
}

}  // namespace ptxsim
