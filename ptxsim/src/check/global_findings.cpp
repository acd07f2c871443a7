// The rules of global memory: R17 to R20 and R22.
#include <fmt/format.h>

#include <algorithm>

#include "check/state.hpp"

namespace ptxsim {
namespace {

constexpr int kRace = 17, kProxyFence = 18, kUnfinished = 19, kNonCoherent = 20, kTensorMap = 22;

const char* name_of(Scope scope) {
  switch (scope) {
    case Scope::kCta:
      return ".cta";
    case Scope::kCluster:
      return ".cluster";
    case Scope::kGpu:
      return ".gpu";
    case Scope::kSys:
      return ".sys";
    default:
      return "no";
  }
}

const char* distance_name(Scope needed) {
  return needed == Scope::kCta       ? "of the same CTA"
         : needed == Scope::kCluster ? "of another CTA of the cluster"
                                     : "of another CTA of the grid";
}

Finding missing_proxy_fence(const GlobalAccess& access, const std::string& place) {
  return {kProxyFence, Severity::kError,
          fmt::format("{} {} through the async proxy; ordinary stores wrote it, with no proxy "
                      "fence between",
                      verb(access.kind), place),
          "fence.proxy.async (or .global) between the write and the synchronisation that hands it "
          "over",
          "execute fence.proxy.async.global in each writing thread, before it releases"};
}

Finding unacquired_map(const std::string& place) {
  return {kTensorMap, Severity::kError,
          fmt::format("uses a tensor map in {} that was written in this kernel, without the fences "
                      "of the tensormap proxy",
                      place),
          "fence.proxy.tensormap::generic.release after the write, and .acquire of the map's "
          "address before the copy",
          "write it with tensormap.cp_fenceproxy (or release it with a fence), and execute "
          "fence.proxy.tensormap::generic.acquire.gpu [map], 128 in the CTA that uses it"};
}

Finding written_non_coherent(bool loads, Severity severity, const std::string& place) {
  return {
      kNonCoherent, severity,
      fmt::format("{} {}, which this kernel {} too", loads ? "reads without coherence" : "writes",
                  place, loads ? "writes" : "reads with ld.global.nc"),
      "nothing: data read by ld.global.nc, ldu, textures and surfaces must not change while the "
      "kernel runs",
      "read it with ld.global (no const __restrict__ pointer, no __ldg, no texture or surface)"};
}

Finding unfinished(const GlobalAccess& access, const GlobalEntry& entry, const Record& earlier,
                   const std::string& place) {
  const bool is_store = earlier.kind == AsyncKind::kTmaStore;
  return {kUnfinished, Severity::kError,
          fmt::format("{} {} while an operation may still {} it", verb(access.kind), place,
                      entry.writes() ? "write" : "read"),
          is_store ? "cp.async.bulk.commit_group and cp.async.bulk.wait_group (without .read) by "
                     "the issuing thread, handed on from there"
                   : "a wait for the operation's completion, handed on from there",
          is_store ? "cp.async.bulk.wait_group 0 by the issuing thread, then a barrier or a release"
                   : "wait on its mbarrier or group before this access"};
}

Finding same_instruction(const std::string& place) {
  return {kRace, Severity::kWarning,
          fmt::format("stores different values to {} from lanes of one warp; which one stays is "
                      "not defined",
                      place),
          "one lane that stores, or one value", "let one lane store, or use an atomic"};
}

Finding read_is_over(const std::string& place) {
  return {kRace, Severity::kWarning,
          fmt::format("writes {}, read by another thread, whose load is over only by what that "
                      "thread has sent after using it, without a release",
                      place),
          "a release after the load, and an acquire before this write",
          "make the accesses of the flag between the two st.release and ld.acquire"};
}

// What synchronises through memory, or the scope that is too narrow for it.
Finding race(const GlobalAccess& access, const GlobalEntry& entry, Scope needed,
             const std::string& place, const std::string& narrow) {
  const Scope scope = access.scope();
  if (scope != Scope::kNone && entry.scope != Scope::kNone) {
    const bool is_narrow = std::min(scope, entry.scope) < needed;
    return {
        kRace, Severity::kError,
        fmt::format("{} {} {}, with scope {} here and {} there", verb(access.kind), place,
                    is_narrow ? "that a thread " + std::string(distance_name(needed)) + " has " +
                                    participle(entry.kind)
                              : "that another thread has " + std::string(participle(entry.kind)) +
                                    " in another size or proxy",
                    name_of(scope), name_of(entry.scope)),
        is_narrow ? fmt::format("a scope of {} at least in both", name_of(needed))
                  : "accesses of the same bytes through the same proxy",
        is_narrow ? fmt::format("widen both to {}", name_of(needed))
                  : "use one size and one kind of operation for what threads share"};
  }
  return {kRace, Severity::kError,
          fmt::format("{} {}, and nothing orders this after its being {} by a thread {}",
                      verb(access.kind), place, participle(entry.kind), distance_name(needed)),
          narrow.empty()
              ? needed == Scope::kCta
                    ? "a barrier, or a release and an acquire, between the two"
                    : "a release of at least this scope after the earlier one, and an acquire "
                      "before this one"
              : narrow,
          needed == Scope::kGpu
              ? "st.release.gpu (or fence.acq_rel.gpu and a relaxed store or atomic) after the "
                "earlier access; ld.acquire.gpu of that flag before this one"
              : "a barrier of the CTA or the cluster between the two"};
}

}  // namespace

bool Sanitizer::State::happened_before(const ThreadKnowledge& who, const GlobalEntry& entry) const {
  if (entry.cluster == cluster.index) return ordered(who, entry.actor, entry.lanes, entry.epoch);
  const ClockValues* const known = foreign_clock(*who.clock, entry.cluster);
  return known != nullptr &&
         knows(known->order, index_of(entry.actor, 0), entry.lanes, entry.epoch);
}

bool Sanitizer::State::seen_by_proxy(const ThreadKnowledge& who, const GlobalEntry& entry,
                                     ProxyClock proxy) const {
  const uint32_t first = index_of(entry.actor, 0);
  if (entry.cluster != cluster.index) {
    const ClockValues* const known = foreign_clock(*who.clock, entry.cluster);
    return known != nullptr && knows(known->*proxy, first, entry.lanes, entry.epoch);
  }
  uint32_t lanes = entry.lanes;
  if (who.warp == static_cast<int>(entry.actor) && (lanes >> who.lane & 1) != 0) {
    const uint32_t own =
        proxy == &ClockValues::tensor_maps ? who.own_tensor_maps : who.own_async_global;
    if (own < entry.epoch) return false;
    lanes &= ~(1u << who.lane);
  }
  return knows(who.clock->*proxy, first, lanes, entry.epoch);
}

// Morally strong accesses do not race, nor do stores of what is there already.
bool Sanitizer::State::is_tolerated_race(const GlobalAccess& access, const GlobalEntry& entry,
                                         uint64_t granule, uint16_t bytes) const {
  if (access.at == nullptr) return false;
  if (access.scope() != Scope::kNone && entry.scope != Scope::kNone) {
    const Scope needed = scope_to(access.x.cta.rank, entry.cluster, rank_of(entry.actor));
    return access.scope() >= needed && entry.scope >= needed &&
           access.at->element_bytes == entry.element_bytes;
  }
  return entry.kind == AccessKind::kWrite && stores_what_is_there(access, granule, bytes);
}

bool Sanitizer::State::stores_what_is_there(const GlobalAccess& access, uint64_t granule,
                                            uint16_t bytes) const {
  if (access.at == nullptr || access.kind != AccessKind::kWrite || access.at->value == nullptr)
    return false;
  const GlobalBuffer* const buffer = access.x.machine.global().find(access.at->offset);
  if (buffer == nullptr) return false;
  for (uint32_t left = bytes; left != 0; left &= left - 1) {
    const uint64_t address = granule + static_cast<uint64_t>(std::countr_zero(left));
    if (buffer->data[address - buffer->address] != access.at->value[address - access.at->offset])
      return false;
  }
  return true;
}

void Sanitizer::State::report_global(const GlobalAccess& access, const GlobalEntry& entry,
                                     uint32_t other_statement, Finding finding,
                                     std::vector<Deferred>* unused) {
  const int lane = std::countr_zero(entry.lanes);
  const uint32_t warp = entry.is_async ? entry.epoch : entry.actor;
  const uint32_t lanes = access.writes() ? entry.lanes : 1u << access.lane;
  report_or_defer(access.x, access.lane, other_statement,
                  fmt::format("'{}' at {}, by {}", text_of(entry.statement),
                              to_string(cluster.machine.place_of(entry.statement)),
                              grid->actor(entry.cluster, warp, lane)),
                  std::move(finding), unused, lanes);
}

// Where to defer a finding, if one of the two accesses is a load or a copy whose result no
// statement has used so far.
std::vector<Deferred>* Sanitizer::State::unused_read(const GlobalAccess& access,
                                                     const GlobalEntry& entry) {
  if (access.kind == AccessKind::kRead && access.record != nullptr)
    return access.reads_tensor_map ? nullptr : unused_copy(cluster.index, access.record_index);
  if (access.kind == AccessKind::kRead) return unused_load(open_followed, 1u << access.lane);
  if (entry.kind != AccessKind::kRead) return nullptr;
  if (entry.is_async) return unused_copy(entry.cluster, entry.actor);
  return unused_load(entry.followed, entry.lanes);
}

bool Sanitizer::State::is_read_over(const GlobalAccess& access, const GlobalEntry& entry) {
  return access.writes() && entry.kind == AccessKind::kRead && !entry.is_async &&
         is_over_by_signal(access.who, entry.cluster, entry.actor, entry.lanes, entry.epoch,
                           entry.statement);
}

Verdict Sanitizer::State::judge_after_async(const GlobalAccess& access, const GlobalEntry& entry,
                                            uint64_t at) {
  const bool is_own = entry.cluster == cluster.index;
  if (is_own && access.record != nullptr && access.record_index == entry.actor)
    return Verdict::kInOrder;
  const Record& earlier = (*grid->records.at(entry.cluster))[entry.actor];
  const ClockValues* const known =
      is_own ? access.who.clock : foreign_clock(*access.who.clock, entry.cluster);
  if (known != nullptr) {
    if (entry.writes() ? clock_value(known->order, earlier.write_queue) >= earlier.sequence
                       : complete(known->order, earlier, -1))
      return Verdict::kInOrder;
  }
  const bool both_reduce = access.record != nullptr && access.kind == AccessKind::kAtomic &&
                           entry.kind == AccessKind::kAtomic;
  // All lanes of a warp may issue the same store, as CUTLASS does on sm_90: the same bytes again.
  const bool is_repeated =
      is_own && access.record != nullptr && access.kind == AccessKind::kWrite &&
      entry.kind == AccessKind::kWrite && earlier.warp == access.record->warp &&
      earlier.lane != access.record->lane && entry.statement == access.x.insn->statement;
  if (both_reduce || is_repeated) return Verdict::kTolerated;
  std::vector<Deferred>* const unused = unused_read(access, entry);
  if (unused != nullptr ||
      !seen_before(kUnfinished, Severity::kError, access.x.insn->statement, entry.statement))
    report_global(access, entry, entry.statement,
                  unfinished(access, entry, earlier, grid->place(at)), unused);
  return Verdict::kReported;
}

Verdict Sanitizer::State::judge(const GlobalAccess& access, const GlobalEntry& entry,
                                uint64_t granule, uint16_t bytes) {
  const uint32_t statement = access.x.insn->statement;
  const uint64_t at = granule + static_cast<uint64_t>(std::countr_zero(bytes));
  const bool loads = access.at != nullptr && access.at->non_coherent;
  const auto add = [&](int rule, uint32_t other, auto&& finding,
                       Severity severity = Severity::kError) {
    std::vector<Deferred>* const unused =
        severity == Severity::kError ? unused_read(access, entry) : nullptr;
    if (unused != nullptr || !seen_before(rule, severity, statement, other))
      report_global(access, entry, other, finding(), unused);
    return Verdict::kReported;
  };
  if (loads || entry.non_coherent) {
    if (loads ? entry.changes_nothing : stores_what_is_there(access, granule, bytes))
      return Verdict::kTolerated;
    // cub's algorithms in place: every read is over when the same thread writes, and none comes
    // after.
    const bool is_over =
        !loads && (happened_before(access.who, entry) || is_read_over(access, entry));
    const Severity severity = is_over ? Severity::kWarning : Severity::kError;
    return add(
        kNonCoherent, entry.statement,
        [&] { return written_non_coherent(loads, severity, grid->place(at)); }, severity);
  }
  if (entry.is_async) return judge_after_async(access, entry, at);
  if (happened_before(access.who, entry)) {
    if (access.reads_tensor_map) {
      if (!is_acquired(access, entry, access.map))
        return add(kTensorMap, entry.statement,
                   [&] { return unacquired_map(grid->place(access.map)); });
    } else if (access.is_async_proxy() && entry.writes() &&
               !seen_by_proxy(access.who, entry, &ClockValues::async_global)) {
      return add(kProxyFence, entry.statement,
                 [&] { return missing_proxy_fence(access, grid->place(at)); });
    } else if (is_beyond_scope(access, entry)) {
      const Severity severity = severity_beyond_scope(access.kind, access.is_async_proxy());
      return add(
          kRace, entry.statement,
          [&] { return beyond_scope(kRace, access.kind, severity, grid->place(at)); }, severity);
    }
    return Verdict::kInOrder;
  }
  if (is_tolerated_race(access, entry, granule, bytes)) return Verdict::kTolerated;
  const bool is_one_instruction = access.record == nullptr && entry.cluster == cluster.index &&
                                  entry.actor == access.warp && entry.statement == statement &&
                                  entry.epoch == warps[access.warp].epoch &&
                                  access.kind == AccessKind::kWrite;
  if (is_one_instruction)
    return add(  // names no other statement
        kRace, kNobody, [&] { return same_instruction(grid->place(at)); }, Severity::kWarning);
  if (access.at != nullptr && access.at->element_bytes == entry.element_bytes &&
      is_race_of_a_guess(statement, access.kind, entry.statement, entry.kind))
    return add(
        kRace, entry.statement,
        [&] { return race_of_a_guess(kRace, access.kind, grid->place(at)); }, Severity::kWarning);
  if (is_read_over(access, entry))
    return add(
        kRace, entry.statement, [&] { return read_is_over(grid->place(at)); }, Severity::kWarning);
  return add(kRace, entry.statement, [&] {
    std::string narrow;
    if (narrow_read != kNobody)
      narrow = fmt::format(
          "a wider scope: '{}' at {} meets a release, but one of their scopes "
          "does not reach",
          text_of(narrow_read), to_string(cluster.machine.place_of(narrow_read)));
    return race(access, entry, scope_to(access.x.cta.rank, entry.cluster, rank_of(entry.actor)),
                grid->place(at), narrow);
  });
}

}  // namespace ptxsim
