#include "timing/statements.hpp"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "timing/sass_costs.hpp"

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

// The extents of .mMnNkK; all 0: it has none.
struct Shape {
  unsigned m = 0, n = 0, k = 0;
};
Shape shape_of(const Statement& s) {
  for (const std::string& modifier : s.modifiers) {
    Shape shape;
    if (std::sscanf(modifier.c_str(), "m%un%uk%u", &shape.m, &shape.n, &shape.k) == 3) return shape;
  }
  return {};
}

double macs_of_shape(const Statement& s) {
  const Shape shape = shape_of(s);
  return static_cast<double>(shape.m) * shape.n * shape.k;
}

// How many times fewer than 64 columns a wgmma has whose A lies in shared memory, at a descriptor;
// else 1. What has another meaning for other instructions is not asked of them.
double columns_missing(const Statement& s) {
  const bool reads_a = s.operands.size() > 1 && s.operands[1].kind == Operand::Kind::kRegister;
  const unsigned columns = shape_of(s).n;
  return reads_a && columns != 0 ? std::max(1.0, 64.0 / columns) : 1.0;
}

// What ptxas makes one instruction of, with the statement before: a shift or a wide product and the
// sum behind it (LEA, IMAD.WIDE), and two operations of logic (LOP3).
class FoldedStatements {
 public:
  explicit FoldedStatements(const std::vector<Statement>& statements) {
    for (const Statement& s : statements)
      for (size_t i = 1; i < s.operands.size(); ++i)
        if (s.operands[i].kind == Operand::Kind::kRegister) ++readers_[s.operands[i].reg];
  }
  bool folds(const Statement& s) {
    if (s.operands.empty() || s.operands[0].kind != Operand::Kind::kRegister) return false;
    const Form form = form_of(s);
    const bool is_sum = form == Form::kSum, is_logic = form == Form::kLogic;
    const bool folds = (is_sum && reads(s, products_)) || (is_logic && reads(s, logic_));
    const uint32_t result = s.operands[0].reg;
    products_.erase(result);
    logic_.erase(result);
    if (form == Form::kProduct) products_.insert(result);
    if (is_logic && !folds && readers_[result] == 1) logic_.insert(result);
    return folds;
  }

 private:
  static bool reads(const Statement& s, const std::set<uint32_t>& of) {
    return std::any_of(s.operands.begin() + 1, s.operands.end(), [&](const Operand& operand) {
      return operand.kind == Operand::Kind::kRegister && of.contains(operand.reg);
    });
  }
  std::map<uint32_t, int> readers_;
  std::set<uint32_t> products_, logic_;  // registers, in the order of the text
};

// Latencies stay the table's; of what it does not name, each instruction waits for the one before.
void take(const SassCost& counted, Expansion& expansion) {
  if (!expansion.is_modelled)
    expansion.chain = Chain{}.add(Latency::kAlu, std::max(1.0, counted.slots));
  expansion.slots = counted.slots;
  expansion.functions = counted.functions;
  expansion.doubles = counted.doubles;
  expansion.is_modelled = true;
}

}  // namespace

std::shared_ptr<const StatementCosts> costs_of(const Program& program,
                                               std::span<const SassSection> sass) {
  FoldedStatements folded(program.entry->statements);
  const std::vector<std::optional<SassCost>> counted =
      sass.empty() ? std::vector<std::optional<SassCost>>(program.entry->statements.size())
                   : costs_of_sass(program, sass);
  StatementCosts costs;
  costs.of.reserve(program.entry->statements.size());
  for (size_t i = 0; i < program.entry->statements.size(); ++i) {
    const Statement& s = program.entry->statements[i];
    const Traits& traits = program.traits[i];
    StatementCost cost;
    cost.expansion = expansion_of(s);
    if (folded.folds(s)) cost.expansion.slots = 0, cost.expansion.chain = {};
    if (counted[i]) {
      costs.told += 1;
      take(*counted[i], cost.expansion);
    }
    cost.counts_up = traits.has(Trait::kUpdates) && has(s, {"add", "inc"}) &&
                     s.operands.back().kind == Operand::Kind::kImmediate;
    cost.adds_floats = traits.has(Trait::kUpdates) && has(s, {"f32", "f16x2", "bf16x2", "f64"});
    cost.is_constant = has(s, {"nc"});
    cost.passes_l1 =
        has(s, {"cg", "cv", "volatile", "relaxed", "acquire", "mmio", "L1::no_allocate"});
    cost.is_pair = has(s, {"cta_group::2"});
    cost.reuses_a = has(s, {"collector::a::use", "collector::a::lastuse"});
    cost.a_in_tmem = traits.tensor_work == TensorWork::kMma && s.operands.size() > 1 &&
                     s.operands[1].kind == Operand::Kind::kAddress;
    cost.is_sparse = has(s, {"sp"});
    cost.is_weight_stationary = has(s, {"ws"});
    cost.operand_bits = operand_bits(s);
    cost.columns_missing = columns_missing(s);
    const bool stores_half = has(s, {"sp", "sp::ordered_metadata"});
    cost.warp_macs = macs_of_shape(s) / (stores_half ? 2 : 1);
    costs.of.push_back(cost);
  }
  return std::make_shared<const StatementCosts>(std::move(costs));
}

}  // namespace ptxsim::timing
