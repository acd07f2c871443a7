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

// Adds the lanes to an entry that is the same but for them, from the index `first` on.
bool join_lanes(Granule& granule, size_t first, const ShadowEntry& entry) {
  for (size_t i = first; i < granule.entries.size(); ++i) {
    ShadowEntry& earlier = granule.entries[i];
    if (earlier.is_async || earlier.actor != entry.actor || earlier.epoch != entry.epoch ||
        earlier.statement != entry.statement || earlier.bytes != entry.bytes ||
        earlier.kind != entry.kind)
      continue;
    earlier.lanes |= entry.lanes;
    earlier.is_agreed |= entry.is_agreed;
    if (earlier.followed != entry.followed) earlier.followed = kNobody;
    return true;
  }
  return false;
}

}  // namespace

void Sanitizer::State::access_shared(const Access& access, uint32_t bytes, bool stays) {
  const uint32_t offset = access.begin;
  std::vector<Granule>& shadow = ctas[access.owner.rank].shared;
  const uint32_t generation = ctas[access.owner.rank].generation;
  const uint32_t total = access.owner.shared.bytes();
  if (shadow.empty()) shadow.resize((total + kGranule - 1) / kGranule);
  const uint32_t end = std::min(total, offset + bytes);
  ShadowEntry clean{kNobody,           0,    0, 0, 0,
                    AccessKind::kRead, false};  // the last one that was in order
  for (uint32_t at = offset; at < end;) {
    const uint32_t granule_begin = at / kGranule * kGranule;
    const uint32_t stop = std::min(end, granule_begin + kGranule);
    const uint16_t mask = static_cast<uint16_t>(((1u << (stop - at)) - 1) << (at - granule_begin));
    Granule& granule = shadow[at / kGranule];
    if (granule.generation != generation) {
      granule.generation = generation;
      if (only_own_threads_share) granule.clear();
    }
    bool is_agreed = false;
    // Reads need no order among themselves.
    const bool may_conflict = access.kind != AccessKind::kRead || (granule.written & mask) != 0;
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
    at = stop;
  }
}

void Sanitizer::State::enter(const Access& access, Granule& granule, uint16_t bytes,
                             bool is_agreed) const {
  const bool is_async = access.record != nullptr;
  const uint32_t epoch = is_async ? 0 : warps[access.warp].epoch;
  ShadowEntry entry{is_async ? access.record_index : access.warp,
                    is_async ? 1u : 1u << access.lane,
                    epoch,
                    access.x.insn->statement,
                    bytes,
                    access.kind,
                    is_async,
                    is_agreed,
                    false,
                    access.kind == AccessKind::kRead && !is_async ? open_shared : kNobody,
                    access.kind == AccessKind::kRead && !is_async ? open_followed : kNobody};
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
  granule.written |= bytes;
  granule.run = kNobody;
  if (!is_async) granule.warps |= 1ull << (entry.actor & 63);
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
    entries.push_back(entry);
    return;
  }
  const bool is_in_run = !entry.is_async && granule.run < entries.size() &&
                         entries[granule.run].actor == entry.actor &&
                         entries[granule.run].statement == entry.statement &&
                         entries[granule.run].epoch == entry.epoch;
  if (!is_in_run) {
    forget_reads(granule, entry, records);
    granule.run = kNobody;
  }
  if (entry.is_async || !join_lanes(granule, is_in_run ? granule.run : 0, entry))
    entries.push_back(entry);
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
