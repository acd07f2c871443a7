// Writes reports.
#include <fmt/format.h>

#include "check/state.hpp"
#include "machine/machine.hpp"

namespace ptxsim {

bool Sanitizer::State::seen_before(int rule, Severity severity, uint32_t statement,
                                   uint32_t other_statement) {
  return reports.count_up(rule, strict ? Severity::kError : severity, static_cast<int>(statement),
                          static_cast<int>(other_statement));
}

std::string Sanitizer::State::text_of(uint32_t statement) const {
  return cluster.machine.program().entry->statements[statement].text;
}

std::string Sanitizer::State::actor(uint32_t warp, int lane) const {
  return cluster.machine.actor_of(*cluster.ctas[rank_of(warp)]->warps[warp % warps_per_cta], lane);
}

std::string Sanitizer::State::describe(uint32_t statement, uint32_t warp, int lane) const {
  return fmt::format("'{}' at {}, by {}", text_of(statement),
                     to_string(cluster.machine.place_of(statement)), actor(warp, lane));
}

std::string Sanitizer::State::describe(const ShadowEntry& entry) const {
  if (entry.is_async) return describe(records[entry.actor]);
  return describe(entry.statement, entry.actor, std::countr_zero(entry.lanes));
}

void Sanitizer::State::report(const Execution& x, int lane, uint32_t other_statement,
                              const std::string& other, Finding finding) {
  reports.add(written(x, lane, other_statement, other, std::move(finding)));
}

// A warning now, and an error where somebody uses what was loaded. `unused`: as unused_load() and
// unused_copy() give it.
void Sanitizer::State::report_or_defer(const Execution& x, int lane, uint32_t other_statement,
                                       const std::string& other, Finding finding,
                                       std::vector<Deferred>* unused, uint32_t lanes) {
  if (unused != nullptr) {
    finding.severity = Severity::kError;
    defer(*unused, lanes, written(x, lane, other_statement, other, finding));
    finding.severity = Severity::kWarning;
    finding.message += "; nothing uses what it loads";
  }
  report(x, lane, other_statement, other, std::move(finding));
}

Report Sanitizer::State::written(const Execution& x, int lane, uint32_t other_statement,
                                 const std::string& other, Finding finding) const {
  Report report;
  report.rule = finding.rule;
  report.severity = strict ? Severity::kError : finding.severity;
  report.message = fmt::format("'{}' {}", text_of(x.insn->statement), finding.message);
  report.place = cluster.machine.place_of(x.insn->statement);
  report.actor = actor(warp_of(x), lane);
  report.other = other;
  report.missing = std::move(finding.missing);
  report.fix = std::move(finding.fix);
  report.statement = static_cast<int>(x.insn->statement);
  report.other_statement = static_cast<int>(other_statement);
  return report;
}

// R10
void Sanitizer::State::report_uninitialized(const Execution& x, int lane,
                                            const BarrierObject& object, bool is_ordered,
                                            Severity severity) {
  if (seen_before(10, severity, x.insn->statement, object.statement)) return;
  const std::string memory = place_in(*cluster.ctas[object.rank], object.offset);
  report(x, lane, object.statement, describe(object.statement, object.warp, object.lane),
         {10, severity,
          fmt::format(
              "uses the mbarrier in {}, whose initialisation is not {}", memory,
              is_ordered ? "made visible to other CTAs and to the async proxy" : "ordered before"),
          is_ordered
              ? "fence.mbarrier_init.release.cluster by the initialising thread, before the barrier"
              : "a barrier between mbarrier.init and this use",
          "after mbarrier.init: fence.mbarrier_init.release.cluster, then bar.sync "
          "(barrier.cluster when other CTAs "
          "use it)"});
}

}  // namespace ptxsim
