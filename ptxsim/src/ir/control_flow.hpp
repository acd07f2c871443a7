// Which statements may come next: for analyses of a kernel's text.
#pragma once

#include <cstdint>
#include <vector>

#include "ptxsim/ir/program.hpp"

namespace ptxsim {

// What comes next in the thread that executed a statement: the next one of the text, and labels.
struct NextStatements {
  bool falls_through = true;
  std::vector<uint32_t> labels;  // indices of statements; one past the last: the end
};
NextStatements next_of(const Program& program, uint32_t statement);

}  // namespace ptxsim
