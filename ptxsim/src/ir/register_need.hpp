// How many registers a thread may need.
#pragma once

#include <cstdint>

#include "ptxsim/ir/program.hpp"

namespace ptxsim {

// 32-bit registers that are live at once, at the most, with a few for what ptxas needs besides, as
// it allots them: in steps of 8, at most `.maxnreg` or 255. An estimate: ptxas moves loads forward,
// and keeps what is the same for all lanes in registers of its own.
uint32_t registers_needed(const Program& program);

}  // namespace ptxsim
