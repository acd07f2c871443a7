// Whether an access to shared memory is in order after an earlier one.
#include <algorithm>
#include <cstring>

#include "check/state.hpp"
#include "machine/machine.hpp"

namespace ptxsim {
namespace {

bool crosses_proxies(const Access& access) {
  return access.record != nullptr && !access.record->is_generic;
}

}  // namespace

bool Sanitizer::State::follows(const Access& access, const ShadowEntry& entry) const {
  if (entry.is_async) {
    if (access.record != nullptr && access.record_index == entry.actor) return true;
    const Record& earlier = records[entry.actor];
    // What a copy between CTAs has read is over when its destination is written.
    const int rank = entry.kind == AccessKind::kRead ? -1 : static_cast<int>(access.owner.rank);
    if (!complete(access.who.clock->order, earlier, rank)) return are_atomics(access, entry);
    return !earlier.is_generic || !crosses_proxies(access) ||
           complete(access.who.clock->async, earlier, rank);
  }
  if (ordered(access.who, entry.actor, entry.lanes, entry.epoch))
    return !crosses_proxies(access) || is_seen(access, entry);
  if (are_atomics(access, entry)) return true;
  if (access.record != nullptr) return false;
  // Lanes of one instruction may write the same bytes: one of them wins.
  return entry.actor == access.warp && entry.statement == access.x.insn->statement &&
         entry.epoch == warps[access.warp].epoch;
}

bool Sanitizer::State::are_atomics(const Access& access, const ShadowEntry& entry) const {
  if (access.kind != AccessKind::kAtomic || entry.kind != AccessKind::kAtomic) return false;
  const bool is_async_proxy = entry.is_async && !records[entry.actor].is_generic;
  return is_async_proxy == crosses_proxies(access);
}

bool Sanitizer::State::stands_for(const Access& access, const ShadowEntry& entry) const {
  if (!entry.is_async) return ordered(access.who, entry.actor, entry.lanes, entry.epoch);
  const Record& earlier = records[entry.actor];
  if (complete(access.who.clock->order, earlier, static_cast<int>(access.owner.rank))) return true;
  return access.record != nullptr && !earlier.publications.empty() &&
         earlier.publications == access.record->publications;
}

// Whether the async proxy sees an earlier access that happened before. What the issuing thread
// stored itself needs no fence.
bool Sanitizer::State::is_seen(const Access& access, const ShadowEntry& entry) const {
  uint32_t lanes = entry.lanes;
  if (entry.kind != AccessKind::kRead && access.who.warp == static_cast<int>(entry.actor))
    lanes &= ~(1u << access.who.lane);
  return seen_by_async(access.who, entry.actor, lanes, entry.epoch);
}

// Whether both write the same values to the same bytes: then it does not matter who comes last.
bool Sanitizer::State::agrees(const Access& access, const ShadowEntry& entry, uint32_t begin,
                              uint16_t bytes) const {
  if (access.values == nullptr || entry.kind != AccessKind::kWrite || entry.bytes != bytes ||
      entry.is_async != (access.record != nullptr))
    return false;
  const uint32_t first = begin + static_cast<uint32_t>(std::countr_zero(bytes));
  const std::byte* held = access.owner.shared.at(first);  // by the earlier store, done at once
  if (entry.is_async) {
    const Record& earlier = records[entry.actor];
    if (!earlier.values) return false;
    held = earlier.values->data() + (first - earlier.values_at);
  }
  return std::memcmp(held, access.values + (first - access.begin),
                     static_cast<size_t>(std::popcount(bytes))) == 0;
}

// Nothing to report although the access does not follow the entry:
//  - a read that follows one of several writes that agree;
//  - what a thread wrote is overwritten by the async proxy, and has been read: R4 judges the reads
//    (the word of tcgen05.alloc, tensor maps that were made where a tile goes).
bool Sanitizer::State::is_excused(const Access& access, const Granule& granule,
                                  const ShadowEntry& entry) const {
  if (access.kind == AccessKind::kRead)
    return entry.is_agreed && std::ranges::any_of(granule.entries, [&](const ShadowEntry& other) {
             return other.is_agreed && other.bytes == entry.bytes && follows(access, other);
           });
  if (entry.is_async || !crosses_proxies(access) || entry.kind == AccessKind::kRead ||
      !ordered(access.who, entry.actor, entry.lanes, entry.epoch))
    return false;
  return std::ranges::any_of(granule.entries, [&](const ShadowEntry& other) {
    return other.kind == AccessKind::kRead && (other.bytes & entry.bytes) == entry.bytes;
  });
}

}  // namespace ptxsim
