// Asynchronous operations and the mbarriers they complete on.
#include "ptxsim/check/state.hpp"

namespace ptxsim {
namespace {

TensorWork work_of(const Statement& statement) {
  if (statement.root != "tcgen05" || statement.modifiers.empty()) return TensorWork::kNone;
  if (statement.modifiers[0] == "mma") return TensorWork::kMma;
  return statement.modifiers[0] == "cp" ? TensorWork::kCopy : TensorWork::kOther;
}

// Who issues the operations of one queue: a thread, a warp, or a warpgroup, named by its first
// thread.
uint32_t issuer_of(AsyncKind kind, uint32_t thread) {
  switch (kind) {
    case AsyncKind::kTcgen05Ld:
    case AsyncKind::kTcgen05St:
      return thread / kWarpSize * kWarpSize;
    case AsyncKind::kWgmma:
      return thread / (4 * kWarpSize) * (4 * kWarpSize);
    default:
      return thread;
  }
}

}  // namespace

uint64_t queue_key(AsyncKind kind, uint32_t issuer) {
  return static_cast<uint64_t>(kind) << 32 | issuer;
}

AsyncOp Sanitizer::issue(const Execution& x, int lane, AsyncKind kind) {
  State& s = *state_;
  if (lane < 0) lane = x.first_lane();
  const uint32_t warp = s.warp_of(x);
  // Warpgroups are counted within their CTA.
  const uint32_t first_of_cta = s.index_of(x.cta.rank * s.warps_per_cta, 0);
  const uint32_t issuer = first_of_cta + issuer_of(kind, s.index_of(x.warp.index, lane));
  const auto [found, is_first] = s.queue_slots.try_emplace(queue_key(kind, issuer), s.next_slot);
  if (is_first) ++s.next_slot;
  Queue& queue = s.queues[found->second];
  WarpClocks& clocks = s.warps[warp];
  queue.issue_warp = warp;
  queue.issue_lane = lane;
  queue.issue_epoch = clocks.epoch++;
  queue.issue_own_async = clocks.own_async[lane];
  // Only these complete together with what is before them.
  if (kind == AsyncKind::kTcgen05 || kind == AsyncKind::kCpAsync)
    for (const LaneGroup& group : clocks.groups)
      if ((group.lanes >> lane & 1) != 0) queue.issue_clock = group.clock;
  const AsyncOp op{found->second, ++queue.last_sequence, static_cast<uint32_t>(s.records.size())};
  s.records.push_back({kind,
                       work_of(x.program().entry->statements[x.insn->statement]),
                       op.queue,
                       op.sequence,
                       warp,
                       lane,
                       x.insn->statement,
                       {}});
  return op;
}

void Sanitizer::publish(const AsyncOp& op, bool and_before, Mbarrier& barrier,
                        int destination_rank) {
  State& s = *state_;
  const uint32_t phase = static_cast<uint32_t>(barrier.phase) + 1;
  BarrierObject& object = s.barriers[barrier.slot];
  if (!and_before) {
    s.records[op.record].publications.push_back({barrier.slot, phase, destination_rank});
    return;
  }
  const Queue& queue = s.queues.at(op.queue);
  join_into(barrier.arriving.values, queue.issue_clock);
  ClockValues& values = writable(barrier.arriving.values);
  raise_order(values, op.queue, op.sequence);
  const uint32_t thread = s.index_of(queue.issue_warp, queue.issue_lane);
  raise_order(values, thread, queue.issue_epoch);
  raise(values.async, thread, queue.issue_own_async);
  std::erase_if(object.commitments, [&](const Commitment& c) { return c.queue == op.queue; });
  object.commitments.push_back({phase, op.queue, op.sequence, op.record});
}

void Sanitizer::learn(const Execution& x, uint32_t lanes, const AsyncOp& op, bool /*only_reads*/) {
  // What a bulk store still has to write lies in global memory, which is not followed: its reads
  // are all that counts.
  State& s = *state_;
  s.change(s.warps[s.warp_of(x)].groups, lanes, [&](LaneGroup& group) {
    if (clock_value(group.clock->order, op.queue) < op.sequence)
      raise_order(writable(group.clock), op.queue, op.sequence);
  });
}

void Sanitizer::mbarrier_initialized(const Execution& x, int lane, Cta& owner, uint32_t offset,
                                     Mbarrier& barrier) {
  State& s = *state_;
  barrier.slot = s.next_slot++;
  barrier.arriving.clear();
  barrier.completed.clear();
  BarrierObject& object = s.barriers[barrier.slot];
  object.rank = owner.rank;
  object.offset = offset;
  object.warp = s.warp_of(x);
  object.lane = lane;
  object.epoch = s.warps[object.warp].epoch;
  object.statement = x.insn->statement;
}

void Sanitizer::mbarrier_used(const Execution& x, int lane, Cta& owner, uint32_t offset,
                              Mbarrier& barrier, bool by_async_or_remote) {
  State& s = *state_;
  if (lane < 0) return;
  if (owner.rank != x.cta.rank) s.check_remote(x, lane, owner, offset);
  BarrierObject& object = s.barriers[barrier.slot];
  const Knower who = s.knower(x, lane);
  const uint32_t lanes = 1u << object.lane;
  const bool is_own = who.is_lane(object.warp, object.lane);
  const bool is_fenced = object.fenced_at != 0 &&
                         (is_own || s.executed(*who.clock, object.warp, lanes, object.fenced_at));
  const bool is_ordered = is_fenced || s.ordered(who, object.warp, lanes, object.epoch);
  const bool is_visible = is_fenced || s.seen_by_async(who, object.warp, lanes, object.epoch);
  const bool is_right = by_async_or_remote ? is_visible : is_ordered;
  if (!is_right) s.report_uninitialized(x, lane, object, is_ordered);
  if (owner.rank != x.cta.rank) s.note_remote_arrival(object, who, x.insn->statement);
}

void Sanitizer::State::note_remote_arrival(BarrierObject& object, const Knower& who,
                                           uint32_t statement) {
  const uint32_t warp = static_cast<uint32_t>(who.warp);
  for (RemoteArrival& arrival : object.remote) {
    if (arrival.warp != warp || arrival.lane != who.lane) continue;
    arrival.epoch = warps[warp].epoch;
    arrival.statement = statement;
    return;
  }
  object.remote.push_back({warp, warps[warp].epoch, statement, who.lane});
}

void Sanitizer::mbarrier_phase_completed(Mbarrier& barrier) {
  // Arrivals are read-modify-writes: who acquires this phase acquires what earlier phases released,
  // too.
  join_into(barrier.arriving.values, barrier.completed.values);
  raise_order(writable(barrier.arriving.values), barrier.slot,
              static_cast<uint32_t>(barrier.phase) + 1);
}

}  // namespace ptxsim
