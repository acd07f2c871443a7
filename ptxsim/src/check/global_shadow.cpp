// Accesses to global memory: who touched each byte last, and whether the next one may.
//
// Buffers that are read only need no shadow. A granule keeps the newest read of each thread, and
// the newest of several bulk loads by one statement of a thread: what comes after it comes after
// the others too, where programs wait for their loads in order.
#include <algorithm>

#include "check/state.hpp"

namespace ptxsim {
namespace {

// A granule has so many; with more readers the first are forgotten, so many at once.
constexpr size_t kMostEntries = 96, kForgotten = 32;
constexpr uint8_t kNoRun = 0xff;  // above kMostEntries
constexpr uint64_t kTensorMapBytes = 128;

bool is_same_instruction(const GlobalEntry& a, const GlobalEntry& b) {
  return !a.is_async && !b.is_async && a.cluster == b.cluster && a.actor == b.actor &&
         a.epoch == b.epoch && a.statement == b.statement;
}

bool is_same_entry(const GlobalEntry& a, const GlobalEntry& b) {
  return a.cluster == b.cluster && a.is_async == b.is_async && a.actor == b.actor &&
         a.lanes == b.lanes && a.epoch == b.epoch && a.kind == b.kind && a.scope == b.scope &&
         a.non_coherent == b.non_coherent;
}

// In one number, made once for all comparisons with it: compared field by field, GCC 12 stores
// halves of a word and loads the word at once, a stall for each entry of a granule (a third of this
// file's time).
uint32_t bytes_kind_scope(const GlobalEntry& e) {
  return e.bytes | static_cast<uint32_t>(e.kind) << 16 | static_cast<uint32_t>(e.scope) << 24;
}

// Whether the warp of a generic read is new to the granule; it is not any more.
bool is_new_reader(GlobalGranule& granule, const GlobalEntry& entry) {
  GlobalGranule::Readers& readers = granule.readers[entry.cluster % granule.readers.size()];
  if (readers.after > entry.cluster + 1) return false;  // it is not known
  if (readers.after <= entry.cluster) readers = {entry.cluster + 1, 0};
  const uint32_t bit = 1u << (entry.actor % 32);
  const bool is_new = (readers.warps & bit) == 0;
  readers.warps |= bit;
  return is_new;
}

// Reads that the later one stands for.
void forget_reads(std::vector<GlobalEntry>& granule, GlobalEntry& entry) {
  bool any = false;
  for (GlobalEntry& earlier : granule) {
    const bool is_alike = earlier.kind == AccessKind::kRead && earlier.cluster == entry.cluster &&
                          earlier.is_async == entry.is_async;
    if (!is_alike || (earlier.bytes & ~entry.bytes) != 0) continue;
    if (entry.scope != Scope::kNone && earlier.scope == Scope::kNone) continue;
    const bool is_same_actor =
        entry.is_async ? earlier.epoch == entry.epoch && earlier.statement == entry.statement
                       : earlier.actor == entry.actor;
    if (!is_same_actor || (earlier.lanes & entry.lanes) == 0) continue;
    if (earlier.followed != entry.followed) entry.followed = kNobody;
    entry.non_coherent |= earlier.non_coherent;
    earlier.lanes &= ~entry.lanes;
    any |= earlier.lanes == 0;
  }
  if (any) std::erase_if(granule, [](const GlobalEntry& e) { return e.lanes == 0; });
}

void take_bytes_from_others(std::vector<GlobalEntry>& granule, const GlobalEntry& entry) {
  bool any = false;
  for (GlobalEntry& earlier : granule) {
    // Lanes of one instruction that write the same bytes are all its writers.
    if (earlier.stays || (earlier.bytes == entry.bytes && is_same_instruction(earlier, entry))) {
      earlier.stays = false;
      continue;
    }
    earlier.bytes &= static_cast<uint16_t>(~entry.bytes);
    any |= earlier.bytes == 0;
  }
  if (any) std::erase_if(granule, [](const GlobalEntry& e) { return e.bytes == 0; });
}

// Reads first; writes where there are too few.
void forget_oldest(GlobalGranule& granule) {
  const auto reads = static_cast<size_t>(
      std::ranges::count(granule.entries, AccessKind::kRead, &GlobalEntry::kind));
  size_t left = kForgotten, of_writes = kForgotten - std::min(kForgotten, reads);
  std::erase_if(granule.entries, [&](const GlobalEntry& entry) {
    if (left == 0 || (entry.writes() && of_writes == 0)) return false;
    if (entry.writes()) --of_writes;
    --left;
    return true;
  });
  granule.run = kNoRun;
}

void enter_global(GlobalGranule& granule, GlobalEntry entry) {
  granule.divide();
  std::vector<GlobalEntry>& entries = granule.entries;
  // Where entries of the same statement may be: nowhere if the warp has not read here, in the run
  // if it has just begun to.
  size_t first = 0;
  if (entry.writes()) {
    granule.has_writes = true;
    granule.run = kNoRun;
    take_bytes_from_others(entries, entry);
  } else if (!entry.is_async && is_new_reader(granule, entry)) {
    granule.run = static_cast<uint8_t>(first = entries.size());
  } else if (granule.run < entries.size() && is_same_instruction(entries[granule.run], entry)) {
    first = granule.run;
  } else {
    granule.run = kNoRun;
    forget_reads(entries, entry);
  }
  const uint32_t of_entry = bytes_kind_scope(entry);
  for (size_t i = first; i < entries.size(); ++i) {
    GlobalEntry& earlier = entries[i];
    if (bytes_kind_scope(earlier) != of_entry || !is_same_instruction(earlier, entry)) continue;
    earlier.lanes |= entry.lanes;
    if (earlier.followed != entry.followed) earlier.followed = kNobody;
    return;
  }
  if (entries.size() >= kMostEntries) forget_oldest(granule);
  entries.push_back(entry);
}

// Whether this lane, the first of them, and those behind it read a whole granule, one part each.
bool share_granule(uint32_t lanes, const uint64_t* addresses, uint32_t bytes) {
  const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
  const uint32_t sharers = kGlobalGranule / bytes, all = (1u << sharers) - 1;
  if (addresses[lane] % kGlobalGranule != 0 || (lanes >> lane & all) != all) return false;
  for (uint32_t i = 1; i < sharers; ++i)
    if (addresses[lane + i] != addresses[lane] + i * bytes) return false;
  return true;
}

// As enter_global does for each of the lanes that share out a granule, in one entry. False: their
// warp has read there before, or there are too many entries.
bool enter_sharers(GlobalGranule& granule, GlobalEntry entry, int first, uint32_t sharers) {
  std::vector<GlobalEntry>& entries = granule.entries;
  if (entries.size() + granule.hidden + sharers > kMostEntries || !is_new_reader(granule, entry))
    return false;
  entry.lanes = ((1u << sharers) - 1) << first;
  entry.bytes = 0xffff;
  entry.is_spread = sharers > 1;
  granule.run = static_cast<uint8_t>(entries.size());
  granule.hidden = static_cast<uint8_t>(granule.hidden + sharers - 1);
  entries.push_back(entry);
  return true;
}

}  // namespace

GlobalEntry Sanitizer::State::entry_of(const GlobalAccess& access) {
  const bool is_async = access.record != nullptr;
  GlobalEntry entry{cluster.index,
                    is_async ? access.record_index : access.warp,
                    1u << access.lane,
                    is_async ? access.warp : warps[access.warp].epoch,
                    access.x.insn->statement,
                    0,
                    access.kind,
                    access.scope(),
                    access.at != nullptr ? access.at->element_bytes : uint8_t{0},
                    is_async,
                    access.at != nullptr && access.at->non_coherent,
                    false,
                    false};
  if (!is_async && access.kind == AccessKind::kRead) {
    follow_load(access.x);
    entry.followed = open_followed;
  }
  return entry;
}

void Sanitizer::State::access_global(const GlobalAccess& access, uint64_t address, uint64_t bytes) {
  GlobalRegion* const region = grid->region_of(address, bytes);
  if (region == nullptr) return;  // the interpreter refuses it
  check_previous_grid(access, *region, address, bytes);
  if (region->read_only) return;
  GlobalEntry entry = entry_of(access);
  has_global_operations |= entry.is_async;
  GlobalEntry clean{};  // the last one that was in order
  clean.actor = kNobody;
  const uint64_t first_granule = region->address / kGlobalGranule;
  for (uint64_t at = address, end = address + bytes; at < end;) {
    const uint64_t begin = at / kGlobalGranule * kGlobalGranule;
    const uint64_t stop = std::min(end, begin + kGlobalGranule);
    entry.bytes = static_cast<uint16_t>(((1u << (stop - at)) - 1) << (at - begin));
    entry.changes_nothing =
        has_non_coherent_loads && stores_what_is_there(access, begin, entry.bytes);
    GlobalGranule& granule = region->granule(at / kGlobalGranule - first_granule);
    granule.divide();
    const bool may_conflict = access.writes() || granule.has_writes;
    for (size_t i = 0; may_conflict && i < granule.entries.size(); ++i) {
      GlobalEntry& earlier = granule.entries[i];
      const uint16_t common = earlier.bytes & entry.bytes;
      if (common == 0 || (!earlier.writes() && !access.writes())) continue;
      if (is_same_entry(earlier, clean)) continue;
      const Verdict verdict = judge(access, earlier, begin, common);
      if (verdict == Verdict::kInOrder) clean = earlier;
      earlier.stays = verdict == Verdict::kTolerated && earlier.kind == AccessKind::kAtomic &&
                      access.kind == AccessKind::kAtomic;
    }
    enter_global(granule, entry);
    at = stop;
  }
}

bool Sanitizer::wants_global_accesses() const {
  return state_->cluster.machine.options().check_global;
}

void Sanitizer::global_access(const Execution& x, int lane, const MemoryAt& at, uint32_t bytes,
                              AccessKind kind) {
  State& s = *state_;
  s.access_global({x, lane, kind, s.knowledge_of(x, lane), s.warp_of(x), &at}, at.offset, bytes);
}

// Where no thread writes, entries are made of one that has what the lanes have in common.
void Sanitizer::global_reads(const Execution& x, uint32_t lanes, const uint64_t* addresses,
                             const MemoryAt& at, uint32_t bytes) {
  State& s = *state_;
  const int first = std::countr_zero(lanes);
  GlobalRegion* const region = s.grid->region_of(addresses[first], bytes);
  if (region == nullptr) return;
  const bool may_meet_earlier_grids =
      !s.grid->earlier_grids().empty() || region->previous_writes || region->previous_reads;
  if (may_meet_earlier_grids || bytes > kGlobalGranule)
    return Observer::global_reads(x, lanes, addresses, at, bytes);
  if (region->read_only) return;
  GlobalEntry entry =
      s.entry_of({x, first, AccessKind::kRead, s.knowledge_of(x, first), s.warp_of(x), &at});
  const uint64_t first_granule = region->address / kGlobalGranule;
  const uint32_t sharers = kGlobalGranule / bytes;  // lanes that a granule may be shared out among
  MemoryAt of_lane = at;
  for (uint32_t left = lanes; left != 0;) {
    const int lane = std::countr_zero(left);
    const uint64_t address = addresses[lane];
    GlobalGranule& granule = region->granule(address / kGlobalGranule - first_granule);
    entry.lanes = 1u << lane;
    entry.bytes = static_cast<uint16_t>(((1u << bytes) - 1) << address % kGlobalGranule);
    if (!granule.has_writes && share_granule(left, addresses, bytes) &&
        enter_sharers(granule, entry, lane, sharers)) {
      left &= ~(((1u << sharers) - 1) << lane);
      continue;
    }
    left &= left - 1;
    of_lane.offset = address;
    if (granule.has_writes)
      global_access(x, lane, of_lane, bytes, AccessKind::kRead);
    else
      enter_global(granule, entry);
  }
}

void Sanitizer::async_global_range(AsyncOp op, const Execution& x, uint64_t address, uint64_t bytes,
                                   AccessKind kind) {
  State& s = *state_;
  const uint32_t index = s.record_of_op[op.number];
  const Record& record = s.records[index];
  s.access_global(
      {x, record.lane, kind, s.knowledge_of(x, record.lane), record.warp, nullptr, &record, index},
      address, bytes);
}

void Sanitizer::tensor_map_used(AsyncOp op, const Execution& x, uint64_t address) {
  State& s = *state_;
  const uint32_t index = s.record_of_op[op.number];
  const Record& record = s.records[index];
  s.access_global({x, record.lane, AccessKind::kRead, s.knowledge_of(x, record.lane), record.warp,
                   nullptr, &record, index, true, address},
                  address, kTensorMapBytes);
}

}  // namespace ptxsim
