// Joins an entry and the functions it may call into one list of statements.
#pragma once

#include "ptxsim/ir/program.hpp"

namespace ptxsim {

// Sets program.entry, program.start, program.functions and program.called from program.module.
// Functions come before the entry, and a function before its callers (where no recursion forbids
// it): lanes with the lowest program counter go first, so that those inside a call come back before
// the others have gone on without them.
//
// Each function has registers of its own in the warp's file. Lanes at the same statement can
// therefore go together whatever they were called by and however deep they are; only a recursive
// call puts the lanes' registers aside (machine/call_stack.hpp).
//
// An entry that calls nothing is taken as it is, without a copy.
//
// `is_call`: whether a statement calls what one of its operands names.
using IsCall = bool (*)(const Statement&);
void link(Program& program, const Entry& entry, IsCall is_call);

}  // namespace ptxsim
