// What the .sync instructions of shfl_vote_match.cpp and redux.cpp share.
#pragma once

#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

// .sync, and operand `operand` as the member mask.
void take_sync(Decode& d, size_t operand);
void require_result(Decode& d);  // slot[0] must be a register
void decode_redux(Decode& d);

}  // namespace ptxsim
