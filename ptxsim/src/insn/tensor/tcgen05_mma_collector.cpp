// The collector buffers of tcgen05.mma (R15). tcgen05.mma keeps A in one buffer, tcgen05.mma.ws
// keeps B in four. A fill that is used with another matrix is an error, one that is not used a
// warning.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "insn/tensor/tcgen05_mma.hpp"

namespace ptxsim {
namespace {

void report(Execution& x, int lane, Severity severity, std::string message) {
  x.machine.reports().add({.rule = 15,
                           .severity = severity,
                           .message = std::move(message),
                           .place = x.machine.place_of(x.insn->statement),
                           .actor = x.machine.actor_of(x.warp, lane),
                           .other = {},
                           .missing = {},
                           .fix = "fill the collector with the matrix that is to be used again",
                           .statement = static_cast<int>(x.insn->statement)});
}

// The matrix that the buffer would hold.
CollectorFill matrix_of(const Execution& x, int lane, const Tcgen05MmaDetail& detail,
                        const MmaOperation& op) {
  const MmaShape& shape = op.shape;
  const bool is_a = detail.collector == 0;
  CollectorFill fill;
  fill.is_tmem = is_a && detail.a_in_tmem;
  fill.source = fill.is_tmem ? detail.a_tmem.bits(x, lane)
                             : x.source<uint64_t>(is_a ? detail.a : detail.b)[lane];
  fill.types = static_cast<uint32_t>(shape.kind) |
               static_cast<uint32_t>(is_a ? shape.a : shape.b) << 8 |
               ((is_a ? shape.a_mn_major : shape.b_mn_major) ? 1u << 16 : 0);
  fill.statement = x.insn->statement;
  return fill;
}

}  // namespace

std::string name_of_collector(uint32_t buffer) {
  return buffer == 0 ? "collector::a" : fmt::format("collector::b{}", buffer - 1);
}

void track_collector(Execution& x, int lane, const Tcgen05MmaDetail& detail,
                     const MmaOperation& op) {
  std::optional<CollectorFill>& fill = x.cta.state<Tcgen05State>().fills[detail.collector];
  const std::string name = name_of_collector(detail.collector);
  const CollectorFill current = matrix_of(x, lane, detail, op);
  if (detail.use == CollectorUse::kUse || detail.use == CollectorUse::kLastUse) {
    if (!fill)
      report(x, lane, Severity::kError,
             fmt::format("{} use without an earlier fill that is still valid", name));
    else if (!same_matrix(*fill, current))
      report(
          x, lane, Severity::kError,
          fmt::format("{} use with matrix {} 0x{:x}; the last fill, in PTX line {}, was of 0x{:x}",
                      name, detail.collector == 0 ? 'A' : 'B', current.source,
                      x.machine.place_of(fill->statement).ptx_line, fill->source));
    if (fill) fill->used = true;
    if (detail.use == CollectorUse::kLastUse) fill.reset();
    return;
  }
  if (fill && !fill->used)
    report(x, lane, Severity::kWarning,
           fmt::format("the {} fill of PTX line {} was never used", name,
                       x.machine.place_of(fill->statement).ptx_line));
  fill.reset();
  if (detail.use == CollectorUse::kFill) fill = current;
}

}  // namespace ptxsim
