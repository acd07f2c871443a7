// Release and acquire patterns through memory (PTX ISA 9.0, "Memory Consistency Model", "Release
// and Acquire Patterns"): each address that strong operations use carries the clock that the last
// release pattern on it released.
//
// Modelled: st.release / ld.acquire / atom with .release, .acquire, .acq_rel; a fence followed by a
// relaxed or volatile write; a relaxed or volatile read followed by a fence. A write replaces the
// address's clock, an atomic adds to it (release sequence). Not modelled: scopes (every scope is as
// wide as the cluster), and chains over clusters, whose clocks are not comparable.
#include "ptxsim/check/state.hpp"
#include "ptxsim/machine/addresses.hpp"

namespace ptxsim {
namespace {

bool can_be_flag(const MemoryAt& at) {
  return at.space == Space::kGlobal || at.space == Space::kShared;
}

// Shared offsets and global addresses share the map of rank 0: the top bit tells them apart.
uint64_t key_of(const MemoryAt& at) {
  return at.space == Space::kShared ? at.offset | uint64_t{1} << 63 : at.offset;
}

std::map<uint64_t, SyncClock>& released_clocks(std::vector<CtaShadow>& ctas, const MemoryAt& at) {
  return ctas[at.space == Space::kShared ? at.owner->rank : 0].released;
}

}  // namespace

void Sanitizer::strong_write(const Execution& x, int lane, const MemoryAt& at, bool releases,
                             bool updates) {
  if (!can_be_flag(at)) return;
  SyncClock released;
  if (releases) {
    state_->finish_loads(x);
    state_->release(x, 1u << lane, released);
  } else {
    const auto& fenced = state_->ctas[x.cta.rank].to_release;
    if (const auto found = fenced.find(x.thread_of(lane)); found != fenced.end())
      released = found->second;
  }
  auto& clocks = released_clocks(state_->ctas, at);
  if (updates) {
    if (released.values) join_into(clocks[key_of(at)].values, released.values);
  } else if (released.values) {
    clocks[key_of(at)] = released;
  } else {
    clocks.erase(key_of(at));
  }
}

void Sanitizer::strong_read(const Execution& x, int lane, const MemoryAt& at, bool acquires) {
  if (!can_be_flag(at)) return;
  const auto& clocks = released_clocks(state_->ctas, at);
  const auto found = clocks.find(key_of(at));
  if (found == clocks.end() || !found->second.values) return;
  if (acquires) {
    state_->acquire(x, 1u << lane, found->second);
  } else {
    join_into(state_->ctas[x.cta.rank].to_acquire[x.thread_of(lane)].values, found->second.values);
  }
}

void Sanitizer::fence(const Execution& x, bool releases, bool acquires) {
  state_->finish_loads(x);
  CtaShadow& cta = state_->ctas[x.cta.rank];
  x.for_lanes([&](int lane) {
    if (acquires) {
      const auto read = cta.to_acquire.find(x.thread_of(lane));
      if (read != cta.to_acquire.end()) {
        state_->acquire(x, 1u << lane, read->second);
        cta.to_acquire.erase(read);
      }
    }
    if (releases) {
      SyncClock& fenced = cta.to_release[x.thread_of(lane)];
      fenced.clear();
      state_->release(x, 1u << lane, fenced);
    }
  });
}

}  // namespace ptxsim
