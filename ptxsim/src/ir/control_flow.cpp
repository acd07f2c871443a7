#include "ir/control_flow.hpp"

namespace ptxsim {
namespace {

void add_labels(const Operand& operand, std::vector<uint32_t>& labels) {
  if (operand.kind == Operand::Kind::kLabel) labels.push_back(operand.label);
  for (const Operand& part : operand.parts) add_labels(part, labels);
}

}  // namespace

NextStatements next_of(const Statement& statement) {
  NextStatements next;
  for (const Operand& operand : statement.operands) add_labels(operand, next.labels);
  next.falls_through = statement.guarded || (statement.root != "bra" && statement.root != "brx" &&
                                             statement.root != "ret" && statement.root != "exit");
  return next;
}

}  // namespace ptxsim
