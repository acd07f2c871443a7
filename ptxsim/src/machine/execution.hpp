// What a handler sees: one statement, executed for some lanes of one warp.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "machine/cta.hpp"
#include "machine/machine.hpp"
#include "ptxsim/error.hpp"
#include "ptxsim/ir/program.hpp"

namespace ptxsim {

struct Execution {
  Machine& machine;
  Cluster& cluster;
  Cta& cta;
  Warp& warp;
  uint32_t mask;  // the lanes: active, and the guard is true
  uint32_t jump_target =
      0;  // Outcome::kJump: where all of `mask` go, or kPerLane when the handler set warp.pc
  const std::byte* constants;
  std::byte* registers;
  const Insn* insn = nullptr;

  static constexpr uint32_t kPerLane = 0xffffffffu;

  template <class Event>
  [[gnu::always_inline]] void tell(Event&& event) const {
    cluster.observers.tell(event);
  }
  bool is_observed() const { return cluster.observers.any(); }
  // The number of an operation that `lane` starts, told to the observers: once before its accesses,
  // when there are any.
  AsyncOp issue(int lane, AsyncKind kind) const {
    const AsyncOp op{++cluster.last_async_op};
    cluster.async.op = op;
    tell([&](Observer& o) { o.issued(*this, lane, op, kind); });
    return op;
  }
  const Program& program() const { return machine.program(); }

  // The 32 lanes of an operand.
  template <class T>
  const T* source(Slot slot) const {
    const std::byte* base = slot.is_constant() ? constants : registers;
    return reinterpret_cast<const T*>(base + (slot.at & ~Slot::kConstant));
  }
  template <class T>
  T* destination(Slot slot) const {
    return reinterpret_cast<T*>(registers + slot.at);
  }
  uint32_t predicate(Slot slot, bool negated = false) const {
    const uint32_t bits = *source<uint32_t>(slot);
    return negated ? ~bits : bits;
  }
  // Writes the predicate's bits of the lanes in `mask` only.
  void set_predicate(Slot slot, uint32_t bits) const {
    if (!slot.present()) return;
    uint32_t* p = destination<uint32_t>(slot);
    *p = (*p & ~mask) | (bits & mask);
  }
  int first_lane() const { return std::countr_zero(mask); }
  // Calls f(lane) for the lanes of the mask, in order.
  template <class F>
  void for_lanes(F&& f) const {
    for (uint32_t left = mask; left != 0; left &= left - 1) f(std::countr_zero(left));
  }
  [[noreturn]] void fault(std::string message, int lane = -1) const {
    throw Fault(std::move(message), ErrorKind::kFault, lane);
  }
  // A value that must be the same in all lanes of the mask; the first lane's.
  template <class T>
  T uniform(Slot slot, const char* what) const {
    const T* lanes = source<T>(slot);
    const T value = lanes[first_lane()];
    for_lanes([&](int lane) {
      if (lanes[lane] != value) refuse_difference(what, lane);
    });
    return value;
  }
  [[noreturn]] void refuse_difference(const char* what, int lane) const;
  // Notes what the lanes wait for and blocks them.
  Outcome block(WaitInfo wait) const {
    for_lanes([&](int lane) { warp.wait[lane] = wait; });
    return Outcome::kBlock;
  }
  uint32_t thread_of(int lane) const {
    return warp.index * kWarpSize + lane;
  }  // linear %tid in the CTA
};

// A shared-memory address resolved: whose memory, and where.
struct SharedAt {
  Cta* cta;
  uint32_t offset;
};
// From a shared::cluster address, of which the low 32 bits count; `own_only`: an address of another
// CTA is a Fault (.shared::cta). Range-checked for `bytes`, and aligned to `alignment`; a Fault
// otherwise.
SharedAt resolve_shared(const Execution& x, uint64_t address, uint64_t bytes, uint32_t alignment,
                        bool own_only, int lane);
// From a generic address that must lie in the shared window. A shared::cluster address extended
// with zeros is taken as well: ptxas makes mbarrier, bulk-copy and tcgen05 instructions of the
// address's low 32 bits, and kernels that run rely on it.
uint64_t shared_from_generic(const Execution& x, uint64_t generic, int lane);
inline uint32_t shared_address(const Cta& cta, uint32_t offset) {
  return (cta.rank << kSharedRankShift) | offset;
}

}  // namespace ptxsim
