// Registers of a warp that an unfinished asynchronous operation owns (R8).
#pragma once

#include <cstdint>

namespace ptxsim {

struct Execution;
struct Insn;

// Called before each statement of a warp that has owned registers. A Fault when the statement
// touches one, but for a mov that only reads: compilers copy results of tcgen05.ld between the asm
// statements of the load and of its wait, and ptxas makes the copy disappear. Such a mov is
// executed when its source is released, and its destination is owned until then. True when it was
// put off so.
bool put_off_or_refuse(Execution& x, const Insn& insn);

// The operations of `owner` are complete: their registers may be used, and what was put off
// happens.
void release_owned(Execution& x, uint64_t owner);

}  // namespace ptxsim
