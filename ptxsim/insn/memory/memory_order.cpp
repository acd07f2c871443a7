#include "ptxsim/insn/memory/memory_order.hpp"

#include <map>

namespace ptxsim {
namespace {

// Of the CTA that owns the shared memory; global addresses are kept with rank 0 of the cluster.
struct ReleasedClocks final : FamilyState {
  static constexpr const char* kFamilyKey = "memory order: released clocks by address";
  std::map<uint64_t, SyncClock> by_address;
};

// What the threads of a CTA have fenced but not written, and read but not fenced.
struct FencedClocks final : FamilyState {
  static constexpr const char* kFamilyKey = "memory order: fenced clocks by thread";
  std::map<uint32_t, SyncClock> to_release, to_acquire;
};

bool can_be_flag(const MemoryAt& at) {
  return at.space == Space::kGlobal || at.space == Space::kShared;
}

ReleasedClocks& released_clocks(const Execution& x, const MemoryAt& at) {
  Cta& owner = at.space == Space::kShared ? *at.owner : *x.cluster.ctas[0];
  return owner.state<ReleasedClocks>();
}

// Shared offsets and global addresses share the map of rank 0: the top bit tells them apart.
uint64_t key_of(const MemoryAt& at) {
  return at.space == Space::kShared ? at.offset | uint64_t{1} << 63 : at.offset;
}

}  // namespace

bool take_scope(Decode& d) {
  return d.modifiers().take_one_of({"cta", "cluster", "gpu", "sys"}) >= 0;
}

void note_strong_write(const Execution& x, int lane, const MemoryAt& at, MemoryOrder order,
                       bool is_update) {
  auto* sanitizer = x.sanitizer();
  if (sanitizer == nullptr || !can_be_flag(at)) return;
  SyncClock released;
  if (releases(order)) {
    sanitizer->release(x, 1u << lane, released);
  } else {
    const auto& fenced = x.cta.state<FencedClocks>().to_release;
    if (const auto found = fenced.find(x.thread_of(lane)); found != fenced.end())
      released = found->second;
  }
  auto& clocks = released_clocks(x, at).by_address;
  if (is_update) {
    if (released.values) join_into(clocks[key_of(at)].values, released.values);
  } else if (released.values) {
    clocks[key_of(at)] = released;
  } else {
    clocks.erase(key_of(at));
  }
}

void note_strong_read(const Execution& x, int lane, const MemoryAt& at, MemoryOrder order) {
  auto* sanitizer = x.sanitizer();
  if (sanitizer == nullptr || !can_be_flag(at)) return;
  const auto& clocks = released_clocks(x, at).by_address;
  const auto found = clocks.find(key_of(at));
  if (found == clocks.end() || !found->second.values) return;
  if (acquires(order)) {
    sanitizer->acquire(x, 1u << lane, found->second);
  } else {
    join_into(x.cta.state<FencedClocks>().to_acquire[x.thread_of(lane)].values,
              found->second.values);
  }
}

void note_fence(const Execution& x, bool releasing, bool acquiring) {
  auto* sanitizer = x.sanitizer();
  if (sanitizer == nullptr) return;
  auto& clocks = x.cta.state<FencedClocks>();
  x.for_lanes([&](int lane) {
    if (acquiring) {
      const auto read = clocks.to_acquire.find(x.thread_of(lane));
      if (read != clocks.to_acquire.end()) {
        sanitizer->acquire(x, 1u << lane, read->second);
        clocks.to_acquire.erase(read);
      }
    }
    if (releasing) {
      SyncClock& fenced = clocks.to_release[x.thread_of(lane)];
      fenced.clear();
      sanitizer->release(x, 1u << lane, fenced);
    }
  });
}

}  // namespace ptxsim
