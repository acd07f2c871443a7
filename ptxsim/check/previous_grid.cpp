// Programmatic dependent launch: a grid that starts before the previous one has ended must not
// touch what that one writes, nor write what it reads, before griddepcontrol.wait (PTX ISA 9.0,
// "Parallel Synchronization and Communication Instructions: griddepcontrol"). The wait makes the
// memory of the previous grid visible to the whole grid: a thread needs it before its access, or
// another one's wait handed on by a barrier.
#include <fmt/format.h>

#include "ptxsim/check/state.hpp"

namespace ptxsim {

void Sanitizer::waited_for_previous_grid(const Execution& x, uint32_t lanes) {
  State& s = *state_;
  s.change(s.warps[s.warp_of(x)].groups, lanes, [](LaneGroup& group) {
    if (!group.clock->after_previous_grid) writable(group.clock).after_previous_grid = true;
  });
}

void Sanitizer::State::check_previous_grid(const GlobalAccess& access, const GlobalRegion& region,
                                           uint64_t at) {
  const bool conflicts = region.previous_writes || (region.previous_reads && access.writes());
  if (!conflicts || access.who.clock->after_previous_grid) return;
  const uint32_t statement = access.x.insn->statement;
  if (seen_before(21, Severity::kError, statement, kNobody)) return;
  report(access.x, access.lane, kNobody, "",
         {21, Severity::kError,
          fmt::format("{} {}, which the previous grid may still {}, before griddepcontrol.wait",
                      access.writes() ? "writes" : "reads", grid->place(at),
                      region.previous_writes ? "write" : "read"),
          "griddepcontrol.wait between the start of the kernel and this access",
          "execute griddepcontrol.wait in this thread first, or in another one before a barrier"});
}

}  // namespace ptxsim
