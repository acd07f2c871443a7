// Release and acquire patterns through memory (PTX ISA 9.0, "Memory Consistency Model", "Release
// and Acquire Patterns"): each address that strong operations use carries the clocks that release
// patterns on it released, with the scope up to which each holds.
//
// Modelled: st.release / ld.acquire / atom with .release, .acquire, .acq_rel; a fence followed by a
// relaxed or volatile write; a relaxed or volatile read followed by a fence; scopes of all of them.
// A write replaces the address's clocks, an atomic adds to them (release sequence). The order that
// two fence.sc establish between them: sc_fences.cpp.
#include <algorithm>

#include "check/state.hpp"

namespace ptxsim {
namespace {

bool can_be_flag(const MemoryAt& at) {
  return at.space == Space::kGlobal || at.space == Space::kShared;
}

// How many of the three reaches a scope has.
size_t num_reaches(Scope scope) { return std::min<size_t>(static_cast<size_t>(scope), 3); }

void add(Reach& to, const Reach& from) {
  for (size_t i = 0; i < to.size(); ++i) join_into(to[i].values, from[i].values);
}

}  // namespace

Scope Sanitizer::State::scope_to(uint32_t rank, uint32_t other_cluster, uint32_t other_rank) const {
  if (other_cluster != cluster.index) return Scope::kGpu;
  return other_rank == rank ? Scope::kCta : Scope::kCluster;
}

std::map<uint64_t, Releases>& Sanitizer::State::released_through(const MemoryAt& at) {
  return at.space == Space::kShared ? ctas[at.owner->rank].released : grid->released;
}

void Sanitizer::strong_write(const Execution& x, int lane, const MemoryAt& at, bool releases,
                             bool updates) {
  State& s = *state_;
  if (!can_be_flag(at)) return;
  s.note_strong_access(x, lane, at, true);
  s.send_signal(x, lane, at, updates);
  Reach reach;
  const size_t reaches = num_reaches(at.scope);
  if (releases) {
    s.finish_loads(x);
    SyncClock released;
    s.release(x, 1u << lane, released);
    std::fill_n(reach.begin(), reaches, released);
  } else {
    const auto& fenced = s.ctas[x.cta.rank].to_release;
    if (const auto found = fenced.find(x.thread_of(lane)); found != fenced.end())
      std::copy_n(found->second.begin(), reaches, reach.begin());
  }
  auto& all = s.released_through(at);
  const bool any = reach[0].values != nullptr;
  auto found = all.find(at.offset);
  if (found == all.end()) {
    if (!any) return;
    found = all.emplace(at.offset, Releases{}).first;
  }
  Releases& here = found->second;
  if (updates && here.scope != Scope::kNone) {
    // A chain of atomics breaks where two of them are not morally strong.
    const Scope needed = s.scope_to(x.cta.rank, here.cluster, here.rank);
    if (here.scope < needed || at.scope < needed) here.list.clear();
  } else {
    here.list.clear();
  }
  here.cluster = s.cluster.index;
  here.rank = x.cta.rank;
  here.scope = at.scope;
  if (any) {
    const auto mine = std::ranges::find_if(here.list, [&](const Releases::By& by) {
      return by.cluster == here.cluster && by.rank == here.rank;
    });
    const uint64_t number = ++s.grid->num_releasing_writes;
    if (mine != here.list.end()) {
      add(mine->reach, reach);
      mine->number = number;
      mine->told.reset();
    } else {
      here.list.push_back({here.cluster, here.rank, reach, number});
    }
  }
  if (here.list.empty()) all.erase(found);
}

void Sanitizer::State::acquire_from(const Execution& x, int lane, Releases& releases, Scope scope,
                                    bool acquires) {
  const Scope to_writer = scope_to(x.cta.rank, releases.cluster, releases.rank);
  if (scope < to_writer || releases.scope < to_writer) {
    narrow_read = x.insn->statement;
    return;
  }
  TakenOver& taken = ctas[x.cta.rank].taken_over[x.thread_of(lane)];
  const bool again = taken.from == &releases && taken.scope == scope && taken.acquires == acquires;
  bool is_narrow = false;
  for (Releases::By& by : releases.list) {
    if (again && by.number <= taken.number) continue;
    const Scope needed = scope_to(x.cta.rank, by.cluster, by.rank);
    const SyncClock& released = by.reach[reach_of(needed)];
    if (!released.values || (acquires && scope < needed)) {
      narrow_read = x.insn->statement;
      is_narrow = true;
      continue;
    }
    const bool is_of_others = by.cluster != cluster.index;
    if (is_of_others && !by.told) by.told = without_foreign(released.values);
    SyncClock clock;
    clock.values =
        clock_for(cluster.index, by.cluster, released.values, is_of_others ? by.told : nullptr);
    if (needed == Scope::kCluster) clock.values = across_ctas(clock.values);
    if (acquires) {
      acquire(x, 1u << lane, clock);
    } else {
      Reach& read = ctas[x.cta.rank].to_acquire[x.thread_of(lane)];
      join_into(read[reach_of(needed)].values, clock.values);
    }
  }
  taken = {is_narrow ? nullptr : &releases, scope, acquires, grid->num_releasing_writes};
}

void Sanitizer::strong_read(const Execution& x, int lane, const MemoryAt& at, bool acquires) {
  if (!can_be_flag(at)) return;
  state_->note_strong_access(x, lane, at, false);
  if (x.program().traits_of(*x.insn).has(Trait::kReads)) state_->receive_signals(x, lane, at);
  auto& all = state_->released_through(at);
  const auto found = all.find(at.offset);
  if (found == all.end()) return;
  state_->acquire_from(x, lane, found->second, at.scope, acquires);
}

void Sanitizer::fence(const Execution& x, Scope scope, bool releases, bool acquires) {
  State& s = *state_;
  s.finish_loads(x);
  CtaShadow& cta = s.ctas[x.cta.rank];
  const size_t reaches = num_reaches(scope);
  const bool is_sc = s.has_sc_fences && x.program().traits_of(*x.insn).has(Trait::kScFence);
  if (is_sc) s.acquire_by_sc_fence(x, reaches);
  if (acquires)
    x.for_lanes([&](int lane) {
      const auto read = cta.to_acquire.find(x.thread_of(lane));
      if (read != cta.to_acquire.end())
        for (size_t i = 0; i < read->second.size(); ++i) {
          SyncClock& from = read->second[i];
          if (i < reaches) {
            s.acquire(x, 1u << lane, from);
            from.clear();
          } else if (from.values) {
            s.narrow_read = x.insn->statement;
          }
        }
    });
  if (is_sc) s.release_by_sc_fence(x, reaches);
  if (releases)
    x.for_lanes([&](int lane) {
      SyncClock fenced;
      s.release(x, 1u << lane, fenced);
      std::fill_n(cta.to_release[x.thread_of(lane)].begin(), reaches, fenced);
    });
}

}  // namespace ptxsim
