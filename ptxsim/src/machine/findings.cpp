#include "machine/findings.hpp"

#include <utility>

#include "machine/machine.hpp"

namespace ptxsim {

void add_finding(const Execution& x, int lane, MachineFinding finding) {
  if (!x.machine.options().sanitize) return;
  Report report;
  report.rule = finding.rule;
  report.severity = finding.severity;
  report.message = std::move(finding.message);
  report.place = x.machine.place_of(x.insn->statement);
  report.actor = x.machine.actor_of(x.warp, lane);
  report.other = std::move(finding.other);
  report.missing = std::move(finding.missing);
  report.fix = std::move(finding.fix);
  report.statement = static_cast<int>(x.insn->statement);
  report.other_statement = finding.other_statement;
  x.machine.reports().add(std::move(report));
}

}  // namespace ptxsim
