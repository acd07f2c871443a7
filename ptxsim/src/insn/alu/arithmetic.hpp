// Decoders of roots that integers and floating-point numbers share: the integer registry lists them
// and hands over.
#pragma once

#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

// Floating-point forms (insn/float_*.cpp).
void decode_float_add_sub(Decode& d);
void decode_float_mul(Decode& d);
void decode_float_fma(Decode& d);  // fma, and mad of floats
void decode_float_div(Decode& d);
void decode_float_abs_neg(Decode& d);
void decode_float_min_max(Decode& d);
void decode_float_function(Decode& d);  // rcp, sqrt, rsqrt, ex2, lg2, sin, cos, tanh
void decode_copysign(Decode& d);

// Integer forms.
void decode_add_sub(Decode& d);
void decode_carry(Decode& d);  // add.cc, addc, sub.cc, subc, mad.cc, madc
void decode_mul(Decode& d);
void decode_mad(Decode& d);
void decode_mul24(Decode& d);  // mul24 and mad24
void decode_div_rem(Decode& d);
void decode_abs_neg(Decode& d);
void decode_min_max(Decode& d);
void decode_sad(Decode& d);
void decode_dot_product(Decode& d);  // dp4a, dp2a
void decode_video(Decode& d);        // vadd, vadd2, vadd4, ...
void decode_bit_count(Decode& d);    // popc, clz, brev
void decode_bfind(Decode& d);
void decode_fns(Decode& d);
void decode_bit_field(Decode& d);  // bfe, bfi
void decode_bmsk_szext(Decode& d);
void decode_logic(Decode& d);  // and, or, xor, not, cnot
void decode_lop3(Decode& d);
void decode_shift(Decode& d);  // shl, shr
void decode_funnel_shift(Decode& d);

}  // namespace ptxsim
