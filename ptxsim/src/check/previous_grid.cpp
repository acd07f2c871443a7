// Programmatic dependent launch: a grid that starts before the previous one has ended must not
// touch what that one writes, nor write what it reads, before griddepcontrol.wait (PTX ISA 9.0,
// "Parallel Synchronization and Communication Instructions: griddepcontrol"). The wait makes the
// memory of the previous grid visible to the whole grid: a thread needs it before its access, or
// another one's wait handed on by a barrier. What the previous grid touches is what a case names,
// or what it did when it was interpreted.
#include <fmt/format.h>

#include "check/state.hpp"

namespace ptxsim {
namespace {

constexpr int kRule = 21;

}  // namespace

void Sanitizer::waited_for_previous_grid(const Execution& x, uint32_t lanes) {
  State& s = *state_;
  s.grid->waits = true;
  s.change(s.warps[s.warp_of(x)].groups, lanes, [](LaneGroup& group) {
    if (!group.clock->after_previous_grid) writable(group.clock).after_previous_grid = true;
  });
}

// The first thread of a CTA that does so is enough, and the next grid starts after the last CTA: it
// comes after whatever any of them has waited for.
void Sanitizer::let_next_grid_start(const Execution& x, uint32_t lanes) {
  State& s = *state_;
  bool& has_let = s.ctas[x.cta.rank].lets_next_grid_start;
  if (has_let) return;
  has_let = true;
  s.grid->lets_next_start = true;
  for (const LaneGroup& group : s.warps[s.warp_of(x)].groups)
    if ((group.lanes & lanes) != 0) s.grid->waits_before_next |= group.clock->after_previous_grid;
}

void Sanitizer::State::check_earlier_grid(const GlobalAccess& access, const EarlierGrid& earlier,
                                          uint64_t at, uint64_t bytes) {
  const GridTrail& trail = *earlier.trail;
  const auto conflict = [&](const GridTrail::Ranges& ranges) {
    const GridTrail::Range* const range = find_overlap(ranges, at, at + bytes);
    const bool is_race = range != nullptr && !(range->is_strong && access.scope() >= Scope::kGpu);
    return is_race ? range : nullptr;
  };
  const GridTrail::Range* range = conflict(trail.writes);
  const bool writes = range != nullptr;
  if (!writes && access.writes()) range = conflict(trail.reads);
  if (range == nullptr) return;
  const uint32_t statement = access.x.insn->statement;
  if (seen_before(kRule, Severity::kError, statement, kNobody)) return;
  const std::string what =
      fmt::format("{} {}, which {} '{}' may still {}", access.writes() ? "writes" : "reads",
                  grid->place(std::max(at, range->begin)),
                  earlier.is_waited_for ? "the previous grid" : "an earlier grid", trail.kernel,
                  writes ? "write" : "read");
  report(access.x, access.lane, kNobody,
         fmt::format("{}, of '{}'", trail.accesses[range->access], trail.kernel),
         earlier.is_waited_for
             ? Finding{kRule, Severity::kError, what + ", before griddepcontrol.wait",
                       "griddepcontrol.wait between the start of the kernel and this access",
                       "execute griddepcontrol.wait in this thread first, or in another one before "
                       "a barrier"}
             : Finding{kRule, Severity::kError,
                       what + ": griddepcontrol.wait waits for the grid before, and that one has "
                              "not waited for it",
                       fmt::format("griddepcontrol.wait in the grid that was launched after '{}'",
                                   trail.kernel),
                       "execute griddepcontrol.wait in each grid of the chain"});
}

void Sanitizer::State::check_previous_grid(const GlobalAccess& access, const GlobalRegion& region,
                                           uint64_t at, uint64_t bytes) {
  const bool has_waited = access.who.clock->after_previous_grid;
  for (const EarlierGrid& earlier : grid->earlier_grids())
    if (!has_waited || !earlier.is_waited_for) check_earlier_grid(access, earlier, at, bytes);
  const bool conflicts = region.previous_writes || (region.previous_reads && access.writes());
  if (!conflicts || has_waited) return;
  const uint32_t statement = access.x.insn->statement;
  if (seen_before(kRule, Severity::kError, statement, kNobody)) return;
  report(access.x, access.lane, kNobody, "",
         {kRule, Severity::kError,
          fmt::format("{} {}, which the previous grid may still {}, before griddepcontrol.wait",
                      access.writes() ? "writes" : "reads", grid->place(at),
                      region.previous_writes ? "write" : "read"),
          "griddepcontrol.wait between the start of the kernel and this access",
          "execute griddepcontrol.wait in this thread first, or in another one before a barrier"});
}

}  // namespace ptxsim
