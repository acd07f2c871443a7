// What ptxas makes of a statement of PTX, as the clock sees it: how many machine instructions, of
// which units, and how long the result takes. A table; what it does not name counts as one
// instruction of the integer unit, and as not modelled.
#pragma once

#include "ptxsim/ir/module.hpp"
#include "timing/latency.hpp"

namespace ptxsim::timing {

struct Expansion {
  double slots = 1;      // of issue
  double functions = 0;  // instructions of the special function unit
  double doubles = 0;    // of the FP64 unit
  double exchanges = 0;  // between lanes: they go the way of shared memory
  Chain chain;           // until its result can be used
  bool is_modelled = true;
};

Expansion expansion_of(const Statement& statement);

// What ptxas does with it besides: it merges some statements, and unrolls loops or not.
enum class Form : uint8_t {
  kOther,
  kSum,         // of 32 or 64 bits: one instruction with the product before it
  kProduct,     // a shift to the left, a product of twice the bits
  kLogic,       // of 32 bits: two of them are one instruction
  kComparison,  // writes a predicate
  kBranches,    // is made of branches, or keeps a loop from being unrolled
  kLoad,
  kTakesWork,  // from clusters that have not begun
};
Form form_of(const Statement& statement);

}  // namespace ptxsim::timing
