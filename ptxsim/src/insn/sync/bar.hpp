// Parts of the roots bar and barrier; setmaxnreg.
#pragma once

#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

void decode_named_barrier(Decode& d, bool aligned);
void decode_cluster_barrier(Decode& d);
void decode_setmaxnreg(Decode& d);

}  // namespace ptxsim
