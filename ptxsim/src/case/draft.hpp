// A first case for an entry that has none.
#pragma once

#include <cstdint>
#include <string>

#include "ptxsim/ptxsim.hpp"

namespace ptxsim {

struct CaseDraft {
  std::string json;  // parse_case() accepts it, and its parameters are as large as the entry's
  uint64_t parameters = 0, buffers = 0;
  uint64_t todos = 0;  // comments that begin with "todo": what a person must decide
};

// Sizes and alignments of parameters, block and cluster are what the PTX says. Which parameters are
// addresses, of what elements, and where tensor maps lie is guessed from how the entry uses them;
// extents, contents and values are examples.
CaseDraft draft_case(const Module& module, const Entry& entry);

}  // namespace ptxsim
