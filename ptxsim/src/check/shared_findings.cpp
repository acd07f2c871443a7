// The rules of shared memory: R1 to R4, R8, R11 and R16.
#include <fmt/format.h>

#include "check/state.hpp"
#include "machine/machine.hpp"

namespace ptxsim {

const char* verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::kRead:
      return "reads";
    case AccessKind::kWrite:
      return "writes";
    default:
      return "updates";
  }
}

const char* participle(AccessKind kind) {
  switch (kind) {
    case AccessKind::kRead:
      return "read";
    case AccessKind::kWrite:
      return "written";
    default:
      return "updated";
  }
}

namespace {

// How a thread comes to know that the operation is complete.
const char* completion_of(AsyncKind kind) {
  switch (kind) {
    case AsyncKind::kTmaLoad:
    case AsyncKind::kClc:
      return "a wait on the phase of the mbarrier that the operation's complete_tx completes";
    case AsyncKind::kTmaStore:
      return "cp.async.bulk.commit_group and wait_group(.read) by the issuing thread, then a "
             "barrier";
    case AsyncKind::kCpAsync:
      return "cp.async.wait_group (or cp.async.mbarrier.arrive and a wait on it), then a barrier";
    case AsyncKind::kTcgen05:
      return "tcgen05.commit to an mbarrier after the operation, and a wait on its phase";
    case AsyncKind::kWgmma:
      return "wgmma.commit_group and wgmma.wait_group by the warpgroup, then a barrier";
    default:
      return "tcgen05.wait::ld or wait::st, then a barrier";
  }
}

Finding missing_proxy_fence(const Access& access, const std::string& at) {
  return {
      1, Severity::kError,
      fmt::format(
          "{} {} through the async proxy; ordinary stores wrote it, with no proxy fence between",
          verb(access.kind), at),
      "fence.proxy.async between the write and the synchronisation that hands it over",
      "execute fence.proxy.async.shared::cta in each writing thread, before the barrier or the "
      "arrive"};
}

Finding read_of_unfinished(const Record& earlier, const std::string& at) {
  return {2, Severity::kError,
          fmt::format("reads {} while the operation that writes it may not be complete", at),
          completion_of(earlier.kind),
          "wait for the operation before the read, on the phase that it completes"};
}

Finding overwrite(const Record& earlier, AccessKind earlier_kind, const std::string& at) {
  const bool is_store = earlier.kind == AsyncKind::kTmaStore;
  return {is_store ? 8 : 3, Severity::kError,
          fmt::format("overwrites {} while an operation may still {} it", at,
                      earlier_kind == AccessKind::kRead ? "read" : "write"),
          completion_of(earlier.kind),
          is_store ? "cp.async.bulk.wait_group.read before the memory is written again"
                   : "wait, before the write, on the barrier that says that the memory is free"};
}

Finding unfenced_overwrite(const std::string& at) {
  return {4, Severity::kWarning,
          fmt::format("overwrites {} through the async proxy; ordinary loads read it, ordered "
                      "only by barriers",
                      at),
          "fence.proxy.async between the reads and the synchronisation that frees the memory",
          "execute fence.proxy.async.shared::cta after the reads, before the barrier or the "
          "arrive"};
}

Finding race(const Access& access, const ShadowEntry& entry, const std::string& at, int rule,
             Severity severity) {
  return {rule, severity,
          fmt::format("{} {}, and nothing orders this after its being {} by another thread",
                      verb(access.kind), at, participle(entry.kind)),
          "a barrier between the two: bar.sync, barrier.cluster, bar.warp.sync, or an mbarrier "
          "arrive and wait",
          "arrive on a barrier after the earlier access and wait for it before the later one"};
}

Finding same_values(int rule, const std::string& at) {
  return {rule, Severity::kWarning,
          fmt::format("writes {} in no order with another write of the same values", at),
          "a barrier between the two, or one writer", "let one thread write it, then a barrier"};
}

}  // namespace

std::string place_in(const Cta& owner, uint32_t offset) {
  const bool is_alone = volume(owner.machine.launch().cluster) == 1;
  return is_alone ? fmt::format("shared memory 0x{:x}", offset)
                  : fmt::format("shared memory 0x{:x} of CTA rank {}", offset, owner.rank);
}

void Sanitizer::State::report_after_async(const Access& access, const ShadowEntry& entry,
                                          uint32_t at, bool is_agreed) {
  const Record& earlier = records[entry.actor];
  const uint32_t statement = access.x.insn->statement;
  // Lanes of one cp.async that copy the same values to the same place.
  if (is_agreed && entry.statement == statement && earlier.warp == access.warp) return;
  const int rank = entry.kind == AccessKind::kRead ? -1 : static_cast<int>(access.owner.rank);
  const bool is_known = complete(access.who.clock->order, earlier, rank);
  const bool reads = access.kind == AccessKind::kRead;
  const int rule = is_known ? 1 : reads ? 2 : earlier.kind == AsyncKind::kTmaStore ? 8 : 3;
  // Triton's kernels for sm_90 and sm_100 multiply what cp.async has copied without a fence, and
  // run.
  const bool is_product =
      is_known && reads && access.record != nullptr &&
      (access.record->kind == AsyncKind::kWgmma || access.record->kind == AsyncKind::kTcgen05);
  std::vector<Deferred>* const unused =
      is_agreed || is_product || access.record != nullptr || !reads
          ? nullptr
          : unused_load(open_followed, 1u << access.lane);
  const Severity severity =
      is_agreed || is_product || unused != nullptr ? Severity::kWarning : Severity::kError;
  if (unused == nullptr && seen_before(rule, severity, statement, earlier.statement)) return;
  const std::string memory = place_in(access.owner, at);
  Finding finding = is_agreed  ? same_values(rule, memory)
                    : is_known ? missing_proxy_fence(access, memory)
                    : reads    ? read_of_unfinished(earlier, memory)
                               : overwrite(earlier, entry.kind, memory);
  finding.severity = severity;
  report_or_defer(access.x, access.lane, earlier.statement, describe(earlier), std::move(finding),
                  unused, 1u << access.lane);
}

void Sanitizer::State::report_after_generic(const Access& access, const ShadowEntry& entry,
                                            uint32_t at, bool is_agreed) {
  const uint32_t statement = access.x.insn->statement;
  const bool is_race = !ordered(access.who, entry.actor, entry.lanes, entry.epoch);
  // Triton's kernels copy over the memory of an mbarrier that has ended, with a barrier between and
  // no proxy fence, and run.
  if (!is_race && cluster.machine.program().traits[entry.statement].has(Trait::kEndsMbarrier))
    return;
  const bool was_read = entry.kind == AccessKind::kRead;
  const int rule = is_race ? (access.record != nullptr && was_read ? 3 : 16) : (was_read ? 4 : 1);
  const bool is_guessed = is_race && access.record == nullptr &&
                          is_race_of_a_guess(statement, access.kind, entry.statement, entry.kind);
  Severity severity = is_agreed || is_guessed || rule == 4 ? Severity::kWarning
                      : is_race                            ? severity_of_race(access, entry)
                                                           : Severity::kError;
  std::vector<Deferred>* unused = nullptr;
  uint32_t lanes = entry.lanes;
  if (is_race && severity == Severity::kError && access.record == nullptr) {
    if (access.kind == AccessKind::kRead)
      unused = unused_load(open_followed, lanes = 1u << access.lane);
    else if (was_read)
      unused = unused_load(entry.followed, lanes);
  }
  if (unused != nullptr) severity = Severity::kWarning;
  if (unused == nullptr && seen_before(rule, severity, statement, entry.statement)) return;
  const std::string memory = place_in(access.owner, at);
  report_or_defer(access.x, access.lane, entry.statement, describe(entry),
                  is_agreed    ? same_values(rule, memory)
                  : is_guessed ? race_of_a_guess(rule, access.kind, memory)
                  : rule == 1  ? missing_proxy_fence(access, memory)
                  : rule == 4  ? unfenced_overwrite(memory)
                               : race(access, entry, memory, rule, severity),
                  unused, lanes);
}

void Sanitizer::State::report_beyond_scope(const Access& access, const ShadowEntry& entry,
                                           uint32_t at) {
  const bool is_async_proxy = access.record != nullptr && !access.record->is_generic;
  const Severity severity = severity_beyond_scope(access.kind, is_async_proxy);
  const uint32_t other = entry.is_async ? records[entry.actor].statement : entry.statement;
  if (seen_before(16, severity, access.x.insn->statement, other)) return;
  report(access.x, access.lane, other, describe(entry),
         beyond_scope(16, access.kind, severity, place_in(access.owner, at)));
}

// A warning where hardware is known to keep an order that the program has not established.
Severity Sanitizer::State::severity_of_race(const Access& access, const ShadowEntry& entry) {
  const bool reads = access.kind == AccessKind::kRead;
  const bool was_read = entry.kind == AccessKind::kRead;
  const bool is_async = access.record != nullptr;
  if (is_async && !was_read) return Severity::kError;
  // Lanes of a warp that met in shfl.sync or the like between the two.
  const WarpClocks& clocks = warps[access.warp];
  const uint32_t both = entry.lanes | 1u << access.lane;
  if (!is_async && entry.actor == access.warp && entry.epoch <= clocks.met_epoch &&
      (both & ~clocks.met_lanes) == 0)
    return Severity::kWarning;
  // Behind something .relaxed: what the other threads did is over, as R11 has it. It may be
  // overwritten; that it can be read, too, holds within a CTA, whose shared memory takes its
  // accesses one after another, and the lanes of a store to one place at once (CUTLASS's ping-pong
  // kernel for SM120: all lanes store, one executes complete_tx).
  if (reads) {
    const bool is_within_cta =
        access.x.cta.rank == access.owner.rank && rank_of(entry.actor) == access.owner.rank;
    const bool is_one_place = std::popcount(entry.lanes) > std::popcount(entry.bytes);
    const uint32_t first = entry.lanes & -entry.lanes;
    const bool is_over =
        executed(*access.who.clock, entry.actor, is_one_place ? first : entry.lanes, entry.epoch);
    return is_within_cta && is_over ? Severity::kWarning : Severity::kError;
  }
  uint32_t lanes = entry.lanes;
  if (access.who.warp == static_cast<int>(entry.actor)) lanes &= ~(1u << access.who.lane);
  if (executed(*access.who.clock, entry.actor, lanes, entry.epoch)) return Severity::kWarning;
  if (was_read && !is_async &&
      is_over_by_signal(access.who, cluster.index, entry.actor, lanes, entry.epoch,
                        entry.statement))
    return Severity::kWarning;
  // One lane of the reading warp arrived for all of them, with no bar.warp.sync before.
  const bool lane_arrived = access.who.warp != static_cast<int>(entry.actor) &&
                            reached(access.who.clock->order, entry.actor, entry.epoch);
  return is_async && lane_arrived ? Severity::kWarning : Severity::kError;
}

// R11. A CTA of the cluster may be touched once it is known to have started and while it has not
// ended.
void Sanitizer::State::check_remote(const Execution& x, int lane, const Cta& owner,
                                    uint32_t offset) {
  const bool has_started = (knowledge_of(x, lane).clock->started >> owner.rank & 1) != 0;
  if (has_started && !owner.exited) return;
  if (seen_before(11, Severity::kError, x.insn->statement, x.insn->statement)) return;
  report(x, lane, x.insn->statement, "",
         {11, Severity::kError,
          fmt::format("touches {}, a CTA that {}", place_in(owner, offset),
                      has_started ? "has exited" : "may not have started"),
          has_started ? "a cluster barrier, or an mbarrier wait of that CTA, after this access and "
                        "before its end"
                      : "anything that happens in that CTA and is waited for here",
          "barrier.cluster.arrive and wait in all CTAs, after the start or before the end"});
}

}  // namespace ptxsim
