// Control flow (PTX ISA 9.0, "Control Flow Instructions"): bra, brx.idx, exit, trap, brkpt;
// nanosleep, pmevent. call and ret: insn/call/.
#include <fmt/format.h>

#include <array>

#include "insn/registry.hpp"
#include "insn/traits.hpp"
#include "machine/execution.hpp"

namespace ptxsim {
namespace {

Outcome branch(Execution& x, const Insn& insn) {
  x.jump_target = insn.target;
  return Outcome::kJump;
}

struct BranchTable final : Detail {
  std::vector<uint32_t> targets;
};

// brx.idx: each lane has its own target.
Outcome branch_indexed(Execution& x, const Insn& insn) {
  const auto& table = static_cast<const BranchTable&>(*insn.detail).targets;
  const uint32_t* index = x.source<uint32_t>(insn.slot[0]);
  x.for_lanes([&](int lane) {
    if (index[lane] >= table.size())
      x.fault(
          fmt::format("brx.idx with index {}; the list has {} labels", index[lane], table.size()),
          lane);
    x.warp.pc[lane] = table[index[lane]];
  });
  x.jump_target = Execution::kPerLane;
  return Outcome::kJump;
}

Outcome leave(Execution&, const Insn&) { return Outcome::kExit; }

Outcome trap(Execution& x, const Insn&) { x.fault("trap was executed", x.first_lane()); }

Outcome sleep(Execution&, const Insn&) { return Outcome::kYield; }

Outcome nothing(Execution&, const Insn&) { return Outcome::kNext; }

void decode_bra(Decode& d) {
  d.modifiers().take("uni");
  d.expect_operands(1, 1);
  d.insn().target = d.label(0);
  d.insn().execute = branch;
}

void decode_brx(Decode& d) {
  if (!d.modifiers().take("idx")) d.fail("brx needs .idx");
  d.modifiers().take("uni");
  d.expect_operands(2, 2);
  d.insn().slot[0] = d.source(0, Type::kU32);
  auto* table = d.make_detail<BranchTable>();
  for (const Operand* target : d.elements(1)) {
    if (target->kind != Operand::Kind::kLabel) d.fail("brx.idx needs a list of labels");
    table->targets.push_back(target->label);
  }
  d.insn().execute = branch_indexed;
}

void decode_exit(Decode& d) {
  d.modifiers().take("uni");
  d.expect_operands(0, 0);
  d.insn().execute = leave;
}

void decode_trap(Decode& d) {
  d.expect_operands(0, 0);
  d.insn().execute = trap;
}

void decode_nanosleep(Decode& d) {
  if (!d.modifiers().take("u32")) d.fail("nanosleep needs .u32");
  d.expect_operands(1, 1);
  d.source(0, Type::kU32);
  d.insn().execute = sleep;
}

void decode_pmevent(Decode& d) {
  d.modifiers().take("mask");
  d.expect_operands(1, 1);
  d.insn().execute = nothing;
}

constexpr Decoder kDecoders[] = {{"bra", decode_bra, traits::kControl.with(Trait::kJumps)},
                                 {"brx", decode_brx, traits::kControl.with(Trait::kJumps)},
                                 {"exit", decode_exit, traits::kControl.with(Trait::kEnds)},
                                 {"trap", decode_trap, traits::kControl},
                                 {"brkpt", decode_trap, traits::kControl},
                                 {"nanosleep", decode_nanosleep, traits::kControl},
                                 {"pmevent", decode_pmevent, traits::kControl}};

}  // namespace

std::span<const Decoder> decoders_control() { return kDecoders; }

}  // namespace ptxsim
