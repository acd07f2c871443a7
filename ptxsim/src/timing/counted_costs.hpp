// What the statements of a kernel cost, with the instructions that ptxas makes of them where they
// are to be had.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "ptxsim/ptxsim.hpp"
#include "timing/sass_listing.hpp"
#include "timing/statements.hpp"

namespace ptxsim::timing {

// Where the numbers of instructions of a kernel's statements come from.
struct InstructionCounts {
  std::string from;  // "table", "ptxas", "listing"
  std::string note;  // why it is the table's after all
  size_t statements = 0, counted = 0;
};

struct CountedCosts {
  std::shared_ptr<const StatementCosts> costs;
  InstructionCounts counts;
};

// The costs with what ptxas made of the kernel; `sections` empty: with the table's numbers alone.
CountedCosts counted_costs(const Program& program, std::span<const SassSection> sections,
                           std::string from, std::string note = {});

// `how`: "off", "auto" or "ptxas". `ptx`: of the program's module. A tool that is missing or fails
// is an error of "ptxas", and the note of "auto", which has the table's numbers then.
Result<CountedCosts> costs_by(const std::string& how, const std::string& ptx,
                              const Program& program);

}  // namespace ptxsim::timing
