// What a kernel's text says of the results of loads: whether they are used whatever way a thread
// takes.
#include <algorithm>

#include "check/state.hpp"
#include "ir/control_flow.hpp"
#include "machine/machine.hpp"

namespace ptxsim {
namespace {

using Registers = std::vector<uint32_t>;  // their places in the file, ascending

bool is_load(const Traits& traits) { return traits.has(Trait::kFollowed); }

bool has(const Registers& registers, uint32_t at) {
  return std::binary_search(registers.begin(), registers.end(), at);
}

void insert(Registers& registers, uint32_t at) {
  const auto place = std::lower_bound(registers.begin(), registers.end(), at);
  if (place == registers.end() || *place != at) registers.insert(place, at);
}

void remove(Registers& registers, uint32_t at) {
  const auto place = std::lower_bound(registers.begin(), registers.end(), at);
  if (place != registers.end() && *place == at) registers.erase(place);
}

Registers written_by(const Program& program, uint32_t statement) {
  Registers written;
  for (const RegisterUse& use : program.uses_of(program.insns[statement]))
    if (use.is_write) insert(written, use.at);
  return written;
}

bool reads_any(const Program& program, uint32_t statement, const Registers& registers) {
  return std::ranges::any_of(program.uses_of(program.insns[statement]), [&](const RegisterUse& u) {
    return !u.is_write && has(registers, u.at);
  });
}

std::vector<uint32_t> successors_of(const Program& program, uint32_t statement) {
  NextStatements next = next_of(program, statement);
  if (next.falls_through) next.labels.push_back(statement + 1);
  std::erase_if(next.labels, [&](uint32_t s) { return s >= program.insns.size(); });
  return std::move(next.labels);
}

// The registers whose contents are used for certain from each statement on, before they are written
// again: the largest solution of the equations, so that a loop without an end uses everything.
class CertainUses {
 public:
  explicit CertainUses(const Program& program) : program_(program), before_(program.insns.size()) {
    const auto count = static_cast<uint32_t>(program.insns.size());
    for (uint32_t i = 0; i < count; ++i) successors_.push_back(successors_of(program, i));
    known_.assign(count, false);
    for (bool changes = true; changes;) {
      changes = false;
      for (uint32_t i = count; i-- > 0;) changes |= update(i);
    }
  }
  bool uses_any(uint32_t after, const Registers& registers) const {
    const std::optional<Registers> used = after_statement(after);
    return !used || std::ranges::any_of(registers, [&](uint32_t r) { return has(*used, r); });
  }

 private:
  // nullopt: all of them, as nothing says otherwise yet.
  std::optional<Registers> after_statement(uint32_t i) const {
    const bool may_end = program_.traits[i].has(Trait::kEnds);
    if (successors_[i].empty()) return Registers();
    if (may_end && !program_.insns[i].guard.present()) return Registers();
    std::optional<Registers> all;
    if (may_end) all.emplace();
    for (const uint32_t next : successors_[i]) {
      if (!known_[next]) continue;
      if (!all) {
        all = before_[next];
        continue;
      }
      Registers both;
      std::ranges::set_intersection(*all, before_[next], std::back_inserter(both));
      all = std::move(both);
    }
    return all;
  }

  bool update(uint32_t i) {
    std::optional<Registers> after = after_statement(i);
    if (!after) return false;
    const Insn& insn = program_.insns[i];
    const bool is_certain = !insn.guard.present();
    const bool is_move = program_.traits[i].has(Trait::kPassesOn) && is_certain;
    Registers used = *after;
    bool is_copy_used = !is_move;
    for (const RegisterUse& use : program_.uses_of(insn))
      if (use.is_write && is_certain) {
        is_copy_used |= has(*after, use.at);
        remove(used, use.at);
      }
    for (const RegisterUse& use : program_.uses_of(insn))
      if (!use.is_write && (is_certain ? is_copy_used : use.at == insn.guard.at))
        insert(used, use.at);
    if (known_[i] && used == before_[i]) return false;
    known_[i] = true;
    before_[i] = std::move(used);
    return true;
  }

  const Program& program_;
  std::vector<Registers> before_;
  std::vector<bool> known_;
  std::vector<std::vector<uint32_t>> successors_;
};

}  // namespace

std::vector<bool> loads_that_may_stay_unused(const Program& program) {
  if (!program.functions.empty() || std::ranges::none_of(program.traits, is_load)) return {};
  const CertainUses uses(program);
  std::vector<bool> may(program.traits.size());
  bool any = false;
  for (uint32_t i = 0; i < may.size(); ++i) {
    const Registers loaded = is_load(program.traits[i]) ? written_by(program, i) : Registers();
    if (loaded.empty() || uses.uses_any(i, loaded)) continue;
    may[i] = any = true;
  }
  return any ? may : std::vector<bool>();
}

bool is_used_before_signals(const Program& program, uint32_t load) {
  const std::vector<Traits>& traits = program.traits;
  if (!program.functions.empty() || !is_load(traits[load])) return false;
  const Registers loaded = written_by(program, load);
  std::vector<uint32_t> left = successors_of(program, load);
  std::vector<bool> seen(traits.size());
  while (!left.empty()) {
    const uint32_t at = left.back();
    left.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    const bool is_guarded = program.insns[at].guard.present();
    const bool is_certain = !is_guarded || has(loaded, program.insns[at].guard.at);
    const bool reads = !traits[at].has(Trait::kPassesOn) && reads_any(program, at, loaded);
    if (is_certain && (reads || traits[at].has(Trait::kWaitsForLoads))) continue;
    if (is_strong_write(traits[at]) && !reads) return false;
    if (!is_guarded && written_by(program, at) == loaded) continue;  // which waits for the load
    for (const uint32_t next : successors_of(program, at)) left.push_back(next);
  }
  return true;
}

}  // namespace ptxsim
