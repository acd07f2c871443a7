#include "timing/statements.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace ptxsim::timing {
namespace {

bool has(const Statement& s, std::initializer_list<const char*> names) {
  return std::any_of(s.modifiers.begin(), s.modifiers.end(), [&](const std::string& modifier) {
    return std::find(names.begin(), names.end(), modifier) != names.end();
  });
}

double operand_bits(const Statement& s) {
  if (has(s, {"kind::mxf4nvf4", "kind::mxf4", "e2m1", "s4", "u4"})) return 4;
  if (has(s, {"kind::f8f6f4", "kind::mxf8f6f4", "kind::i8", "e4m3", "e5m2", "s8", "u8"})) return 8;
  if (has(s, {"kind::tf32", "tf32"})) return 32;
  return 16;
}

}  // namespace

std::vector<StatementCost> costs_of(const Program& program) {
  std::vector<StatementCost> costs;
  costs.reserve(program.entry->statements.size());
  for (size_t i = 0; i < program.entry->statements.size(); ++i) {
    const Statement& s = program.entry->statements[i];
    const Traits& traits = program.traits[i];
    StatementCost cost;
    cost.expansion = expansion_of(s);
    cost.counts_up = traits.has(Trait::kUpdates) && has(s, {"add", "inc"}) &&
                     s.operands.back().kind == Operand::Kind::kImmediate;
    cost.passes_l1 =
        has(s, {"cg", "cv", "volatile", "relaxed", "acquire", "mmio", "L1::no_allocate"});
    cost.is_pair = has(s, {"cta_group::2"});
    cost.reuses_a = has(s, {"collector::a::use", "collector::a::lastuse"});
    cost.a_in_tmem = traits.tensor_work == TensorWork::kMma && s.operands.size() > 1 &&
                     s.operands[1].kind == Operand::Kind::kAddress;
    cost.is_sparse = has(s, {"sp"});
    cost.is_weight_stationary = has(s, {"ws"});
    cost.operand_bits = operand_bits(s);
    costs.push_back(cost);
  }
  return costs;
}

}  // namespace ptxsim::timing
