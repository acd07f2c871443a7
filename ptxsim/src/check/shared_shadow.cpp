// Accesses to shared memory: who touched each byte last, and whether the next one may.
#include <algorithm>
#include <cstring>
#include <utility>

#include "check/state.hpp"

namespace ptxsim {
namespace {

bool is_same_instruction(const Access& access, const ShadowEntry& entry, uint32_t epoch) {
  return !entry.is_async && entry.actor == access.warp && entry.epoch == epoch &&
         entry.statement == access.x.insn->statement;
}

bool is_same_entry(const ShadowEntry& a, const ShadowEntry& b) {
  return a.is_async == b.is_async && a.actor == b.actor && a.lanes == b.lanes &&
         a.epoch == b.epoch && a.kind == b.kind && a.load == b.load;
}

bool completes_in_order(AsyncKind kind) {
  return kind != AsyncKind::kTmaLoad && kind != AsyncKind::kClc;
}

bool is_from_same(const ShadowEntry& a, const ShadowEntry& b, const std::vector<Record>& records) {
  if (a.is_async != b.is_async) return false;
  return a.is_async ? records[a.actor].queue == records[b.actor].queue : a.actor == b.actor;
}

// Reads that a later read of the same thread or queue stands for.
void forget_reads(Granule& granule, ShadowEntry& entry, const std::vector<Record>& records) {
  for (ShadowEntry& earlier : granule.entries) {
    if (earlier.kind != AccessKind::kRead || earlier.is_async != entry.is_async) continue;
    if ((earlier.bytes & ~entry.bytes) != 0) continue;
    if (!entry.is_async) {
      if (earlier.actor != entry.actor || (earlier.lanes & entry.lanes) == 0) continue;
      if (earlier.followed != entry.followed) entry.followed = kNobody;
      earlier.lanes &= ~entry.lanes;
    } else if (records[earlier.actor].queue == records[entry.actor].queue &&
               completes_in_order(records[entry.actor].kind)) {
      earlier.lanes = 0;
    }
  }
  std::erase_if(granule.entries, [](const ShadowEntry& e) { return e.lanes == 0; });
}

using Offsets = std::array<uint32_t, kWarpSize>;  // by lane

// Whether this lane and those behind it use a whole granule, one part each.
bool share_granule(uint32_t lanes, int first, const Offsets& offsets, uint32_t bytes) {
  const uint32_t sharers = kGranule / bytes, all = (1u << sharers) - 1;
  const auto at = static_cast<uint32_t>(first);
  if (offsets[at] % kGranule != 0 || (lanes >> first & all) != all) return false;
  for (uint32_t i = 1; i < sharers; ++i)
    if (offsets[at + i] != offsets[at] + i * bytes) return false;
  return true;
}

// Adds the lanes to an entry that is the same but for them, from the index `first` on.
bool join_lanes(Granule& granule, size_t first, const ShadowEntry& entry) {
  for (size_t i = first; i < granule.entries.size(); ++i) {
    ShadowEntry& earlier = granule.entries[i];
    if (earlier.is_async || earlier.actor != entry.actor || earlier.epoch != entry.epoch ||
        earlier.statement != entry.statement || earlier.bytes != entry.bytes ||
        earlier.kind != entry.kind || earlier.is_spread != entry.is_spread ||
        (entry.is_spread && earlier.lanes != entry.lanes))
      continue;
    earlier.lanes |= entry.lanes;
    earlier.is_agreed |= entry.is_agreed;
    if (earlier.followed != entry.followed) earlier.followed = kNobody;
    return true;
  }
  return false;
}

// Calls f(ShadowEntry) for the part of each lane.
template <class F>
void for_parts(const ShadowEntry& spread, F&& f) {
  ShadowEntry part = spread;
  part.is_spread = false;
  const uint32_t each = kGranule / static_cast<uint32_t>(std::popcount(spread.lanes));
  uint32_t mask = (1u << each) - 1;
  for (uint32_t left = spread.lanes; left != 0; left &= left - 1, mask <<= each) {
    part.lanes = left & (0 - left);
    part.bytes = static_cast<uint16_t>(mask);
    f(part);
  }
}

// Calls f(ShadowEntry, offset) for parts of a warp's read of `bytes` at each lane's offset: that of
// lanes which share out a granule, or of neighbours that read the same bytes.
template <class F>
void for_reads(const ShadowEntry& read, const Offsets& offsets, uint32_t bytes, F&& f) {
  const uint32_t lanes = read.lanes;
  const uint32_t sharers = kGranule / bytes;  // lanes that a granule may be shared out among
  ShadowEntry entry = read;
  const auto offset_of_first = [&](uint32_t left) {
    return offsets[static_cast<size_t>(std::countr_zero(left))];
  };
  for (uint32_t left = lanes; left != 0;) {
    const int lane = std::countr_zero(left);
    const uint32_t offset = offset_of_first(left);
    uint32_t same = 0;
    for (; left != 0 && offset_of_first(left) == offset; left &= left - 1)
      same |= left & (0 - left);
    entry.lanes = same;
    entry.bytes = static_cast<uint16_t>(((1u << bytes) - 1) << (offset % kGranule));
    entry.is_spread =
        sharers > 1 && (same & (same - 1)) == 0 && share_granule(lanes, lane, offsets, bytes);
    if (entry.is_spread) {
      entry.lanes = ((1u << sharers) - 1) << lane;
      entry.bytes = 0xffff;
      left &= ~entry.lanes;
    }
    f(entry, offset);
  }
}

// An entry a lane in the place of those whose bytes lanes share.
void divide_spread(Granule& granule) {
  if (!granule.has_spread) return;
  const std::vector<ShadowEntry> entries = std::exchange(granule.entries, {});
  granule.has_spread = false;
  granule.run = kNobody;
  for (const ShadowEntry& entry : entries) {
    if (!entry.is_spread) {
      granule.entries.push_back(entry);
      continue;
    }
    for_parts(entry, [&](const ShadowEntry& part) {
      if (!join_lanes(granule, 0, part)) granule.entries.push_back(part);
    });
  }
}

}  // namespace

Granule& Sanitizer::State::granule_without_log(const Cta& owner, uint32_t offset) {
  CtaShadow& shadow = ctas[owner.rank];
  if (shadow.shared.empty()) shadow.shared.resize((owner.shared.bytes() + kGranule - 1) / kGranule);
  Granule& granule = shadow.shared[offset / kGranule];
  if (granule.generation != shadow.generation) {
    granule.generation = shadow.generation;
    if (only_own_threads_share) granule.clear();
  }
  return granule;
}

ReadLog& Sanitizer::State::log_of(const Cta& owner) {
  CtaShadow& shadow = ctas[owner.rank];
  shadow.log.begin(shadow.generation, (owner.shared.bytes() + kGranule - 1) / kGranule);
  return shadow.log;
}

Granule& Sanitizer::State::granule_at(const Cta& owner, uint32_t offset) {
  if (only_own_threads_share) {
    ReadLog& log = log_of(owner);
    if (log.concerns(offset / kGranule))
      log.hand_over([&](const LoggedRead& read) {
        for_reads(read.entry, read.offsets, read.bytes, [&](const ShadowEntry& entry, uint32_t at) {
          enter_read(entry, granule_without_log(owner, at));
        });
      });
  }
  return granule_without_log(owner, offset);
}

void Sanitizer::State::access_shared(const Access& access, uint32_t bytes, bool stays) {
  const uint32_t offset = access.begin;
  const uint32_t total = access.owner.shared.bytes();
  const uint32_t end = std::min(total, offset + bytes);
  ShadowEntry clean{kNobody,           0,    0, 0, 0,
                    AccessKind::kRead, false};  // the last one that was in order
  for (uint32_t at = offset; at < end;) {
    const uint32_t granule_begin = at / kGranule * kGranule;
    const uint32_t stop = std::min(end, granule_begin + kGranule);
    const uint16_t mask = static_cast<uint16_t>(((1u << (stop - at)) - 1) << (at - granule_begin));
    Granule& granule = granule_at(access.owner, at);
    bool is_agreed = false;
    // Reads need no order among themselves.
    const bool may_conflict = access.kind != AccessKind::kRead || (granule.written & mask) != 0;
    if (may_conflict) divide_spread(granule);
    for (size_t i = 0; may_conflict && i < granule.entries.size(); ++i) {
      ShadowEntry& entry = granule.entries[i];
      if ((entry.bytes & mask) == 0) continue;
      if (is_same_entry(entry, clean)) {
        entry.stays = clean.stays;
        continue;
      }
      if (entry.kind == AccessKind::kRead && access.kind == AccessKind::kRead) continue;
      if (entry.is_async && access.kind == AccessKind::kRead) note_copy_read(records[entry.actor]);
      if (entry.load != kNobody) check_load(access, entry, at);
      if (follows(access, entry)) {
        if (is_beyond_scope(access, entry)) report_beyond_scope(access, entry, at);
        entry.stays = are_atomics(access, entry) && !stands_for(access, entry);
        clean = entry;
        continue;
      }
      if (is_excused(access, granule, entry)) continue;
      const bool agree = agrees(access, entry, granule_begin, mask);
      entry.is_agreed |= agree;
      is_agreed |= agree;
      if (entry.is_async)
        report_after_async(access, entry, at, agree);
      else
        report_after_generic(access, entry, at, agree);
    }
    if (stays) enter(access, granule, mask, is_agreed);
    if (only_own_threads_share && access.kind != AccessKind::kRead)
      log_of(access.owner).note_write(at / kGranule);
    at = stop;
  }
}

void Sanitizer::State::enter(const Access& access, Granule& granule, uint16_t bytes,
                             bool is_agreed) const {
  const bool is_async = access.record != nullptr;
  const uint32_t epoch = is_async ? 0 : warps[access.warp].epoch;
  const bool loads = access.kind == AccessKind::kRead && !is_async;
  const ShadowEntry entry{.actor = is_async ? access.record_index : access.warp,
                          .lanes = is_async ? 1u : 1u << access.lane,
                          .epoch = epoch,
                          .statement = access.x.insn->statement,
                          .bytes = bytes,
                          .kind = access.kind,
                          .is_async = is_async,
                          .is_agreed = is_agreed,
                          .load = loads ? open_shared : kNobody,
                          .followed = loads ? open_followed : kNobody};
  if (access.kind == AccessKind::kRead) return enter_read(entry, granule);
  for (ShadowEntry& earlier : granule.entries) {
    const bool is_same = earlier.bytes == bytes;
    // Lanes of one instruction that write the same bytes are all its writers.
    if (!is_async && is_same && is_same_instruction(access, earlier, epoch)) continue;
    if (std::exchange(earlier.stays, false)) continue;
    if (is_agreed && earlier.is_agreed && is_same) {
      if (is_from_same(earlier, entry, records)) earlier.lanes &= ~entry.lanes;
    } else {
      earlier.bytes &= static_cast<uint16_t>(~bytes);
    }
  }
  std::erase_if(granule.entries, [](const ShadowEntry& e) { return e.bytes == 0 || e.lanes == 0; });
  granule.note_write(entry);
  if (is_async || !join_lanes(granule, 0, entry)) granule.entries.push_back(entry);
}

// A read stands for earlier ones of its thread or queue. A warp that has none here, or none but
// those of the statement under way, has none to look for.
void Sanitizer::State::enter_read(const ShadowEntry& read, Granule& granule) const {
  ShadowEntry entry = read;
  std::vector<ShadowEntry>& entries = granule.entries;
  const uint64_t warp = 1ull << (entry.actor & 63);
  if (!entry.is_async && (granule.warps & warp) == 0) {
    granule.warps |= warp;
    granule.run = static_cast<uint32_t>(entries.size());
    granule.has_spread |= entry.is_spread;
    entries.push_back(entry);
    return;
  }
  if (!entry.is_async && granule.run < entries.size()) {
    const ShadowEntry& first = entries[granule.run];
    if (first.actor == entry.actor && first.statement == entry.statement &&
        first.epoch == entry.epoch) {
      granule.has_spread |= entry.is_spread;
      if (!join_lanes(granule, granule.run, entry)) entries.push_back(entry);
      return;
    }
  }
  divide_spread(granule);
  if (entry.is_spread)
    return for_parts(entry, [&](const ShadowEntry& part) { enter_read(part, granule); });
  forget_reads(granule, entry, records);
  granule.run = kNobody;
  if (entry.is_async || !join_lanes(granule, 0, entry)) entries.push_back(entry);
}

void Sanitizer::shared_access(const Execution& x, int lane, Cta& owner, uint32_t offset,
                              uint32_t bytes, AccessKind kind) {
  State& s = *state_;
  if (&owner != &x.cta) s.check_remote(x, lane, owner, offset);
  if (kind == AccessKind::kRead && s.follows_results) s.open_load();
  if (kind == AccessKind::kRead) s.follow_load(x);
  Access access{x, lane, owner, kind, s.knowledge_of(x, lane), s.warp_of(x)};
  access.begin = offset;
  s.access_shared(access, bytes);
}

void Sanitizer::shared_reads(const Execution& x, uint32_t lanes, Cta& owner,
                             const SharedOffsets& offsets, uint32_t bytes) {
  State& s = *state_;
  if (s.follows_results) s.open_load();
  s.follow_load(x);
  const uint32_t warp = s.warp_of(x);
  const ShadowEntry read{.actor = warp,
                         .lanes = lanes,
                         .epoch = s.warps[warp].epoch,
                         .statement = x.insn->statement,
                         .bytes = 0,
                         .kind = AccessKind::kRead,
                         .is_async = false,
                         .load = s.open_shared,
                         .followed = s.open_followed};
  if (s.only_own_threads_share && s.log_of(owner).take(read, offsets, bytes)) return;
  for_reads(read, offsets.of_lane, bytes, [&](const ShadowEntry& entry, uint32_t offset) {
    Granule& granule = s.granule_at(owner, offset);
    if ((granule.written & entry.bytes) == 0) return s.enter_read(entry, granule);
    for (uint32_t each = entry.lanes; each != 0; each &= each - 1) {
      const int reader = std::countr_zero(each);
      Access access{x, reader, owner, AccessKind::kRead, s.knowledge_of(x, reader), warp};
      access.begin = offsets[reader];
      s.access_shared(access, bytes);
    }
  });
}

// Lanes that share out a granule without entries need no look at who has used it.
void Sanitizer::shared_stores(const Execution& x, uint32_t lanes, Cta& owner,
                              const SharedOffsets& offsets, uint32_t bytes,
                              const std::byte* values) {
  State& s = *state_;
  const uint32_t warp = s.warp_of(x);
  ShadowEntry entry{.actor = warp,
                    .lanes = 0,
                    .epoch = s.warps[warp].epoch,
                    .statement = x.insn->statement,
                    .bytes = 0xffff,
                    .kind = AccessKind::kWrite,
                    .is_async = false,
                    .is_spread = true};
  for (uint32_t left = lanes; left != 0;) {
    const int lane = std::countr_zero(left);
    if (share_granule(lanes, lane, offsets.of_lane, bytes)) {
      Granule& granule = s.granule_at(owner, offsets[lane]);
      if (granule.entries.empty()) {
        entry.lanes = ((1u << kGranule / bytes) - 1) << lane;
        for_parts(entry, [&](const ShadowEntry& part) { granule.entries.push_back(part); });
        granule.note_write(entry);
        if (s.only_own_threads_share) s.log_of(owner).note_write(offsets[lane] / kGranule);
        left &= ~entry.lanes;
        continue;
      }
    }
    shared_store(x, lane, owner, offsets[lane], bytes, values + bytes * static_cast<size_t>(lane));
    left &= left - 1;
  }
}

void Sanitizer::shared_store(const Execution& x, int lane, Cta& owner, uint32_t offset,
                             uint32_t bytes, const std::byte* values) {
  State& s = *state_;
  if (&owner != &x.cta) s.check_remote(x, lane, owner, offset);
  Access access{x, lane, owner, AccessKind::kWrite, s.knowledge_of(x, lane), s.warp_of(x)};
  access.begin = offset;
  access.values = values;
  s.access_shared(access, bytes);
}

void Sanitizer::async_shared(AsyncOp op, const Execution& x, Cta& owner, uint32_t offset,
                             uint32_t bytes, AccessKind kind) {
  Record& record = state_->record_of(op);
  if (record.kind == AsyncKind::kClc) ++record.unanswered;
  state_->access_shared_by(op, x, owner, offset, bytes, kind, nullptr);
}

void Sanitizer::async_shared_store(AsyncOp op, const Execution& x, Cta& owner, uint32_t offset,
                                   uint32_t bytes, const std::byte* values) {
  Record& record = state_->record_of(op);
  if (values != nullptr) {
    std::memcpy(record.values.emplace().data(), values, bytes);
    record.values_at = offset;
  }
  state_->access_shared_by(op, x, owner, offset, bytes, AccessKind::kWrite, values);
}

void Sanitizer::State::access_shared_by(AsyncOp op, const Execution& x, Cta& owner, uint32_t offset,
                                        uint32_t bytes, AccessKind kind, const std::byte* values) {
  State& s = *this;
  const uint32_t index = s.record_of_op[op.number];
  const Record& record = s.records[index];
  if (&owner != &x.cta) s.check_remote(x, record.lane, owner, offset);
  s.access_shared({x, record.lane, owner, kind, s.knowledge_of(x, record.lane), record.warp,
                   &record, index, offset, values},
                  bytes);
}

}  // namespace ptxsim
