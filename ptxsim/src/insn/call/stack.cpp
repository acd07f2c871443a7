#include "insn/call/stack.hpp"

#include <fmt/format.h>

#include <bit>

#include "machine/execution.hpp"
#include "machine/registers/call_stack.hpp"

namespace ptxsim {
namespace {

constexpr uint64_t kDefaultAlignment = 8;  // PTX ISA, "alloca"
constexpr uint64_t kMostAlignment = 1 << 16;

// What the frame of the function or the entry takes without alloca.
uint64_t end_of_frame(const Execution& x, int lane) {
  const CallStack* calls = x.warp.calls.get();
  if (calls == nullptr || calls->frames[lane].empty()) return x.program().entry->local_bytes;
  const CallFrame& frame = calls->frames[lane].back();
  return frame.base + frame.function->frame_bytes;
}

// T: the type of the address and the size. Insn::imm: alignment. The stack grows upwards.
template <class T>
Outcome allocate(Execution& x, const Insn& insn) {
  const T* size = x.source<T>(insn.slot[1]);
  T* out = x.destination<T>(insn.slot[0]);
  x.for_lanes([&](int lane) {
    const uint64_t begin = (x.warp.local_top[lane] + insn.imm - 1) / insn.imm * insn.imm;
    const uint64_t bytes = size[lane];
    // A sum that would overflow is as much too large as the size alone.
    set_local_top(x, lane, bytes > kMaxLocalBytes ? bytes : begin + bytes);
    out[lane] = static_cast<T>(begin);
  });
  return Outcome::kNext;
}

template <class T>
Outcome save(Execution& x, const Insn& insn) {
  T* out = x.destination<T>(insn.slot[0]);
  x.for_lanes([&](int lane) { out[lane] = static_cast<T>(x.warp.local_top[lane]); });
  return Outcome::kNext;
}

template <class T>
Outcome restore(Execution& x, const Insn& insn) {
  const T* saved = x.source<T>(insn.slot[1]);
  x.for_lanes([&](int lane) {
    if (saved[lane] < end_of_frame(x, lane) || saved[lane] > x.warp.local_top[lane])
      x.fault(fmt::format("stackrestore of 0x{:x}, which stacksave has not given in this function; "
                          "the frame ends at 0x{:x}, the stack at 0x{:x}",
                          saved[lane], end_of_frame(x, lane), x.warp.local_top[lane]),
              lane);
    x.warp.local_top[lane] = saved[lane];
  });
  return Outcome::kNext;
}

Type take_address_type(Decode& d) {
  const Type type = d.modifiers().take_type();
  if (type != Type::kU32 && type != Type::kU64) d.fail("the type must be .u32 or .u64");
  return type;
}

}  // namespace

void decode_alloca(Decode& d) {
  const Type type = take_address_type(d);
  d.expect_operands(2, 3);
  d.insn().slot[0] = d.destination(0, type);
  d.insn().slot[1] = d.source(1, type);
  d.insn().imm = kDefaultAlignment;
  if (d.num_operands() == 3) d.insn().imm = d.immediate(2).value_or(0);
  if (!std::has_single_bit(d.insn().imm) || d.insn().imm > kMostAlignment)
    d.fail(
        fmt::format("alignment {}; must be a power of two up to {}", d.insn().imm, kMostAlignment));
  if (!d.insn().slot[0].present()) d.fail("alloca needs a destination");
  d.insn().execute = type == Type::kU32 ? &allocate<uint32_t> : &allocate<uint64_t>;
}

void decode_stacksave(Decode& d) {
  const Type type = take_address_type(d);
  d.expect_operands(1, 1);
  d.insn().slot[0] = d.destination(0, type);
  if (!d.insn().slot[0].present()) d.fail("stacksave needs a destination");
  d.insn().execute = type == Type::kU32 ? &save<uint32_t> : &save<uint64_t>;
}

void decode_stackrestore(Decode& d) {
  const Type type = take_address_type(d);
  d.expect_operands(1, 1);
  d.insn().slot[1] = d.source(0, type);
  d.insn().execute = type == Type::kU32 ? &restore<uint32_t> : &restore<uint64_t>;
}

}  // namespace ptxsim
