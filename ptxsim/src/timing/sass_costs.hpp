// What ptxas made of the kernel at hand: how many machine instructions of which units each of its
// statements is, in place of the table of expansion.hpp.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ptxsim/ir/program.hpp"
#include "timing/sass_listing.hpp"

namespace ptxsim::timing {

// A statement that is executed once, as Expansion has it.
struct SassCost {
  double slots = 0, functions = 0, doubles = 0;
};

// By Insn::statement; empty where the listing says nothing that can be relied on. A loop that
// ptxas unrolled has several copies of a statement: they are counted by what is one instruction in
// each, memory's before arithmetic's. A division's slow path, which ptxas jumps around, and the
// subroutine that it calls count as not taken; with 64-bit integers it is not known which of them
// is taken, and the listing says nothing.
std::vector<std::optional<SassCost>> costs_of_sass(const Program& program,
                                                   std::span<const SassSection> sections);

}  // namespace ptxsim::timing
