// Modifiers of floating-point instructions, as Insn::imm has them (insn/alu/float_values.hpp).
#pragma once

#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

// .rn .rz .rm .rp, .ftz, .sat. Without a rounding it is to nearest even, and `explicit_rounding`
// false.
uint64_t take_float_modifiers(Decode& d, bool& explicit_rounding);

}  // namespace ptxsim
