// Asynchronous operations and the mbarriers they complete on.
#include "check/state.hpp"

namespace ptxsim {

namespace {

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

// Arrivals are read-modify-writes: who acquires this phase acquires what earlier phases released,
// too.
void complete_phase(BarrierClocks& clocks, uint32_t slot, uint32_t phase) {
  join_into(clocks.arriving.values, clocks.completed.values);
  raise_order(writable(clocks.arriving.values), slot, phase);
  clocks.completed = std::move(clocks.arriving);
  clocks.arriving.clear();
}

}  // namespace

uint64_t queue_key(AsyncKind kind, uint32_t issuer) {
  return static_cast<uint64_t>(kind) << 32 | issuer;
}

void Sanitizer::issued(const Execution& x, int lane, AsyncOp op, AsyncKind kind) {
  State& s = *state_;
  if (s.record_of_op.size() <= op.number) s.record_of_op.resize(op.number + 1, kNobody);
  s.record_of_op[op.number] = s.new_record(x, lane, kind);
  if (kind == AsyncKind::kTcgen05Ld && s.follows_results) s.open_tensor = s.record_of_op[op.number];
}

uint32_t Sanitizer::State::new_record(const Execution& x, int lane, AsyncKind kind) {
  State& s = *this;
  const uint32_t warp = s.warp_of(x);
  // Warpgroups are counted within their CTA.
  const uint32_t first_of_cta = s.index_of(x.cta.rank * s.warps_per_cta, 0);
  const uint32_t issuer = first_of_cta + issuer_of(kind, s.index_of(x.warp.index, lane));
  const auto [found, is_first] = s.queue_slots.try_emplace(queue_key(kind, issuer), s.next_slot);
  if (is_first) ++s.next_slot;
  Queue& queue = s.queues[found->second];
  if (is_first) queue.write_queue = kind == AsyncKind::kTmaStore ? s.next_slot++ : found->second;
  WarpClocks& clocks = s.warps[warp];
  const uint32_t index = static_cast<uint32_t>(s.records.size());
  const Traits& traits = x.program().traits_of(*x.insn);
  s.records.push_back({kind,
                       traits.tensor_work,
                       traits.has(Trait::kGenericProxy),
                       found->second,
                       queue.write_queue,
                       ++queue.last_sequence,
                       warp,
                       lane,
                       x.insn->statement,
                       clocks.epoch++,
                       clocks.own_async[lane],
                       {},
                       nullptr});
  const bool completes_in_order =
      kind == AsyncKind::kCpAsync || traits.tensor_work == TensorWork::kCommit;
  if (completes_in_order || kind == AsyncKind::kClc) {
    for (const LaneGroup& group : clocks.groups)
      if ((group.lanes >> lane & 1) != 0) s.records.back().clock = group.clock;
    if (completes_in_order) queue.with_clock.push_back(index);
  }
  return index;
}

// A queue completes in order, so that nothing older will be published any more.
void Sanitizer::State::forget_clocks(uint32_t queue_slot, uint32_t sequence) {
  std::deque<uint32_t>& held = queues.at(queue_slot).with_clock;
  for (; !held.empty() && records[held.front()].sequence < sequence; held.pop_front())
    records[held.front()].clock.reset();
}

// The operations, and of commits what their issuer knew happened before the arrival.
void Sanitizer::arrives_at(AsyncOp op, bool and_before, const Mbarrier& barrier,
                           int destination_rank) {
  State& s = *state_;
  const uint32_t phase = static_cast<uint32_t>(barrier.phase) + 1;
  Record& record = s.record_of(op);
  const uint32_t slot = s.slot_of(barrier);
  BarrierObject& object = s.barriers[slot];
  if (!and_before) {
    record.publications.push_back({slot, phase, destination_rank});
    if (record.kind != AsyncKind::kClc) return;
    // A request follows what its issuer has waited for, and the answer follows the request: who has
    // the answer knows that to be over. complete_tx releases the answer and nothing else.
    const auto show_over = [&](SyncClock& arriving) {
      join_execution_into(arriving.values, *record.clock);
      raise(writable(arriving.values).execution, s.index_of(record.warp, record.lane),
            record.epoch);
    };
    show_over(object.clocks.arriving);
    if (object.has_remote_arrivals) show_over(object.local.arriving);
    if (--record.unanswered == 0) record.clock.reset();
    return;
  }
  const auto arrive = [&](SyncClock& arriving) {
    join_into(arriving.values, record.clock);
    ClockValues& values = writable(arriving.values);
    raise_order(values, record.queue, record.sequence);
    const uint32_t thread = s.index_of(record.warp, record.lane);
    raise_order(values, thread, record.epoch);
    raise(values.async, thread, record.own_async);
  };
  arrive(object.clocks.arriving);
  if (object.has_remote_arrivals) arrive(object.local.arriving);
  s.forget_clocks(record.queue, record.sequence);
}

void Sanitizer::waited_for(const Execution& x, uint32_t lanes, AsyncOp op, bool only_reads) {
  if (state_->record_of(op).kind == AsyncKind::kTcgen05Ld)
    std::erase_if(state_->pending[state_->warp_of(x)],
                  [](const PendingResults& results) { return results.is_tensor; });
  state_->learn(x, lanes, state_->record_of(op), only_reads);
}

void Sanitizer::State::learn(const Execution& x, uint32_t lanes, const Record& record,
                             bool only_reads) {
  change(warps[warp_of(x)].groups, lanes, [&](LaneGroup& group) {
    if (clock_value(group.clock->order, record.queue) < record.sequence)
      raise_order(writable(group.clock), record.queue, record.sequence);
    if (!only_reads && clock_value(group.clock->order, record.write_queue) < record.sequence)
      raise_order(writable(group.clock), record.write_queue, record.sequence);
  });
  forget_clocks(record.queue, record.sequence);
}

void Sanitizer::mbarrier_initialized(const Execution& x, int lane, Cta& owner, uint32_t offset,
                                     const Mbarrier& barrier) {
  State& s = *state_;
  if (s.mbarrier_slots.size() <= barrier.number) s.mbarrier_slots.resize(barrier.number + 1, 0);
  if (const uint32_t known = s.slot_of(barrier); known != 0) {
    s.barriers[known].lanes |= 1u << lane;
    return;
  }
  const uint32_t slot = s.mbarrier_slots[barrier.number] = s.next_slot++;
  BarrierObject& object = s.barriers[slot];
  object.rank = owner.rank;
  object.offset = offset;
  object.warp = s.warp_of(x);
  object.lane = lane;
  object.lanes = 1u << lane;
  object.epoch = s.warps[object.warp].epoch;
  object.statement = x.insn->statement;
  // Who uses the barrier, and what else is done with its memory while it lives, is judged apart
  // (R10).
  s.access_shared({.x = x,
                   .lane = lane,
                   .owner = owner,
                   .kind = AccessKind::kWrite,
                   .who = s.knowledge_of(x, lane),
                   .warp = object.warp,
                   .begin = offset},
                  kMbarrierBytes, false);
}

void Sanitizer::mbarrier_used(const Execution& x, int lane, Cta& owner, uint32_t offset,
                              const Mbarrier& barrier, bool by_async_or_remote) {
  State& s = *state_;
  const bool is_remote = owner.rank != x.cta.rank;
  if (is_remote) s.check_remote(x, lane, owner, offset);
  BarrierObject& object = s.barriers[s.slot_of(barrier)];
  const ThreadKnowledge who = s.knowledge_of(x, lane);
  // The operation that this statement has issued uses it, or else the thread itself does.
  const bool by_operation =
      by_async_or_remote && !s.records.empty() && s.records.back().statement == x.insn->statement;
  s.check_initialized(x, who, object, by_async_or_remote, by_operation);
  if (s.has_invalidations) {
    if (x.program().traits_of(*x.insn).has(Trait::kEndsMbarrier))
      return s.check_invalidation(x, lane, owner, s.slot_of(barrier));
    s.note_use(object, who, x.insn->statement, by_operation);
  }
  if (by_operation && s.records.back().work == TensorWork::kCommit) {
    s.note_commitment(object, static_cast<uint32_t>(barrier.phase) + 1);
  } else if (is_remote && !by_operation) {
    s.note_remote_arrival(object, who, x.insn->statement);
  }
}

// R10. fence.mbarrier_init with a barrier after it, relaxed ones included, shows the initialisation
// to all threads and to the async proxy. In its place the same barriers are enough as for ordinary
// stores: what released and acquired, for threads; a proxy fence on the way, for the async proxy
// and for other CTAs.
void Sanitizer::State::check_initialized(const Execution& x, const ThreadKnowledge& who,
                                         const BarrierObject& object, bool must_be_visible,
                                         bool by_operation) {
  const bool is_own =
      who.warp == static_cast<int>(object.warp) && (object.lanes >> who.lane & 1) != 0;
  const uint32_t lanes = 1u << (is_own ? who.lane : object.lane);
  if (object.fenced_at != 0 &&
      (is_own || executed(*who.clock, object.warp, lanes, object.fenced_at)))
    return;
  const bool is_ordered = ordered(who, object.warp, lanes, object.epoch);
  if (must_be_visible ? seen_by_async(who, object.warp, lanes, object.epoch) : is_ordered) return;
  // Initialised behind a barrier and only the fence missing: hardware shows the initialisation to
  // operations long before the first of them completes. A thread of another CTA that arrives after
  // a relaxed barrier without the fence: published kernels do.
  const bool is_remote = rank_of(static_cast<uint32_t>(who.warp)) != object.rank;
  const bool is_over =
      is_remote && !by_operation && executed(*who.clock, object.warp, lanes, object.epoch);
  report_uninitialized(x, who.lane, object, is_ordered,
                       is_ordered || is_over ? Severity::kWarning : Severity::kError);
}

// Notes the commit that was issued last.
void Sanitizer::State::note_commitment(BarrierObject& object, uint32_t phase) {
  const Record& record = records.back();
  std::erase_if(object.commitments,
                [&](const Commitment& earlier) { return earlier.queue == record.queue; });
  object.commitments.push_back(
      {phase, record.queue, record.sequence, static_cast<uint32_t>(records.size() - 1)});
}

void Sanitizer::State::note_remote_arrival(BarrierObject& object, const ThreadKnowledge& who,
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

void Sanitizer::mbarrier_arrived(const Execution& x, int lane, const Mbarrier& barrier,
                                 BarrierOrder order) {
  State& s = *state_;
  s.release_into(x, lane, s.barriers[s.slot_of(barrier)], order);
}

void Sanitizer::mbarrier_passed(const Execution& x, uint32_t lanes, const Mbarrier& barrier,
                                BarrierOrder order) {
  State& s = *state_;
  BarrierObject& object = s.barriers[s.slot_of(barrier)];
  if (order == BarrierOrder::kAcquireReleaseCta && object.has_remote_arrivals)
    return s.acquire_within_cta(x, lanes, object);
  const SyncClock& completed = object.clocks.completed;
  if (object.has_remote_arrivals)
    s.acquire(x, lanes, {across_ctas(completed.values), nullptr}, order);
  else
    s.acquire(x, lanes, completed, order);
}

void Sanitizer::mbarrier_phase_completed(const Mbarrier& barrier) {
  State& s = *state_;
  const uint32_t slot = s.slot_of(barrier);
  BarrierObject& object = s.barriers[slot];
  const uint32_t phase = static_cast<uint32_t>(barrier.phase) + 1;
  complete_phase(object.clocks, slot, phase);
  if (object.has_remote_arrivals) complete_phase(object.local, slot, phase);
}

}  // namespace ptxsim
