#include "machine/scheduler/near_miss.hpp"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "machine/execution.hpp"
#include "machine/findings.hpp"

namespace ptxsim {
namespace {

bool waits_for(const Warp& warp, int lane, uint32_t offset, uint64_t phase) {
  const WaitInfo& wait = warp.wait[lane];
  return warp.ticket[lane] == kTicketWaiting && wait.kind == WaitInfo::Kind::kMbarrier &&
         wait.where == offset && wait.phase == phase;
}

void advise(const Execution& x, uint32_t offset, const Mbarrier& barrier) {
  const Program& program = x.program();
  const uint32_t completing = x.cluster.async.statement;
  add_finding(x, x.first_lane(),
              {10, Severity::kAdvisory,
               fmt::format("'{}' nearly missed phase {} of mbarrier 0x{:x}: phase {} completed "
                           "before the warp went on",
                           program.entry->statements[x.insn->statement].text, barrier.phase - 1,
                           offset, barrier.phase),
               "an arrival in the next phase that comes after this wait",
               "make the arrivals of the next phase depend on this thread having seen the last one",
               static_cast<int>(completing),
               fmt::format("'{}' at {}", program.entry->statements[completing].text,
                           to_string(x.machine.place_of(completing)))});
}

// Lanes of one warp that wait at one statement.
void release(Cta& cta, Warp& warp, uint32_t lanes, uint32_t offset, const Mbarrier& barrier) {
  Machine& machine = cta.machine;
  Execution x{machine,    cta.cluster, cta, warp, lanes, 0, machine.program().constants.data(),
              warp.file()};
  x.insn = &machine.program().insns[warp.pc[x.first_lane()]];
  const BarrierOrder order = warp.wait[x.first_lane()].order;
  x.tell([&](Observer& o) { o.mbarrier_passed(x, lanes, barrier, order); });
  x.for_lanes([&](int lane) { warp.ticket[lane] = kTicketReleased; });
  if (machine.options().sanitize) advise(x, offset, barrier);
}

}  // namespace

void release_waiters_of_last_phase(Cta& cta, uint32_t offset, const Mbarrier& barrier) {
  if (cta.machine.options().schedule != Schedule::kEager || barrier.phase == 0) return;
  for (const auto& warp : cta.warps) {
    uint32_t waiting = 0;
    for (uint32_t left = warp->blocked & warp->live; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (waits_for(*warp, lane, offset, barrier.phase - 1)) waiting |= 1u << lane;
    }
    while (waiting != 0) {
      uint32_t together = 0;
      const uint32_t pc = warp->pc[std::countr_zero(waiting)];
      for (uint32_t left = waiting; left != 0; left &= left - 1)
        if (warp->pc[std::countr_zero(left)] == pc) together |= 1u << std::countr_zero(left);
      release(cta, *warp, together, offset, barrier);
      waiting &= ~together;
    }
  }
}

}  // namespace ptxsim
