// Results of loads that are still on the way: when a warp first uses a load's registers. A warp
// waits as a whole for a result that one of its statements needs, so that a use shows that the load
// is over, for tcgen05.ld (R6, R9) as for ordinary loads of shared memory (R4). An arrival on an
// mbarrier does not wait for loads; other barriers and fences are taken to do so.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "check/state.hpp"
#include "machine/machine.hpp"

namespace ptxsim {
namespace {

// Takes out the registers that the statement uses; true when there are any. A mov only passes a
// result on: ptxas has no instruction for most of them.
bool take_used(PendingResults& results, std::span<const RegisterUse> uses, bool is_move,
               bool& is_read) {
  bool is_written = false, is_moved = false;
  for (const bool writes : {false, true})
    for (const RegisterUse& use : uses) {
      if (use.is_write != writes || std::erase(results.registers, use.at) == 0) continue;
      (writes ? is_written : is_move ? is_moved : is_read) = true;
    }
  if (!is_moved) return is_read || is_written;
  for (const RegisterUse& use : uses)
    if (use.is_write && std::ranges::find(results.registers, use.at) == results.registers.end())
      results.registers.push_back(use.at);
  return false;
}

}  // namespace

bool has_any(const Program& program, Trait trait) {
  return std::ranges::any_of(program.traits, [&](const Traits& t) { return t.has(trait); });
}

bool has_loads_to_follow(const Program& program) {
  const bool loads_tensors = std::ranges::any_of(
      program.traits, [](const Traits& t) { return t.tensor_work == TensorWork::kLoad; });
  return loads_tensors || (has_any(program, Trait::kFollowed) &&
                           has_any(program, Trait::kArrives) && has_any(program, Trait::kBulk));
}

bool Sanitizer::wants_statements() const {
  return state_->follows_results || !state_->may_stay_unused.empty();
}

void Sanitizer::executed(const Execution& x, const Insn& insn, bool blocked) {
  if (blocked) return;
  if (state_->follows_results) state_->note_results(x, insn);
  state_->note_followed(x, insn);
}

void Sanitizer::State::open_load() {
  if (open_shared != kNobody) return;
  open_shared = static_cast<uint32_t>(loads.size());
  loads.emplace_back();
}

void Sanitizer::State::note_results(const Execution& x, const Insn& insn) {
  const uint32_t warp = warp_of(x);
  std::vector<PendingResults>& list = pending[warp];
  if (!list.empty()) use_results(x, insn, list);
  const auto follow = [&](bool is_tensor, uint32_t& index) {
    if (index == kNobody) return;
    PendingResults results{is_tensor, std::exchange(index, kNobody), {}};
    for (const RegisterUse& use : x.program().uses_of(insn))
      if (use.is_write) results.registers.push_back(use.at);
    if (!results.registers.empty())
      list.push_back(std::move(results));
    else if (!is_tensor)  // it uses the words itself
      loads[results.index].used = warps[warp].epoch_before;
  };
  follow(false, open_shared);
  follow(true, open_tensor);
  warps[warp].epoch_before = warps[warp].epoch;
}

void Sanitizer::State::use_results(const Execution& x, const Insn& insn,
                                   std::vector<PendingResults>& list) {
  const bool is_move = x.program().traits_of(insn).has(Trait::kPassesOn) && !insn.guard.present();
  const uint32_t epoch = warps[warp_of(x)].epoch_before;
  std::erase_if(list, [&](PendingResults& results) {
    bool is_read = false;
    const bool is_used = take_used(results, x.program().uses_of(insn), is_move, is_read);
    if (results.is_tensor) {
      if (!results.registers.empty()) return false;
      records[results.index].all_read = epoch;
      return true;
    }
    if (!is_used) return false;
    Load& load = loads[results.index];
    load.used = is_read ? epoch : 0;  // written over: not needed
    if (load.overwritten && is_read) reports.add(std::move(*load.overwritten));
    load.overwritten.reset();
    return true;
  });
}

void Sanitizer::State::finish_loads(const Execution& x) {
  const uint32_t warp = warp_of(x);
  std::erase_if(pending[warp], [&](const PendingResults& results) {
    if (results.is_tensor || loads[results.index].overwritten) return false;
    loads[results.index].used = warps[warp].epoch;
    return true;
  });
}

// R4. The overwriting operation knows that the reader has arrived, and not that it has used what it
// loaded.
void Sanitizer::State::check_load(const Access& access, const ShadowEntry& entry, uint32_t at) {
  if (access.record == nullptr || access.record->is_generic || entry.actor == access.warp) return;
  Load& load = loads[entry.load];
  const std::vector<uint32_t>& known = access.who.clock->order;
  if (load.overwritten || !reached(known, entry.actor, entry.epoch) ||
      (load.used != Load::kNotYet && reached(known, entry.actor, load.used)))
    return;
  if (seen_before(4, Severity::kError, access.x.insn->statement, entry.statement)) return;
  Report report = written(
      access.x, access.lane, entry.statement, describe(entry),
      {4, Severity::kError,
       fmt::format("overwrites {} through the async proxy while a load of it may be on the way: "
                   "its register is first used after the arrival that frees the memory",
                   place_in(access.owner, at)),
       "a use of what was loaded before the arrive, which does not wait for loads",
       "use the loaded registers first, then arrive"});
  if (load.used == Load::kNotYet)
    load.overwritten = std::make_unique<Report>(std::move(report));
  else
    reports.add(std::move(report));
}

}  // namespace ptxsim
