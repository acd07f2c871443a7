// Registers of a warp that an unfinished asynchronous operation owns (R8).
#pragma once

#include <cstdint>

namespace ptxsim {

struct Execution;
struct Insn;

// Called before each statement of a warp that has owned registers.
//  - A mov that only reads is put off: compilers copy results of tcgen05.ld between the asm
//    statements of the load and of its wait. It happens when its source is released; its
//    destination is owned until then. Returns true.
//  - Another read of a load's result: the load completes now, as the hardware's scoreboard makes it
//    do, and R8 is reported as a warning (CUTLASS 4.2 computes before tcgen05.wait::ld).
//  - Everything else is a Fault.
bool put_off_or_refuse(Execution& x, const Insn& insn);

// The operations of `owner` are complete: their registers may be used, and what was put off
// happens.
void release_owned(Execution& x, uint64_t owner);

// A statement writes registers that wgmma.mma_async uses: wgmma.fence must come before the next
// one.
void note_unfenced(Execution& x, const Insn& insn);

}  // namespace ptxsim
