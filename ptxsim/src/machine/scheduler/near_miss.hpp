// Waiters that would miss a phase only because the interpreter runs warps in turns.
#pragma once

#include <cstdint>

namespace ptxsim {

struct Cta;
struct Mbarrier;

// To be called before the current phase of the barrier at `offset` of `cta` completes. In the eager
// schedule, lanes that are suspended in mbarrier.try_wait for the phase before it are released: on
// hardware they poll while they wait (PTX ISA 9.0, "mbarrier.test_wait, mbarrier.try_wait":
// potentially blocking), and see a phase that completes although the barrier goes on soon after.
// They acquire what that phase handed over, and nothing of the one that completes now. With
// Options::sanitize an advisory (R10) says that the program relied on their speed. The other
// schedules let them miss it.
void release_waiters_of_last_phase(Cta& cta, uint32_t offset, const Mbarrier& barrier);

}  // namespace ptxsim
