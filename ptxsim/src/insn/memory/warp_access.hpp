// Accesses of a warp with which nothing can be wrong, looked at all at once.
#pragma once

#include <array>
#include <cstdint>

#include "insn/memory/memory.hpp"
#include "ptxsim/machine/observer.hpp"

namespace ptxsim {

// Where the lanes' accesses are, if all of them are whole and aligned, in their CTA's own shared
// memory, in which no mbarrier lives. Otherwise false: they are to be looked at one by one.
bool find_own_shared(const Execution& x, const AccessDetail& a, SharedOffsets& offsets);
// Whether every byte that they read has been written.
bool all_written(const Execution& x, const SharedOffsets& offsets, uint32_t bytes);

// Where the lanes read one buffer of global memory.
struct GlobalReads {
  std::array<uint64_t, kWarpSize> addresses;  // a lane without an access has that of one with
  std::array<uint32_t, kWarpSize> offsets;    // behind `from`
  const std::byte* from;
};
// The same of reads of one buffer of global memory, of bytes that have all been written.
bool find_global_reads(const Execution& x, const AccessDetail& a, GlobalReads& reads);

}  // namespace ptxsim
