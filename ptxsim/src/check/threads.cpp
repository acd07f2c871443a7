// What threads tell each other: releases, acquires, fences.
#include <algorithm>
#include <bit>
#include <utility>

#include "check/state.hpp"
#include "machine/machine.hpp"

namespace ptxsim {

Sanitizer::State::State(Cluster& of, Reports& to, bool is_strict, std::shared_ptr<Grid> shared)
    : cluster(of),
      reports(to),
      strict(is_strict),
      grid(std::move(shared)),
      own_records(std::make_shared<std::vector<Record>>()) {
  grid->records[of.index] = own_records;
  const Launch& launch = of.machine.launch();
  const uint32_t num_ctas = static_cast<uint32_t>(volume(launch.cluster));
  warps_per_cta = static_cast<uint32_t>((volume(launch.block) + kWarpSize - 1) / kWarpSize);
  next_slot = num_ctas * warps_per_cta * kWarpSize;
  warps.resize(size_t{num_ctas} * warps_per_cta);
  pending.resize(warps.size());
  const Program& program = of.machine.program();
  follows_results = has_loads_to_follow(program);
  only_own_threads_share =
      num_ctas == 1 && !has_any(program, Trait::kAsync | Trait::kBulk | Trait::kArrives |
                                             Trait::kGroup | Trait::kTensorMemory);
  has_invalidations = has_any(program, Trait::kEndsMbarrier);
  has_sc_fences = has_any(program, Trait::kScFence);
  has_signals = may_signal(program);
  if (!grid->may_stay_unused) grid->may_stay_unused = loads_that_may_stay_unused(program);
  may_stay_unused = *grid->may_stay_unused;
  followed_results.resize(warps.size());
  has_non_coherent_loads = has_any(program, Trait::kNonCoherent);
  ctas.resize(num_ctas);
  for (uint32_t rank = 0; rank < num_ctas; ++rank) {
    auto start = std::make_shared<ClockValues>();
    start->started = 1u << rank;
    for (uint32_t w = 0; w < warps_per_cta; ++w)
      warps[rank * warps_per_cta + w].groups = {{0xffffffffu, start}};
  }
}

Sanitizer::Sanitizer(Cluster& cluster, Reports& reports, bool strict,
                     std::shared_ptr<check::Grid> grid)
    : state_(std::make_unique<State>(cluster, reports, strict, std::move(grid))) {}

// Later clusters may meet what this one's operations did to global memory.
Sanitizer::~Sanitizer() {
  State& s = *state_;
  if (!s.has_global_operations) s.grid->records.erase(s.cluster.index);
  for (Record& record : s.records) record.clock.reset();
}

std::shared_ptr<check::Grid> share_grid(Machine& machine) {
  return std::make_shared<Grid>(machine);
}

const SharedClock& shared_clock_of(const LaneGroups& groups, int lane) {
  return std::ranges::find_if(
             groups, [&](const LaneGroup& group) { return (group.lanes >> lane & 1) != 0; })
      ->clock;  // every lane is in one of them
}

const ClockValues* clock_of(const LaneGroups& groups, int lane) {
  for (const LaneGroup& group : groups)
    if ((group.lanes >> lane & 1) != 0) return group.clock.get();
  return nullptr;
}

ThreadKnowledge Sanitizer::State::knowledge_of(const Execution& x, int lane) const {
  const uint32_t warp = warp_of(x);
  const WarpClocks& clocks = warps[warp];
  return {clock_of(clocks.groups, lane), static_cast<int>(warp),      lane, clocks.own_async[lane],
          clocks.own_async_global[lane], clocks.own_tensor_maps[lane]};
}

// Adds what the lanes know of themselves to a clock that they hand on.
void Sanitizer::State::mark_own(ClockValues& clock, uint32_t warp, uint32_t lanes,
                                uint32_t epoch) const {
  const WarpClocks& own = warps[warp];
  const uint32_t first = index_of(warp, 0);
  raise_order(clock, first, lanes, epoch);
  raise(clock.async, first, lanes, own.own_async.data());
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (own.own_async_global[lane] != 0)
      raise(clock.async_global, index_of(warp, lane), own.own_async_global[lane]);
    if (own.own_tensor_maps[lane] != 0)
      raise(clock.tensor_maps, index_of(warp, lane), own.own_tensor_maps[lane]);
  }
  mark_own_sc(clock, warp, lanes);
  if (!own.signals.empty())
    join_signals(clock.signals, std::make_shared<std::vector<Signal>>(own.signals));
}

void Sanitizer::State::release(const Execution& x, uint32_t lanes, SyncClock& into,
                               BarrierOrder order) {
  State& s = *this;
  const uint32_t warp = s.warp_of(x);
  WarpClocks& clocks = s.warps[warp];
  for (const LaneGroup& group : clocks.groups) {
    const uint32_t releasing = group.lanes & lanes;
    if (releasing == 0) continue;
    if (order != BarrierOrder::kRelaxed) {
      if (into.last != group.clock) join_into(into.values, group.clock);
      into.last = group.clock;
      s.mark_own(writable(into.values), warp, releasing, clocks.epoch);
      continue;
    }
    join_execution_into(into.values, *group.clock);
    ClockValues& values = writable(into.values);
    for (uint32_t left = releasing; left != 0; left &= left - 1)
      raise(values.execution, s.index_of(warp, std::countr_zero(left)), clocks.epoch);
  }
  ++clocks.epoch;
}

void Sanitizer::State::acquire(const Execution& x, uint32_t lanes, const SyncClock& from,
                               BarrierOrder order) {
  if (!from.values) return;
  State& s = *this;
  s.change(s.warps[s.warp_of(x)].groups, lanes, [&](LaneGroup& group) {
    if (order != BarrierOrder::kRelaxed) {
      join_into(group.clock, from.values);
    } else if ((from.values->started & ~group.clock->started) != 0 ||
               !covers(execution_of(*group.clock), execution_of(*from.values))) {
      join_execution_into(group.clock, *from.values);
    }
  });
}

void Sanitizer::lanes_synchronized(const Execution& x, uint32_t lanes) {
  SyncClock all;
  state_->release(x, lanes, all);
  state_->acquire(x, lanes, all);
}

// shfl.sync and its like order no memory, and cooperative groups rely on what hardware does: a
// lane's earlier accesses are over, and what it has waited for has happened, when the others have
// met it.
void Sanitizer::lanes_met(const Execution& x, uint32_t lanes) {
  WarpClocks& clocks = state_->warps[state_->warp_of(x)];
  clocks.met_lanes = lanes;
  clocks.met_epoch = clocks.epoch++;
  if (clocks.groups.size() == 1) return;
  SyncClock all;
  for (const LaneGroup& group : clocks.groups)
    if ((group.lanes & lanes) != 0) join_execution_into(all.values, *group.clock);
  state_->acquire(x, lanes, all, BarrierOrder::kRelaxed);
}

void Sanitizer::barrier_arrived(const Execution& x, uint32_t lanes, uint32_t number) {
  state_->finish_loads(x);
  state_->release(x, lanes, state_->ctas[x.cta.rank].barriers[number].arriving);
}

void Sanitizer::barrier_completed(Cta& cta, uint32_t number) {
  BarrierClocks& clocks = state_->ctas[cta.rank].barriers[number];
  // Lanes of an earlier phase may not have run since: the clock only grows.
  join_into(clocks.completed.values, clocks.arriving.values);
  clocks.arriving.clear();
  uint32_t waiting = 0;
  for (const uint32_t lanes : cta.barriers[number].waiting_lanes)
    waiting += static_cast<uint32_t>(std::popcount(lanes));
  if (waiting == volume(cta.machine.launch().block)) ++state_->ctas[cta.rank].generation;
}

void Sanitizer::barrier_passed(const Execution& x, uint32_t lanes, uint32_t number) {
  state_->acquire(x, lanes, state_->ctas[x.cta.rank].barriers[number].completed);
}

void Sanitizer::cluster_barrier_arrived(const Execution& x, uint32_t lanes, BarrierOrder order) {
  state_->finish_loads(x);
  state_->release(x, lanes, state_->cluster_barrier.arriving, order);
}

void Sanitizer::cluster_barrier_completed(Cluster&) {
  BarrierClocks& clocks = state_->cluster_barrier;
  clocks.completed = std::move(clocks.arriving);
  clocks.arriving.clear();
  // It waits for threads that have not exited: what the others did is over, and it is not released.
  for (const CtaShadow& cta : state_->ctas)
    if (cta.at_exit) join_execution_into(clocks.completed.values, *cta.at_exit);
}

void Sanitizer::cluster_barrier_passed(const Execution& x, uint32_t lanes) {
  const SharedClock& completed = state_->cluster_barrier.completed.values;
  state_->acquire(x, lanes, {across_ctas(completed), nullptr});
}

// Proxy-preserved causality order (PTX ISA, "Causality order"): the fence makes visible to the
// async proxy what happened before it, by any thread.
void Sanitizer::fence_proxy_async(const Execution& x, uint32_t lanes, bool of_shared,
                                  bool of_global) {
  State& s = *state_;
  s.finish_loads(x);
  WarpClocks& clocks = s.warps[s.warp_of(x)];
  if (of_shared) s.show(clocks, lanes, &ClockValues::async, clocks.own_async);
  if (of_global) s.show(clocks, lanes, &ClockValues::async_global, clocks.own_async_global);
  ++clocks.epoch;
}

void Sanitizer::State::show(WarpClocks& clocks, uint32_t lanes, ProxyClock proxy,
                            std::array<uint32_t, kWarpSize>& own) {
  const bool is_of_global = proxy != &ClockValues::async;
  change(clocks.groups, lanes, [&](LaneGroup& group) {
    if ((*group.clock).*proxy == group.clock->order && (!is_of_global || !group.clock->foreign))
      return;
    ClockValues& values = writable(group.clock);
    if (is_of_global)
      show_to_proxy(values, proxy);
    else
      values.*proxy = values.order;
  });
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    own[std::countr_zero(left)] = clocks.epoch;
}

void Sanitizer::fence_mbarrier_init(const Execution& x, uint32_t lanes) {
  State& s = *state_;
  const uint32_t warp = s.warp_of(x);
  for (auto& [slot, barrier] : s.barriers) {
    if (barrier.warp == warp && barrier.fenced_at == 0 && (lanes & barrier.lanes) != 0)
      barrier.fenced_at = s.warps[warp].epoch;
  }
  ++s.warps[warp].epoch;
}

void Sanitizer::fence_tcgen05(const Execution& x, uint32_t lanes, bool after_thread_sync) {
  State& s = *state_;
  const uint32_t warp = s.warp_of(x);
  WarpClocks& clocks = s.warps[warp];
  if (after_thread_sync) {
    for (LaneGroup& group : clocks.after_fence) group.lanes &= ~lanes;
    std::erase_if(clocks.after_fence, [](const LaneGroup& group) { return group.lanes == 0; });
    for (const LaneGroup& group : clocks.groups)
      if ((group.lanes & lanes) != 0)
        clocks.after_fence.push_back({group.lanes & lanes, group.clock});
    return;
  }
  for (AsyncKind kind : {AsyncKind::kTcgen05Ld, AsyncKind::kTcgen05St}) {
    const auto slot = s.queue_slots.find(queue_key(kind, s.index_of(warp, 0)));
    if (slot == s.queue_slots.end()) continue;
    Queue& queue = s.queues.at(slot->second);
    queue.fenced_before = queue.last_sequence;
  }
}

void Sanitizer::threads_exited(const Execution& x, uint32_t lanes) {
  State& s = *state_;
  SyncClock last;
  last.values = std::move(s.ctas[x.cta.rank].at_exit);
  s.release(x, lanes, last);
  s.ctas[x.cta.rank].at_exit = std::move(last.values);
}

}  // namespace ptxsim
