// Memory orders of instructions (PTX ISA 9.0, "Memory Consistency Model"). Memory itself is
// sequentially consistent here: what an order means is for the observers (check/memory_order.cpp).
#pragma once

#include <cstdint>
#include <optional>

#include "machine/memory/addresses.hpp"
#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

enum class MemoryOrder : uint8_t { kWeak, kRelaxed, kAcquire, kRelease, kAcqRel };

inline bool acquires(MemoryOrder o) {
  return o == MemoryOrder::kAcquire || o == MemoryOrder::kAcqRel;
}
inline bool releases(MemoryOrder o) {
  return o == MemoryOrder::kRelease || o == MemoryOrder::kAcqRel;
}
inline bool is_strong(MemoryOrder o) { return o != MemoryOrder::kWeak; }

// Takes .cta .cluster .gpu .sys; nothing when there is none.
std::optional<Scope> take_scope(Decode& d);

// A strong write of one lane: before or after it is performed; a strong read: after it. `at` has
// the scope. `updates`: the write of an atomic.
inline void tell_of_strong_write(const Execution& x, int lane, const MemoryAt& at,
                                 MemoryOrder order, bool updates) {
  x.tell([&](Observer& o) { o.strong_write(x, lane, at, releases(order), updates); });
}
inline void tell_of_strong_read(const Execution& x, int lane, const MemoryAt& at,
                                MemoryOrder order) {
  x.tell([&](Observer& o) { o.strong_read(x, lane, at, acquires(order)); });
}

}  // namespace ptxsim
