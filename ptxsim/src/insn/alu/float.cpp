// Floating-point instructions: the list of the roots that are theirs alone, and their common
// modifiers.
#include "insn/alu/arithmetic.hpp"
#include "insn/alu/float_decode.hpp"
#include "insn/alu/float_values.hpp"
#include "insn/registry.hpp"
#include "insn/traits.hpp"

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
  static constexpr Form kApproximateForms[] = {{{"approx"}, traits::kArithmetic}};
  static constexpr Decoder kDecoders[] = {
      {"fma", decode_float_fma, traits::kArithmetic},
      {"rcp", decode_float_function, traits::kArithmetic, kApproximateForms},
      {"sqrt", decode_float_function, traits::kArithmetic, kApproximateForms},
      {"rsqrt", decode_float_function, traits::kArithmetic, kApproximateForms},
      {"ex2", decode_float_function, traits::kArithmetic},
      {"lg2", decode_float_function, traits::kArithmetic},
      {"sin", decode_float_function, traits::kArithmetic},
      {"cos", decode_float_function, traits::kArithmetic},
      {"tanh", decode_float_function, traits::kArithmetic},
      {"copysign", decode_copysign, traits::kComputing},
  };
  return kDecoders;
}

}  // namespace ptxsim
