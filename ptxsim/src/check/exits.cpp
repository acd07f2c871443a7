// The end of a CTA: nothing may use its memory any more (R8, R9, R11).
#include <fmt/format.h>

#include <set>

#include "check/state.hpp"
#include "machine/machine.hpp"

namespace ptxsim {
namespace {

Finding use_after_exit(int rule, const std::string& what) {
  const bool is_remote = rule == 11;
  return {
      rule, Severity::kError, fmt::format("{} after its CTA has ended", what),
      is_remote
          ? "a barrier by which the CTA knows that the access is over, before its last thread ends"
          : "a wait for the operation's completion in some thread of the CTA",
      is_remote
          ? "barrier.cluster.arrive and wait (or a wait on the mbarrier concerned) before the end"
          : "wait for it (mbarrier phase, wait_group, tcgen05.wait) before the last thread ends"};
}

}  // namespace

bool Sanitizer::State::executed(const ClockValues& clock, uint32_t warp, uint32_t lanes,
                                uint32_t epoch) const {
  const std::vector<uint32_t>& known = execution_of(clock);
  for (; lanes != 0; lanes &= lanes - 1)
    if (clock_value(known, index_of(warp, std::countr_zero(lanes))) < epoch) return false;
  return true;
}

void Sanitizer::State::report_at_exit(uint32_t statement, const std::string& who, Finding finding) {
  if (seen_before(finding.rule, finding.severity, statement, statement)) return;
  Report report;
  report.rule = finding.rule;
  report.severity = strict ? Severity::kError : finding.severity;
  report.message = fmt::format("'{}' {}", text_of(statement), finding.message);
  report.place = cluster.machine.place_of(statement);
  report.actor = who;
  report.missing = std::move(finding.missing);
  report.fix = std::move(finding.fix);
  report.statement = report.other_statement = static_cast<int>(statement);
  reports.add(std::move(report));
}

void Sanitizer::State::check_exit_of_shared(const Cta& cta, const ClockValues& known) {
  const std::vector<Granule>& shadow = ctas[cta.rank].shared;
  std::set<uint32_t> checked;  // operations: one of them covers many granules
  for (size_t i = 0; i < shadow.size(); ++i) {
    const uint32_t at = static_cast<uint32_t>(i * kGranule);
    for (const ShadowEntry& entry : shadow[i].entries) {
      if (!entry.is_async) {
        if (rank_of(entry.actor) != cta.rank &&
            !executed(known, entry.actor, entry.lanes, entry.epoch))
          report_at_exit(entry.statement, actor(entry.actor, std::countr_zero(entry.lanes)),
                         use_after_exit(11, fmt::format("may access {}", place_in(cta, at))));
        continue;
      }
      if (!checked.insert(entry.actor).second) continue;
      const Record& record = records[entry.actor];
      const int rank = entry.kind == AccessKind::kRead ? -1 : static_cast<int>(cta.rank);
      if (complete(execution_of(known), record, rank)) continue;
      Finding finding = use_after_exit(
          rank_of(record.warp) == cta.rank ? 8 : 11,
          fmt::format("may still {} {}", entry.kind == AccessKind::kRead ? "read" : "write",
                      place_in(cta, at)));
      // CUTLASS's SM100 epilogue without C ends with its last stores unread, on real hardware.
      if (record.kind == AsyncKind::kTmaStore) finding.severity = Severity::kWarning;
      report_at_exit(record.statement, actor(record.warp, record.lane), std::move(finding));
    }
  }
}

void Sanitizer::State::check_exit_of_tensor(const Cta& cta, const ClockValues& known) {
  std::set<uint32_t> checked;
  auto check = [&](uint32_t index) {
    if (index == kNobody || !checked.insert(index).second) return;
    const Record& record = records[index];
    if (complete(execution_of(known), record, -1)) return;
    Finding finding = use_after_exit(9, "may still use tensor memory");
    if (all_read({&known}, execution_of(known), record)) finding.severity = Severity::kWarning;
    report_at_exit(record.statement, actor(record.warp, record.lane), std::move(finding));
  };
  for (const TensorCell& cell : ctas[cta.rank].tensor) {
    check(cell.writer);
    for (uint32_t reader : cell.readers) check(reader);
  }
}

// Operations of a queue complete in order: the last one before the commitment counts.
bool Sanitizer::State::only_arrival_is_open(const Commitment& commitment,
                                            const std::vector<uint32_t>& known) const {
  for (uint32_t i = commitment.record; i-- > 0;) {
    const Record& earlier = records[i];
    if (earlier.queue == commitment.queue && earlier.work != TensorWork::kCommit)
      return clock_value(known, earlier.queue) >= earlier.sequence;
  }
  return true;
}

void Sanitizer::State::check_exit_of_barriers(const Cta& cta, const ClockValues& known) {
  for (const auto& [slot, barrier] : barriers) {
    if (barrier.rank != cta.rank) continue;
    const std::string memory = place_in(cta, barrier.offset);
    for (const RemoteArrival& arrival : barrier.remote)
      if (!executed(known, arrival.warp, 1u << arrival.lane, arrival.epoch))
        report_at_exit(arrival.statement, actor(arrival.warp, arrival.lane),
                       use_after_exit(11, fmt::format("may arrive at the mbarrier in {}", memory)));
    for (const Commitment& commitment : barrier.commitments) {
      const std::vector<uint32_t>& over = execution_of(known);
      if (clock_value(over, slot) >= commitment.phase ||
          clock_value(over, commitment.queue) >= commitment.sequence)
        continue;
      const Record& record = records[commitment.record];
      const bool is_own = rank_of(record.warp) == cta.rank;
      Finding finding = use_after_exit(
          is_own ? 9 : 11, fmt::format("may be committed to the mbarrier in {}", memory));
      // Triton's attention for SM100 commits its last products to a barrier that no thread waits
      // for.
      if (is_own && only_arrival_is_open(commitment, over)) finding.severity = Severity::kWarning;
      report_at_exit(record.statement, actor(record.warp, record.lane), std::move(finding));
    }
  }
}

void Sanitizer::cta_exited(Cta& cta) {
  State& s = *state_;
  const SharedClock known = s.ctas[cta.rank].at_exit;
  if (!known) return;
  CtaShadow& shadow = s.ctas[cta.rank];
  s.grid->waits_before_next |= !shadow.lets_next_grid_start && known->after_previous_grid;
  s.check_exit_of_shared(cta, *known);
  s.check_exit_of_tensor(cta, *known);
  s.check_exit_of_barriers(cta, *known);
  shadow.shared = {};
  shadow.tensor = {};
}

}  // namespace ptxsim
