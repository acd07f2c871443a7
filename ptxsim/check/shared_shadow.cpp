// Accesses to shared memory: who touched each byte last, and whether the next one may.
#include <algorithm>

#include "ptxsim/check/state.hpp"

namespace ptxsim {
namespace {

bool is_same_instruction(const Access& access, const ShadowEntry& entry, uint32_t epoch) {
  return !entry.is_async && entry.actor == access.warp && entry.epoch == epoch &&
         entry.statement == access.x.insn->statement;
}

bool is_same_entry(const ShadowEntry& a, const ShadowEntry& b) {
  return a.is_async == b.is_async && a.actor == b.actor && a.lanes == b.lanes &&
         a.epoch == b.epoch && a.kind == b.kind;
}

bool completes_in_order(AsyncKind kind) {
  return kind != AsyncKind::kTmaLoad && kind != AsyncKind::kClc;
}

// Reads that a later read of the same thread or queue stands for.
void forget_reads(Granule& granule, const ShadowEntry& entry, const std::vector<Record>& records) {
  for (ShadowEntry& earlier : granule) {
    if (earlier.kind != AccessKind::kRead || earlier.is_async != entry.is_async) continue;
    if ((earlier.bytes & ~entry.bytes) != 0) continue;
    if (!entry.is_async) {
      if (earlier.actor == entry.actor) earlier.lanes &= ~entry.lanes;
    } else if (records[earlier.actor].queue == records[entry.actor].queue &&
               completes_in_order(records[entry.actor].kind)) {
      earlier.lanes = 0;
    }
  }
  std::erase_if(granule, [](const ShadowEntry& e) { return e.lanes == 0; });
}

}  // namespace

void Sanitizer::State::access_shared(const Access& access, uint32_t offset, uint32_t bytes) {
  std::vector<Granule>& shadow = ctas[access.owner.rank].shared;
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
    for (const ShadowEntry& entry : granule) {
      if ((entry.bytes & mask) == 0 || is_same_entry(entry, clean)) continue;
      if (entry.kind == AccessKind::kRead && access.kind == AccessKind::kRead) continue;
      const bool is_clean = entry.is_async ? is_clean_after_async(access, entry, at)
                                           : is_clean_after_generic(access, entry, at);
      if (is_clean) clean = entry;
    }
    enter(access, granule, mask);
    at = stop;
  }
}

void Sanitizer::State::enter(const Access& access, Granule& granule, uint16_t bytes) const {
  const bool is_async = access.record != nullptr;
  const uint32_t epoch = is_async ? 0 : warps[access.warp].epoch;
  ShadowEntry entry{is_async ? access.record_index : access.warp,
                    is_async ? 1u : 1u << access.lane,
                    epoch,
                    access.x.insn->statement,
                    bytes,
                    access.kind,
                    is_async};
  if (access.kind == AccessKind::kRead) {
    forget_reads(granule, entry, records);
  } else {
    for (ShadowEntry& earlier : granule) {
      // Lanes of one instruction that write the same bytes are all its writers.
      if (is_async || earlier.bytes != bytes || !is_same_instruction(access, earlier, epoch))
        earlier.bytes &= static_cast<uint16_t>(~bytes);
    }
    std::erase_if(granule, [](const ShadowEntry& e) { return e.bytes == 0; });
  }
  if (!is_async) {
    for (ShadowEntry& earlier : granule) {
      if (!is_same_instruction(access, earlier, epoch) || earlier.bytes != bytes ||
          earlier.kind != access.kind)
        continue;
      earlier.lanes |= entry.lanes;
      return;
    }
  }
  granule.push_back(entry);
}

void Sanitizer::shared_access(const Execution& x, int lane, Cta& owner, uint32_t offset,
                              uint32_t bytes, AccessKind kind) {
  State& s = *state_;
  if (&owner != &x.cta) s.check_remote(x, lane, owner, offset);
  s.access_shared({x, lane, owner, kind, s.knower(x, lane), s.warp_of(x)}, offset, bytes);
}

void Sanitizer::async_shared(AsyncOp op, const Execution& x, Cta& owner, uint32_t offset,
                             uint32_t bytes, AccessKind kind) {
  State& s = *state_;
  const uint32_t index = s.record_of_op[op.number];
  const Record& record = s.records[index];
  if (&owner != &x.cta) s.check_remote(x, record.lane, owner, offset);
  s.access_shared(
      {x, record.lane, owner, kind, s.knower(x, record.lane), record.warp, &record, index}, offset,
      bytes);
}

}  // namespace ptxsim
