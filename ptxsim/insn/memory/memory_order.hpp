// Release and acquire patterns through memory (PTX ISA 9.0, "Memory Consistency Model", "Release
// and Acquire Patterns"). Memory itself is sequentially consistent here; what is kept are the
// ordering facts for the sanitizer: each address that strong operations use carries the clock that
// the last release pattern on it released.
//
// Modelled: st.release / ld.acquire / atom with .release, .acquire, .acq_rel; a fence followed by a
// relaxed or volatile write; a relaxed or volatile read followed by a fence. A write replaces the
// address's clock, an atomic adds to it (release sequence). Not modelled: scopes (every scope is as
// wide as the cluster), and chains over clusters, whose clocks are not comparable.
#pragma once

#include <cstdint>

#include "ptxsim/insn/decode.hpp"
#include "ptxsim/machine/addresses.hpp"

namespace ptxsim {

enum class MemoryOrder : uint8_t { kWeak, kRelaxed, kAcquire, kRelease, kAcqRel };

inline bool acquires(MemoryOrder o) {
  return o == MemoryOrder::kAcquire || o == MemoryOrder::kAcqRel;
}
inline bool releases(MemoryOrder o) {
  return o == MemoryOrder::kRelease || o == MemoryOrder::kAcqRel;
}
inline bool is_strong(MemoryOrder o) { return o != MemoryOrder::kWeak; }

// Takes .cta .cluster .gpu .sys; false when there is none.
bool take_scope(Decode& d);

// Calls of the handlers, for one lane. A strong write: before or after it is performed; a strong
// read: after it. `is_update`: the write of an atomic.
void note_strong_write(const Execution& x, int lane, const MemoryAt& at, MemoryOrder order,
                       bool is_update);
void note_strong_read(const Execution& x, int lane, const MemoryAt& at, MemoryOrder order);
// fence, membar: its release side, then its acquire side, as asked for.
void note_fence(const Execution& x, bool releasing, bool acquiring);

}  // namespace ptxsim
