// cvt: what its files share.
#pragma once

#include <optional>

#include "number/formats.hpp"
#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

struct Conversion : Detail {
  Type to = Type::kNone, from = Type::kNone;
  unsigned to_width = 0, from_width = 0;  // bytes of the registers; may exceed the types'
  bool integral = false;                  // .rni .rzi .rmi .rpi
  bool has_rounding = false;
  Rounding rounding = Rounding::kNearestEven;
  bool ftz = false, sat = false, relu = false, satfinite = false;
};

std::optional<Format> format_of(Type type);  // of one element of a type: f16 of f16x2
unsigned elements_of(Type type);             // 1, 2 or 4

void decode_cvt_scalar(Decode& d, const Conversion& how);      // insn/alu/cvt_scalar.cpp
void decode_cvt_packed(Decode& d, const Conversion& how);      // insn/alu/cvt_packed.cpp
void decode_cvt_stochastic(Decode& d, const Conversion& how);  // .rs, insn/alu/cvt_stochastic.cpp
void decode_cvt_pack(Decode& d);                               // cvt.pack, insn/alu/cvt_packed.cpp

}  // namespace ptxsim
