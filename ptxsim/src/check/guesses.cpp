// Loads whose value is a guess that an atomic of the same thread makes sure of: what atomicCAS
// compares with, as in the CUDA Programming Guide's own loops, and a look before an atomicMin or
// the like. PTX calls a weak load beside atomics of other threads a race. Hardware gives an old
// value or a new one, and the atomic finds out which.
#include <algorithm>
#include <set>

#include "check/state.hpp"

namespace ptxsim {
namespace {

bool has_modifier(const Statement& statement, std::initializer_list<const char*> any) {
  return std::ranges::any_of(any, [&](const char* name) {
    return std::ranges::find(statement.modifiers, name) != statement.modifiers.end();
  });
}

bool is_atomic(const Traits& traits) {
  return traits.has(Trait::kUpdates) && !traits.has(Trait::kAsync);
}

const Operand* address_of(const Statement& statement) {
  const auto operand =
      std::ranges::find(statement.operands, Operand::Kind::kAddress, &Operand::kind);
  return operand != statement.operands.end() && operand->parts.size() == 1 ? &*operand : nullptr;
}

bool is_same_address(const Statement& a, const Statement& b) {
  const Operand *first = address_of(a), *second = address_of(b);
  return first != nullptr && second != nullptr && first->bits == second->bits &&
         first->parts[0].kind == second->parts[0].kind &&
         first->parts[0].reg == second->parts[0].reg &&
         first->parts[0].symbol == second->parts[0].symbol &&
         first->parts[0].bits == second->parts[0].bits;
}

bool is_register(const Operand& operand) { return operand.kind == Operand::Kind::kRegister; }

// The register, and those that get its value by `mov`.
std::set<uint32_t> copies_of(const Program& program, uint32_t reg) {
  const std::vector<Statement>& statements = program.entry->statements;
  std::set<uint32_t> copies{reg};
  for (size_t before = 0; before != copies.size();) {
    before = copies.size();
    for (size_t i = 0; i < statements.size(); ++i) {
      const std::vector<Operand>& operands = statements[i].operands;
      if (program.traits[i].has(Trait::kPassesOn) && operands.size() == 2 &&
          is_register(operands[0]) && is_register(operands[1]) &&
          copies.count(operands[1].reg) != 0)
        copies.insert(operands[0].reg);
    }
  }
  return copies;
}

}  // namespace

bool is_guess(const Program& program, uint32_t load) {
  const std::vector<Statement>& statements = program.entry->statements;
  const Statement& loading = statements[load];
  if (program.traits[load].result != ResultFrom::kMemory || loading.operands.size() != 2 ||
      !is_register(loading.operands[0]))
    return false;
  const std::set<uint32_t> values = copies_of(program, loading.operands[0].reg);
  for (uint32_t i = 0; i < statements.size(); ++i) {
    const Statement& s = statements[i];
    if (!is_atomic(program.traits[i])) continue;
    const bool is_compared = has_modifier(s, {"cas"}) && s.operands.size() >= 4 &&
                             is_register(s.operands[2]) && values.count(s.operands[2].reg) != 0;
    const bool is_looked_at = i > load && has_modifier(s, {"cas", "min", "max", "and", "or"}) &&
                              is_same_address(loading, s);
    if (is_compared || is_looked_at) return true;
  }
  return false;
}

bool Sanitizer::State::is_race_of_a_guess(uint32_t statement, AccessKind kind, uint32_t other,
                                          AccessKind other_kind) {
  const bool loads = kind == AccessKind::kRead && other_kind == AccessKind::kAtomic;
  if (!loads && (kind != AccessKind::kAtomic || other_kind != AccessKind::kRead)) return false;
  const uint32_t load = loads ? statement : other;
  const auto [known, is_new] = guesses.try_emplace(load, false);
  if (is_new) known->second = is_guess(cluster.machine.program(), load);
  return known->second;
}

Finding race_of_a_guess(int rule, AccessKind kind, const std::string& place) {
  return {
      rule, Severity::kWarning,
      kind == AccessKind::kRead
          ? "reads " + place + " in no order with an atomic of another thread"
          : "updates " + place + " in no order with an ordinary load of another thread",
      "a strong load; an atomic of the loading thread makes sure of the value, so that hardware "
      "goes right",
      "read it with ld.relaxed: a volatile pointer, or cuda::atomic_ref"};
}

}  // namespace ptxsim
