#include "ir/control_flow.hpp"

namespace ptxsim {
namespace {

void add_labels(const Operand& operand, std::vector<uint32_t>& labels) {
  if (operand.kind == Operand::Kind::kLabel) labels.push_back(operand.label);
  for (const Operand& part : operand.parts) add_labels(part, labels);
}

}  // namespace

NextStatements next_of(const Program& program, uint32_t at) {
  const Statement& statement = program.entry->statements[at];
  NextStatements next;
  for (const Operand& operand : statement.operands) add_labels(operand, next.labels);
  next.falls_through = statement.guarded || !program.traits[at].has(Trait::kJumps | Trait::kEnds);
  return next;
}

}  // namespace ptxsim
