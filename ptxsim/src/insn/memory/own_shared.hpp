// Accesses of a warp to its CTA's own shared memory with which nothing can be wrong, looked at
// all at once.
#pragma once

#include <array>
#include <cstdint>

#include "insn/memory/memory.hpp"

namespace ptxsim {

using SharedOffsets = std::array<uint32_t, kWarpSize>;  // by lane

// Where the lanes' accesses are, if all of them are whole and aligned, in their CTA's own memory,
// in which no mbarrier lives. Otherwise false: they are to be looked at one by one.
bool find_own_shared(const Execution& x, const AccessDetail& a, SharedOffsets& offsets);
bool all_written(const Execution& x, const SharedOffsets& offsets, uint32_t bytes);

}  // namespace ptxsim
