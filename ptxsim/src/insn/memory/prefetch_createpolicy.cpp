// prefetch, prefetchu, discard, applypriority, createpolicy (PTX ISA 9.0, "Data Movement and
// Conversion Instructions"). There are no caches here: operands are checked, nothing else happens.
// discard leaves the data as it is; reading it before it is written again would be a mistake of the
// kernel that is not noticed.
#include <fmt/format.h>

#include "insn/memory/memory.hpp"

namespace ptxsim {
namespace {

struct CacheDetail final : Detail {
  AddressOperand address;
  uint32_t bytes = 1;
  uint32_t alignment = 1;
};

Outcome nothing(Execution&, const Insn&) { return Outcome::kNext; }

Outcome check_range(Execution& x, const Insn& insn) {
  const auto& a = static_cast<const CacheDetail&>(*insn.detail);
  x.for_lanes([&](int lane) {
    const MemoryAt at =
        locate(x, a.address.space, a.address.at(x, lane), a.bytes, a.alignment, lane);
    if (at.space == Space::kShared || at.space == Space::kLocal)
      x.fault("this address must be one of global, constant or parameter memory", lane);
    if (at.space == Space::kGlobal && x.machine.global().find(at.offset) == nullptr)
      x.fault(fmt::format("global address 0x{:x} is not inside a registered buffer", at.offset),
              lane);
  });
  return Outcome::kNext;
}

// A policy is opaque to the kernel, and no instruction here looks at it.
Outcome make_policy(Execution& x, const Insn& insn) {
  constexpr uint64_t kPolicy = uint64_t{1} << 60;
  uint64_t* policy = x.destination<uint64_t>(insn.slot[0]);
  x.for_lanes([&](int lane) { policy[lane] = kPolicy; });
  return Outcome::kNext;
}

void decode_checked_range(Decode& d, uint32_t bytes, uint32_t alignment) {
  auto* a = d.make_detail<CacheDetail>();
  a->address = take_address(d, d.operand(0), take_space(d));
  a->bytes = bytes;
  a->alignment = alignment;
  d.insn().execute = check_range;
}

// discard and applypriority: [a], 128
void decode_line(Decode& d) {
  d.expect_operands(2, 2);
  if (d.immediate(1) != 128u) d.fail("the size must be the literal 128");
  decode_checked_range(d, 128, 128);
}

}  // namespace

void decode_prefetch(Decode& d) {
  d.expect_operands(1, 1);
  if (d.modifiers().take("tensormap")) {
    // A tensor map has 128 bytes at a multiple of 64.
    return decode_checked_range(d, 128, 64);
  }
  if (d.modifiers().take_one_of({"L1", "L2", "L2::evict_last", "L2::evict_normal"}) < 0)
    d.fail("prefetch needs .L1, .L2, .L2::evict_last, .L2::evict_normal or .tensormap");
  const AddressSpace space = take_space(d);
  if (space.space != Space::kGlobal && space.space != Space::kLocal &&
      space.space != Space::kGeneric)
    d.fail("prefetch needs .global, .local or generic addressing");
  take_address(d, d.operand(0), space);
  d.insn().execute = nothing;
}

void decode_prefetchu(Decode& d) {
  if (!d.modifiers().take("L1")) d.fail("prefetchu needs .L1");
  d.expect_operands(1, 1);
  take_address(d, d.operand(0), {});
  d.insn().execute = nothing;
}

void decode_discard(Decode& d) {
  if (!d.modifiers().take("L2")) d.fail("discard needs .L2");
  decode_line(d);
}

void decode_applypriority(Decode& d) {
  if (!d.modifiers().take("L2::evict_normal")) d.fail("applypriority needs .L2::evict_normal");
  decode_line(d);
}

void decode_createpolicy(Decode& d) {
  auto& m = d.modifiers();
  const int form = m.take_one_of({"fractional", "range", "cvt"});
  if (form < 0) d.fail("createpolicy needs .fractional, .range or .cvt");
  if (!m.take("b64")) d.fail("createpolicy needs .b64");
  if (form == 2) {
    if (!m.take("L2")) d.fail("createpolicy.cvt needs .L2");
    d.expect_operands(2, 2);
    d.source(1, Type::kB64);
  } else {
    int priorities = 0;
    while (m.take_prefix("L2::evict_")) ++priorities;
    if (priorities < 1 || priorities > 2)
      d.fail(fmt::format("createpolicy with {} priorities; needs one or two", priorities));
    if (form == 0) {
      d.expect_operands(1, 2);
      if (d.num_operands() == 2) d.source(1, Type::kF32);
    } else {
      m.take("global");
      d.expect_operands(4, 4);
      take_address(d, d.operand(1), {});
      d.source(2, Type::kU32);
      d.source(3, Type::kU32);
    }
  }
  d.insn().slot[0] = d.destination(0, Type::kB64);
  if (!d.insn().slot[0].present()) d.fail("createpolicy needs a destination");
  d.insn().execute = make_policy;
}

}  // namespace ptxsim
