// call, ret (PTX ISA 9.0, "Control Flow Instructions: call, ret").
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "insn/call/call_site.hpp"
#include "insn/call/extern_function.hpp"
#include "insn/call/stack.hpp"
#include "insn/registry.hpp"
#include "insn/traits.hpp"
#include "machine/execution.hpp"

namespace ptxsim {
namespace {

struct DirectCall final : CallSite {
  const ExternFunction* stand_in = nullptr;
};

struct IndirectCall final : CallSite {
  Signature signature;
  const Prototype* prototype = nullptr;
};

// Insn::imm: which of Program::functions; Insn::target: its first statement.
Outcome call_function(Execution& x, const Insn& insn) {
  enter_function(x, static_cast<uint32_t>(insn.imm), static_cast<const CallSite&>(*insn.detail));
  x.jump_target = insn.target;
  return Outcome::kJump;
}

Outcome call_extern(Execution& x, const Insn& insn) {
  const auto& site = static_cast<const DirectCall&>(*insn.detail);
  run_extern(x, *site.stand_in, site);
  return Outcome::kNext;
}

// Insn::imm: index into Module::functions.
Outcome call_unknown(Execution& x, const Insn& insn) {
  refuse_unknown(x, static_cast<uint32_t>(insn.imm), x.first_lane());
}

// The function of Module::functions at a code address.
uint32_t function_at(const Execution& x, uint64_t address, int lane) {
  const uint64_t number = (address - kCodeWindow) / kCodeBytes;
  if (address <= kCodeWindow || address % kCodeBytes != 0 ||
      number > x.program().module->functions.size())
    x.fault(fmt::format("call of 0x{:x}, which is the address of no function", address), lane);
  return static_cast<uint32_t>(number - 1);
}

void check_target(const Execution& x, const IndirectCall& site, uint32_t function, int lane) {
  const Module& module = *x.program().module;
  const std::string& name = module.functions[function].body.name;
  const auto& targets = site.prototype->targets;
  if (site.prototype->is_target_list &&
      std::find(targets.begin(), targets.end(), function) == targets.end())
    x.fault(fmt::format("call of {}, which is not among the .calltargets", name), lane);
  if (const Signature has = signature_of(module, function); has != site.signature)
    x.fault(fmt::format("call of {} with parameters -> results of {} bytes; it has {}", name,
                        to_string(site.signature), to_string(has)),
            lane);
}

// The lanes of x.mask call the same function; where they go on.
uint32_t call_one(Execution& x, const Insn& insn, uint64_t address) {
  const auto& site = static_cast<const IndirectCall&>(*insn.detail);
  const int lane = x.first_lane();
  const uint32_t function = function_at(x, address, lane);
  check_target(x, site, function, lane);
  const int called = x.program().called[function];
  if (called >= 0) {
    enter_function(x, static_cast<uint32_t>(called), site);
    return x.program().functions[static_cast<size_t>(called)].first;
  }
  const Function& f = x.program().module->functions[function];
  const ExternFunction* stand_in = find_extern(f.body.name);
  if (stand_in == nullptr) refuse_unknown(x, function, lane);
  run_extern(x, *stand_in, site);
  return insn.statement + 1;
}

// Each lane calls what its register says; those that call the same function go together.
Outcome call_indirect(Execution& x, const Insn& insn) {
  const uint64_t* addresses = x.source<uint64_t>(insn.slot[0]);
  std::array<uint64_t, kWarpSize> callee{};
  x.for_lanes([&](int lane) { callee[lane] = addresses[lane]; });
  const uint32_t all = x.mask;
  uint32_t goes_to = 0;
  bool same = true;
  for (uint32_t left = all; left != 0;) {
    const uint64_t address = callee[std::countr_zero(left)];
    x.mask = 0;
    for (uint32_t rest = left; rest != 0; rest &= rest - 1)
      if (callee[std::countr_zero(rest)] == address) x.mask |= 1u << std::countr_zero(rest);
    const uint32_t to = call_one(x, insn, address);
    x.for_lanes([&](int lane) { x.warp.pc[lane] = to; });
    same &= left == all || to == goes_to;
    goes_to = to;
    left &= ~x.mask;
  }
  x.mask = all;
  x.jump_target = same ? goes_to : Execution::kPerLane;
  return Outcome::kJump;
}

Outcome leave_entry(Execution&, const Insn&) { return Outcome::kExit; }

// Insn::imm: which of Program::functions.
Outcome return_to_caller(Execution& x, const Insn& insn) {
  uint32_t where = 0;
  const bool same = leave_function(x, static_cast<uint32_t>(insn.imm), where);
  x.jump_target = same ? where : Execution::kPerLane;
  return Outcome::kJump;
}

void decode_indirect(Decode& d, const CallOperands& operands) {
  if (operands.prototype == nullptr || operands.prototype->kind != Operand::Kind::kPrototype)
    d.fail("an indirect call needs the name of a .callprototype or .calltargets");
  auto* site = d.make_detail<IndirectCall>();
  site->prototype = &d.entry().prototypes[operands.prototype->symbol];
  site->signature = signature_of(*d.program().module, *site->prototype);
  fill_call_site(d, operands, site->signature, *site);
  d.insn().slot[0] = d.source(*operands.callee, Type::kU64);
  d.insn().execute = call_indirect;
}

void decode_direct(Decode& d, const CallOperands& operands) {
  if (operands.prototype != nullptr) d.fail("a prototype where a function is named");
  const Module& module = *d.program().module;
  const uint32_t function = operands.callee->symbol;
  auto* site = d.make_detail<DirectCall>();
  fill_call_site(d, operands, signature_of(module, function), *site);
  const int called = d.program().called[function];
  if (called >= 0) {
    d.insn().imm = static_cast<uint64_t>(called);
    d.insn().target = d.program().functions[static_cast<size_t>(called)].first;
    d.insn().execute = call_function;
    return;
  }
  const std::string& name = module.functions[function].body.name;
  site->stand_in = find_extern(name);
  d.insn().imm = function;
  d.insn().execute = site->stand_in == nullptr ? call_unknown : call_extern;
  if (site->stand_in == nullptr) return;
  const Signature wanted = signature_of(*site->stand_in);
  if (const Signature has = signature_of(module, function); has != wanted)
    d.fail(fmt::format("{} is declared with parameters -> results of {} bytes; CUDA's has {}", name,
                       to_string(has), to_string(wanted)));
}

void decode_call(Decode& d) {
  d.modifiers().take("uni");
  const CallOperands operands = take_call_operands(d);
  if (operands.callee->kind == Operand::Kind::kFunction) return decode_direct(d, operands);
  if (operands.callee->kind == Operand::Kind::kRegister) return decode_indirect(d, operands);
  d.fail("call needs a function, or a register with the address of one");
}

void decode_ret(Decode& d) {
  d.modifiers().take("uni");
  d.expect_operands(0, 0);
  const CalledFunction* function = d.function();
  if (function != nullptr)
    d.insn().imm = static_cast<uint64_t>(function - d.program().functions.data());
  d.insn().execute = function == nullptr ? leave_entry : return_to_caller;
}

constexpr Decoder kDecoders[] = {
    // A call loses track of undefined bits.
    {"call", decode_call, traits::kControl.with(Trait::kCalls | Trait::kSeesUndefined)},
    {"ret", decode_ret, traits::kControl.with(Trait::kEnds)},
    {"alloca", decode_alloca, traits::kControl},
    {"stacksave", decode_stacksave, traits::kControl},
    {"stackrestore", decode_stackrestore, traits::kControl}};

}  // namespace

std::span<const Decoder> decoders_call() { return kDecoders; }

}  // namespace ptxsim
