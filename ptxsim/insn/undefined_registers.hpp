// Which registers a thread may read before it has written them.
#pragma once

#include <vector>

#include "ptxsim/ir/program.hpp"

namespace ptxsim {

// Of a decoded program without functions, the parts of the register file that some path from its start may read first:
// those that have to hold the poison of what nobody wrote. Compilers leave few or none. With functions, all of the file.
std::vector<RegisterRange> may_be_read_unwritten(const Program& program);

}  // namespace ptxsim
