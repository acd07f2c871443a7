// Accesses of a warp to its CTA's own shared memory with which nothing can be wrong, looked at
// all at once.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "insn/memory/memory.hpp"

namespace ptxsim {

using SharedOffsets = std::array<uint32_t, kWarpSize>;  // by lane

// Where the lanes' accesses are, if all of them are whole and aligned, in their CTA's own memory,
// in which no mbarrier lives. Otherwise false: they are to be looked at one by one.
bool find_own_shared(const Execution& x, const AccessDetail& a, SharedOffsets& offsets);
bool all_written(const Execution& x, const SharedOffsets& offsets, uint32_t bytes);

template <class F>
void for_lanes_of(uint32_t mask, F&& f) {
  if (mask == 0xffffffffu)  // most warps are whole: a loop that the compiler can unroll
    for (int lane = 0; lane < static_cast<int>(kWarpSize); ++lane) f(lane);
  else
    for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

}  // namespace ptxsim
