// barrier.cluster (PTX ISA 9.0, "Parallel Synchronization and Communication Instructions:
// barrier.cluster"). It completes when every thread of the cluster that has not exited has arrived;
// each thread arrives and waits in turn.
#include <fmt/format.h>

#include <bit>
#include <vector>

#include "insn/sync/bar.hpp"
#include "machine/execution.hpp"

namespace ptxsim {
namespace {

// By warp of the CTA. A lane that owes a wait but is not among those that arrived in this phase
// arrived in the last one, which has completed.
struct ClusterArrivals final : FamilyState {
  static constexpr const char* kFamilyKey = "cluster barrier arrivals";
  std::vector<uint32_t> arrived;  // in the phase under way
  std::vector<uint32_t> owes_wait;
};

ClusterArrivals& arrivals_of(Cta& cta) {
  auto& state = cta.state<ClusterArrivals>();
  state.arrived.resize(cta.warps.size());
  state.owes_wait.resize(cta.warps.size());
  return state;
}

void complete_if_all_arrived(Cluster& cluster) {
  if (cluster.barrier.arrived == 0) return;
  for (const auto& cta : cluster.ctas) {
    const ClusterArrivals& state = arrivals_of(*cta);
    for (size_t w = 0; w < cta->warps.size(); ++w)
      if ((cta->warps[w]->live & ~state.arrived[w]) != 0) return;
  }
  for (const auto& cta : cluster.ctas)
    for (uint32_t& lanes : arrivals_of(*cta).arrived) lanes = 0;
  ClusterBarrier& barrier = cluster.barrier;
  barrier.arrived = 0;
  ++barrier.generation;
  cluster.observers.tell([&](Observer& o) { o.cluster_barrier_completed(cluster); });
  cluster.changed();
}

// variant: the BarrierOrder.
Outcome arrive(Execution& x, const Insn& insn) {
  complete_if_all_arrived(x.cluster);  // a thread may have exited
  ClusterArrivals& state = arrivals_of(x.cta);
  const uint32_t again = state.owes_wait[x.warp.index] & x.mask;
  if (again != 0)
    x.fault(
        fmt::format("lanes {:08x} arrive at the cluster barrier again without barrier.cluster.wait "
                    "in between (R13)",
                    again),
        std::countr_zero(again));
  state.arrived[x.warp.index] |= x.mask;
  state.owes_wait[x.warp.index] |= x.mask;
  x.cluster.barrier.arrived += static_cast<uint32_t>(std::popcount(x.mask));
  x.tell([&](Observer& o) {
    o.cluster_barrier_arrived(x, x.mask, static_cast<BarrierOrder>(insn.variant));
  });
  complete_if_all_arrived(x.cluster);
  return Outcome::kNext;
}

Outcome wait(Execution& x, const Insn& insn) {
  complete_if_all_arrived(x.cluster);
  ClusterArrivals& state = arrivals_of(x.cta);
  uint32_t& owes = state.owes_wait[x.warp.index];
  const uint32_t without = x.mask & ~owes;
  if (without != 0)
    x.fault(fmt::format("lanes {:08x} wait at the cluster barrier without having arrived (R13)",
                        without),
            std::countr_zero(without));
  const uint32_t done = x.mask & ~state.arrived[x.warp.index];
  if (done == 0)
    return x.block({WaitInfo::Kind::kClusterBarrier, x.cta.rank, 0, 0, "more threads must arrive"});
  owes &= ~done;
  x.tell([&](Observer& o) { o.cluster_barrier_passed(x, done); });
  if (done == x.mask) return Outcome::kNext;
  // Lanes that have come here in a later phase stay.
  x.for_lanes([&](int lane) { x.warp.pc[lane] = insn.statement + (done >> lane & 1); });
  x.jump_target = Execution::kPerLane;
  return Outcome::kJump;
}

}  // namespace

void decode_cluster_barrier(Decode& d) {
  auto& m = d.modifiers();
  const int action = m.take_one_of({"arrive", "wait"});
  if (action < 0) d.fail("barrier.cluster needs .arrive or .wait");
  d.expect_operands(0, 0);
  if (m.take("aligned")) d.require_aligned();
  if (action == 1) {
    m.take("acquire");
    d.insn().execute = wait;
    return;
  }
  const int sem = m.take_one_of({"release", "relaxed"});
  d.insn().variant =
      static_cast<uint8_t>(sem == 1 ? BarrierOrder::kRelaxed : BarrierOrder::kAcquireRelease);
  d.insn().execute = arrive;
}

}  // namespace ptxsim
