// alloca, stacksave, stackrestore (PTX ISA 9.0, "Stack Manipulation Instructions").
#pragma once

#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

void decode_alloca(Decode& d);
void decode_stacksave(Decode& d);
void decode_stackrestore(Decode& d);

}  // namespace ptxsim
