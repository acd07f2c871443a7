#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "machine/execution.hpp"
#include "ptxsim/mutate/mutation.hpp"

namespace ptxsim {
namespace {

Outcome do_nothing(Execution&, const Insn&) { return Outcome::kNext; }

struct PassingWait final : Detail {
  Slot result;
};

Outcome pass_at_once(Execution& x, const Insn& insn) {
  x.set_predicate(static_cast<const PassingWait&>(*insn.detail).result, 0xffffffffu);
  return Outcome::kNext;
}

struct ChangedRegister final : Detail {
  Insn original;
  uint32_t at = 0;     // in the register file
  unsigned bytes = 0;  // per lane
  uint64_t add = 0, flip = 0;
  bool is_written = false;  // by the statement itself: then the old value is not put back
};

uint64_t load(const std::byte* from, unsigned bytes) {
  uint64_t value = 0;
  std::memcpy(&value, from, bytes);  // little endian
  return value;
}

// Changes the register for the executing lanes, executes the statement, and puts the old values
// back.
Outcome with_changed_register(Execution& x, const Insn& insn) {
  const auto& change = static_cast<const ChangedRegister&>(*insn.detail);
  uint64_t old[kWarpSize];
  x.for_lanes([&](int lane) {
    std::byte* place = x.registers + change.at + size_t{change.bytes} * lane;
    old[lane] = load(place, change.bytes);
    const uint64_t value = (old[lane] + change.add) ^ change.flip;
    std::memcpy(place, &value, change.bytes);
  });
  x.insn = &change.original;
  const Outcome outcome = change.original.execute(x, change.original);
  if (!change.is_written) {
    x.for_lanes([&](int lane) {
      std::memcpy(x.registers + change.at + size_t{change.bytes} * lane, &old[lane], change.bytes);
    });
  }
  return outcome;
}

void drop(Insn& insn) {
  insn.execute = do_nothing;
  insn.convergence = Convergence::kNone;
  insn.num_uses = 0;
}

void change_register(Program& program, const Mutation& m) {
  Insn& insn = program.insns[m.statement];
  const Register& reg = program.entry->registers[m.reg];
  auto detail = std::make_shared<ChangedRegister>();
  detail->original = insn;
  detail->at = reg.offset;
  detail->bytes = bytes_of(reg.type);
  detail->add = m.add;
  detail->flip = m.flip;
  for (const RegisterUse& use : program.uses_of(insn))
    detail->is_written |= use.is_write && use.at == reg.offset;
  insn.execute = with_changed_register;
  insn.detail = detail.get();
  program.details.push_back(std::move(detail));
}

Entry* find_entry(Module& module, const std::string& name) {
  return &*std::find_if(module.entries.begin(), module.entries.end(),
                        [&](const Entry& entry) { return entry.name == name; });
}

Result<std::shared_ptr<const Program>> change_immediate(const Program& program, const Mutation& m) {
  auto module = std::make_shared<Module>(*program.module);
  const CalledFunction* function = program.function_of(m.statement);
  Entry& body = function != nullptr ? module->functions[function->function].body
                                    : *find_entry(*module, program.entry->name);
  const uint32_t first = function != nullptr ? function->first : program.start;
  Operand* operand = &body.statements[m.statement - first].operands[m.operand];
  while (!operand->parts.empty()) operand = &operand->parts[0];
  operand->bits = (operand->bits + m.add) ^ m.flip;
  return decode(module, program.entry->name);
}

}  // namespace

Result<std::shared_ptr<const Program>> apply_mutation(const Program& program, const Mutation& m) {
  if (m.kind >= MutationKind::kFlipParity && !m.from_register) return change_immediate(program, m);
  auto mutant = std::make_shared<Program>(program);
  mutant->poisoned = {
      {0, program.register_bytes}};  // a dropped statement may have been the only one that writes
  Insn& insn = mutant->insns[m.statement];
  if (m.kind == MutationKind::kDrop) {
    drop(insn);
  } else if (m.kind == MutationKind::kWaitPasses) {
    const Operand& result = program.entry->statements[m.statement].operands.at(0);
    auto detail = std::make_shared<PassingWait>();
    detail->result.at = program.entry->registers[result.reg].offset;
    drop(insn);
    insn.execute = pass_at_once;
    insn.detail = detail.get();
    mutant->details.push_back(std::move(detail));
  } else {
    change_register(*mutant, m);
  }
  return std::shared_ptr<const Program>(std::move(mutant));
}

std::string to_string(const Program& program, const Mutation& m) {
  return fmt::format("{}: {}: {}", to_string(place_of(program, m.statement)), m.what,
                     program.entry->statements[m.statement].text);
}

}  // namespace ptxsim
