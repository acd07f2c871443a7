#include "timing/dataflow.hpp"

#include <algorithm>

#include "timing/expansion.hpp"

namespace ptxsim::timing {
namespace {

// ptxas 13.0 unrolls a loop of one block of up to about this many statements so many times, if it
// loads something, its counter goes by a constant, nothing in it is made of branches (divisions)
// and `.pragma "nounroll"` does not stand at its beginning. (Read from its output for sm_90a: it
// unrolls none that goes by blockDim.x, ends by what it loads, or only computes.)
constexpr uint32_t kShortLoop = 36, kUnrolled = 4;

bool names(const Operand& operand, uint32_t reg) {
  return operand.kind == Operand::Kind::kRegister && operand.reg == reg;
}

// Whether a statement of the loop adds a constant to this register.
bool goes_by_a_constant(const std::vector<Statement>& statements, uint32_t begin, uint32_t end,
                        uint32_t reg) {
  for (uint32_t i = begin; i < end; ++i) {
    const Statement& s = statements[i];
    if (form_of(s) == Form::kSum && s.operands.size() == 3 && names(s.operands[0], reg))
      return names(s.operands[1], reg) && s.operands[2].kind == Operand::Kind::kImmediate;
  }
  return false;
}

// The jump at `end` goes back to `begin`.
bool is_unrolled(const std::vector<Statement>& statements, uint32_t begin, uint32_t end) {
  const Statement& jump = statements[end];
  if (end - begin > kShortLoop || statements[begin].not_unrolled || !jump.guarded) return false;
  const auto body = std::span(statements).subspan(begin, end - begin);
  const auto has = [&](auto&& what) { return std::any_of(body.begin(), body.end(), what); };
  const auto is = [](Form form) {
    return [form](const Statement& s) { return form_of(s) == form; };
  };
  if (!has(is(Form::kLoad)) || has(is(Form::kBranches))) return false;
  for (uint32_t i = begin; i < end; ++i) {
    const Statement& s = statements[i];
    if (form_of(s) != Form::kComparison || s.operands.size() < 3 ||
        !names(s.operands[0], jump.guard))
      continue;
    for (size_t o = 1; o < s.operands.size(); ++o)
      if (s.operands[o].kind == Operand::Kind::kRegister &&
          goes_by_a_constant(statements, begin, end, s.operands[o].reg))
        return true;
  }
  return false;
}

}  // namespace

Dataflow::Dataflow(const Program& program) : program_(program) {
  std::unordered_map<uint32_t, uint32_t> numbers;
  number_of_use_.reserve(program.uses.size());
  for (const RegisterUse& use : program.uses)
    number_of_use_.push_back(
        numbers.try_emplace(use.at, static_cast<uint32_t>(numbers.size())).first->second);
  ready_.resize(numbers.size());
}

void Dataflow::go_on_after(uint32_t piece) {
  piece_ = piece;
  floor_ = {.clk = issued_.clk, .piece = piece};
  issued_ = now_ = floor_;
}

const Moment& Dataflow::issue(const Insn& insn, std::vector<uint32_t>& loads) {
  now_ = floor_;
  for (uint32_t i = 0; i < insn.num_uses; ++i) {
    if (program_.uses[insn.first_use + i].is_write) continue;
    Moment& ready = ready_[number_of_use_[insn.first_use + i]];
    if (ready.is_load) {
      loads.push_back(ready.piece);
      ready.is_load = false;
    }
    if (ready.clk > now_.clk) now_ = ready;
  }
  if (now_.clk > issued_.clk) issued_ = now_;
  return now_;
}

void Dataflow::loads_after_stores(Space space) {
  const Moment& stored = stored_[static_cast<size_t>(space)];
  if (stored.clk <= now_.clk) return;
  now_ = stored;
  now_.is_load = false;
  if (now_.clk > issued_.clk) issued_ = now_;
}

void Dataflow::set_written(const Insn& insn, const Moment& when) {
  for (uint32_t i = 0; i < insn.num_uses; ++i)
    if (program_.uses[insn.first_use + i].is_write)
      ready_[number_of_use_[insn.first_use + i]] = when;
}

void Dataflow::completes(const Insn& insn, const Chain& chain) {
  Moment when = now_;
  when.is_load = false;
  when.after += chain;
  when.clk += nominal_clk(chain);
  set_written(insn, when);
}

void Dataflow::completes_with_load(const Insn& insn, uint32_t load, double nominal_latency_clk) {
  set_written(insn, {.clk = now_.clk + nominal_latency_clk, .piece = load, .is_load = true});
}

void Dataflow::jumped(const Insn& insn, uint32_t target) {
  const bool is_loop = target <= insn.statement;
  if (is_loop) {
    const auto [rounds, is_new] = rounds_.try_emplace(insn.statement);
    if (is_new)
      rounds->second.unrolled = is_unrolled(program_.entry->statements, target, insn.statement);
    if (rounds->second.unrolled && ++rounds->second.done % kUnrolled != 0) return;
  }
  // What follows waits for the jump: one forward waits for its predicate, one back for all that
  // was issued.
  floor_ = is_loop ? issued_ : now_;
  floor_.is_load = false;
  floor_.after.add(Latency::kBranch);
  floor_.clk += nominal_clk(Chain{}.add(Latency::kBranch));
  if (floor_.clk > issued_.clk) issued_ = floor_;
}

}  // namespace ptxsim::timing
