// mbarrier.inval ends an mbarrier: all its uses have to be over before (PTX ISA 9.0,
// "mbarrier.inval": any other operation on the object after that is undefined), and its memory is
// written.
#include <fmt/format.h>

#include <algorithm>

#include "check/state.hpp"

namespace ptxsim {
namespace {

constexpr int kRule = 16;

}  // namespace

void Sanitizer::State::note_use(BarrierObject& object, const ThreadKnowledge& who,
                                uint32_t statement, bool by_operation) {
  if (by_operation) {
    const auto index = static_cast<uint32_t>(records.size() - 1);
    std::erase_if(object.operations,
                  [&](uint32_t earlier) { return records[earlier].queue == records[index].queue; });
    object.operations.push_back(index);
    return;
  }
  const auto warp = static_cast<uint32_t>(who.warp), lane = static_cast<uint32_t>(who.lane);
  auto use = std::ranges::find(object.uses, warp, &BarrierUse::warp);
  if (use == object.uses.end()) use = object.uses.insert(use, BarrierUse{.warp = warp});
  use->epochs[lane] = warps[warp].epoch;
  use->statements[lane] = statement;
}

void Sanitizer::State::check_invalidation(const Execution& x, int lane, Cta& owner, uint32_t slot) {
  const BarrierObject& object = barriers[slot];
  const ThreadKnowledge who = knowledge_of(x, lane);
  const auto add = [&](uint32_t statement, const std::string& other, Severity severity,
                       const char* what, const char* missing) {
    if (seen_before(kRule, severity, x.insn->statement, statement)) return;
    report(x, lane, statement, other,
           {kRule, severity,
            fmt::format("ends the mbarrier in {} while {}", place_in(owner, object.offset), what),
            missing, "let all uses of the mbarrier end, then a barrier, then mbarrier.inval"});
  };
  for (const BarrierUse& use : object.uses)
    for (uint32_t i = 0; i < kWarpSize; ++i)
      if (use.epochs[i] != 0 && !ordered(who, use.warp, 1u << i, use.epochs[i]))
        add(use.statements[i], describe(use.statements[i], use.warp, static_cast<int>(i)),
            // As where memory is overwritten: the uses are over behind something .relaxed, and
            // those of a warp that one lane answers for, after a match.sync (libcu++'s pipelines,
            // whose last thread ends their barriers).
            use.warp == warp_of(x) || executed(*who.clock, use.warp, 1u << i, use.epochs[i]) ||
                    reached(who.clock->order, use.warp, use.epochs[i])
                ? Severity::kWarning
                : Severity::kError,
            "another thread may still use it",
            "a barrier between the last use by each thread and mbarrier.inval");
  // By the phases of this barrier, whosever memory they are about: a copy of a pair of CTAs writes
  // that of its own CTA and arrives at its peer's barrier.
  const auto has_arrived = [&](const Record& record) {
    const auto is_here = [&](const Publication& told) { return told.slot == slot; };
    const auto is_known = [&](const Publication& told) {
      return !is_here(told) || clock_value(who.clock->order, slot) >= told.phase;
    };
    return std::ranges::any_of(record.publications, is_here) &&
           std::ranges::all_of(record.publications, is_known);
  };
  for (const uint32_t index : object.operations) {
    const Record& record = records[index];
    if (has_arrived(record) || complete(who.clock->order, record, static_cast<int>(object.rank)))
      continue;
    // Triton's kernels for SM100 commit to a barrier whose last phase no thread waits for.
    const auto commitment = std::ranges::find(object.commitments, index, &Commitment::record);
    const bool is_open = commitment == object.commitments.end() ||
                         !only_arrival_is_open(*commitment, who.clock->order);
    add(record.statement, describe(record), is_open ? Severity::kError : Severity::kWarning,
        "an operation may still arrive at it", "a wait for the phase that the operation completes");
  }
  access_shared({.x = x,
                 .lane = lane,
                 .owner = owner,
                 .kind = AccessKind::kWrite,
                 .who = who,
                 .warp = warp_of(x),
                 .begin = object.offset},
                kMbarrierBytes);
}

}  // namespace ptxsim
