// The roots bar and barrier: named barriers of a CTA (bar_sync.cpp), the cluster barrier
// (barrier_cluster.cpp), bar.warp.sync; and griddepcontrol (PTX ISA 9.0, "Parallel Synchronization
// and Communication Instructions: bar.warp.sync", "griddepcontrol"). setmaxnreg: setmaxnreg.cpp.
#include "insn/sync/bar.hpp"

#include <fmt/format.h>

#include <array>

#include "insn/registry.hpp"
#include "insn/traits.hpp"
#include "machine/execution.hpp"

namespace ptxsim {
namespace {

Outcome warp_barrier(Execution& x, const Insn&) {
  x.tell([&](Observer& o) { o.lanes_synchronized(x, x.mask); });
  return Outcome::kNext;
}

void decode_bar(Decode& d) {
  if (!d.modifiers().take("warp")) return decode_named_barrier(d, true);
  if (!d.modifiers().take("sync")) d.fail("bar.warp has the form .sync only");
  d.expect_operands(1, 1);
  d.require_members(d.source(0, Type::kU32));
  d.insn().execute = warp_barrier;
}

void decode_barrier(Decode& d) {
  if (d.modifiers().take("cluster")) return decode_cluster_barrier(d);
  decode_named_barrier(d, d.modifiers().take("aligned"));
}

// One grid runs at a time: what ran before is over, and what comes next starts later. Observers
// judge what would overlap.
Outcome wait_for_previous_grid(Execution& x, const Insn&) {
  x.tell([&](Observer& o) { o.waited_for_previous_grid(x, x.mask); });
  return Outcome::kNext;
}

Outcome let_next_grid_start(Execution& x, const Insn&) {
  x.tell([&](Observer& o) { o.let_next_grid_start(x, x.mask); });
  return Outcome::kNext;
}

void decode_griddepcontrol(Decode& d) {
  const int which = d.modifiers().take_one_of({"wait", "launch_dependents"});
  if (which < 0) d.fail("griddepcontrol needs .wait or .launch_dependents");
  d.expect_operands(0, 0);
  d.insn().execute = which == 0 ? wait_for_previous_grid : let_next_grid_start;
}

constexpr Traits kNamed = traits::kBarrier.with(Mutants::kCtaBarrier);
constexpr Form kBarForms[] = {{{"warp"}, traits::kLooseBarrier.with(Mutants::kWarpBarrier)}};
constexpr Form kBarrierForms[] = {{{"cluster"}, traits::kBarrier.with(Mutants::kClusterBarrier)}};
constexpr Form kGridForms[] = {{{"wait"}, traits::kLooseBarrier.with(Mutants::kPreviousGrid)}};
constexpr Decoder kDecoders[] = {
    {"bar", decode_bar, kNamed, kBarForms},
    {"barrier", decode_barrier, kNamed, kBarrierForms},
    {"griddepcontrol", decode_griddepcontrol, traits::kLooseBarrier, kGridForms},
    {"setmaxnreg", decode_setmaxnreg, traits::kControl}};

}  // namespace

std::span<const Decoder> decoders_barrier() { return kDecoders; }

}  // namespace ptxsim
