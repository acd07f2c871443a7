// Which registers a thread may read before it has written them.
#pragma once

#include <vector>

#include "ptxsim/ir/program.hpp"

namespace ptxsim {

// The parts of the register file that some path from a decoded program's start may read before it
// writes them: they have to hold poison when a warp starts. Compilers leave few or none. For a
// program with functions, all of the file.
std::vector<RegisterRange> may_be_read_unwritten(const Program& program);

}  // namespace ptxsim
