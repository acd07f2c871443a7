// mbarrier.test_wait and .try_wait (PTX ISA 9.0, "mbarrier.test_wait, mbarrier.try_wait"). A
// try_wait whose phase is not complete suspends the lanes; it returns false when nothing else can
// go on (the hardware's time limit) and, in the random schedule, now and then without a reason. In
// the eager schedule it returns true when its phase completed while it was suspended, although the
// barrier may have gone on (machine/near_miss.hpp).
#include <fmt/format.h>

#include "insn/sync/mbarrier_decode.hpp"
#include "insn/sync/mbarrier_state.hpp"
#include "machine/findings.hpp"

namespace ptxsim {
namespace {

constexpr uint64_t kSpuriousOneIn =
    16;  // failed try_waits of the random schedule that return at once

// What one lane waits for.
struct Wait {
  uint32_t offset = 0;
  uint32_t parity = 0;
  uint64_t phase = 0;  // whose end is asked for; by parity: presumed
  bool done = false;
  bool presumed = false;  // `phase` is only the first one that the parity can mean
  bool released = false;  // done, as of an earlier moment
};

uint32_t own_barrier(const Execution& x, const MbarrierDetail& detail, int lane) {
  const uint64_t address = shared_address_of(x, detail.address, lane);
  const uint64_t rank = address >> kSharedRankShift;
  if (rank != x.cta.rank && rank < x.cluster.ctas.size())
    x.fault(fmt::format("wait on the mbarrier 0x{:x} of CTA rank {}; a thread of rank {} can wait "
                        "only on mbarriers "
                        "of its own CTA (R10)",
                        address & kSharedOffsetMask, rank, x.cta.rank),
            lane);
  return locate(x, detail.address, lane, 8, 8).offset;
}

void test_state(const Execution& x, const Mbarrier& barrier, uint64_t state, Wait& wait, int lane) {
  if (!is_arrive_state(state))
    x.fault(fmt::format("state 0x{:x} was not returned by mbarrier.arrive (R10)", state), lane);
  wait.phase = phase_of_state(state);
  wait.parity = wait.phase & 1;
  const uint64_t behind = (barrier.phase - wait.phase) % kArriveStatePhases;
  if (behind > 1)
    x.fault(fmt::format("wait for phase {} of {}; only the current phase and the one before it can "
                        "be waited for "
                        "(R10)",
                        wait.phase, describe(x.cta, wait.offset, barrier)),
            lane);
  wait.done = behind == 1;
}

// R10, as a warning: which phase a parity means is only presumed. A thread that so far waited for
// every phase and now asks for the parity of the next one, while the barrier is two phases past
// that, gets the answer of a later phase.
void check_aliasing(const Execution& x, const Mbarrier& barrier, const Wait& wait,
                    const WaitHistory::Seen& seen, int lane) {
  const bool next = (seen.phases & 1) == wait.parity;
  if (wait.done || !seen.any || seen.skips || !next || barrier.phase < seen.phases + 2) return;
  Report report;
  report.rule = 10;
  report.severity = Severity::kWarning;
  report.message = fmt::format(
      "wait for parity {} of mbarrier 0x{:x}, which is in phase {}; the thread last saw phase "
      "{} complete and may have missed phase {}",
      wait.parity, wait.offset, barrier.phase, static_cast<int64_t>(seen.phases) - 1, seen.phases);
  report.place = x.machine.place_of(x.insn->statement);
  report.actor = x.machine.actor_of(x.warp, lane);
  report.missing = "a wait is valid for the current phase and the one before it only";
  report.fix = "make the arrivals of the next phase depend on this thread having seen the last one";
  x.machine.reports().add(std::move(report));
}

void note_seen(const Mbarrier& barrier, const Wait& wait, WaitHistory::Seen& seen) {
  if (!wait.done) return;
  const bool in_step = barrier.phase == seen.phases || barrier.phase == seen.phases + 1;
  if (seen.any && !in_step) seen.skips = true;
  seen.any = true;
  seen.phases = barrier.phase;
}

// Which phase a parity that is not done yet means. A wait goes on until it succeeds, through time
// limits and polls; a thread that saw every phase so far means the next one; one that has seen none
// may mean any.
void presume_phase(const Execution& x, const Mbarrier& barrier, const WaitHistory::Seen* seen,
                   int lane, Wait& wait) {
  const WaitInfo& last = x.warp.wait[lane];
  const bool goes_on = last.kind == WaitInfo::Kind::kMbarrier && last.where == wait.offset &&
                       last.parity == wait.parity && last.phase <= barrier.phase;
  wait.phase = barrier.phase;
  if (goes_on) {
    wait.phase = last.phase;
    wait.presumed = last.presumed;
  } else if (seen != nullptr && !seen->any) {
    wait.presumed = barrier.phase > wait.parity;
    wait.phase = wait.parity;
  } else if (seen != nullptr && !seen->skips && (seen->phases & 1) == wait.parity &&
             seen->phases <= barrier.phase) {
    wait.phase = seen->phases;
  }
}

// The answer to lanes that release_waiters_of_last_phase() has released.
Wait released_wait(const Execution& x, const MbarrierDetail& detail, WaitHistory& history,
                   int lane) {
  const WaitInfo& info = x.warp.wait[lane];
  const Wait wait{.offset = info.where,
                  .parity = info.parity,
                  .phase = info.phase,
                  .done = true,
                  .presumed = false,
                  .released = true};
  if (detail.by_parity && x.machine.options().sanitize) {
    WaitHistory::Seen& seen = history.at(wait.offset, x.thread_of(lane), x.cta.threads);
    seen.any = true;
    seen.phases = wait.phase + 1;
  }
  return wait;
}

Wait test(const Execution& x, const MbarrierDetail& detail, WaitHistory& history, int lane) {
  if (x.warp.ticket[lane] == kTicketReleased) return released_wait(x, detail, history, lane);
  Wait wait;
  wait.offset = own_barrier(x, detail, lane);
  Mbarrier& barrier = mbarrier_at(x.cta, wait.offset);
  if (x.warp.ticket[lane] == 0)
    x.tell([&](Observer& o) { o.mbarrier_used(x, lane, x.cta, wait.offset, barrier, false); });
  if (!detail.by_parity) {
    test_state(x, barrier, x.source<uint64_t>(detail.value)[lane], wait, lane);
    return wait;
  }
  const uint32_t parity = x.source<uint32_t>(detail.value)[lane];
  wait.parity = parity & 1;
  if (parity > 1)  // -1 in Triton's kernels; the machine code shifts all but the lowest bit out
    add_finding(
        x, lane,
        {10, Severity::kWarning,
         fmt::format("phase parity {} of mbarrier 0x{:x}; must be 0 or 1: the lowest bit counts",
                     parity, wait.offset),
         "a parity of 0 or 1", "mask the parity with 1"});
  wait.done = mbarrier_parity_done(barrier, wait.parity);
  WaitHistory::Seen* seen = x.machine.options().sanitize
                                ? &history.at(wait.offset, x.thread_of(lane), x.cta.threads)
                                : nullptr;
  if (!wait.done) presume_phase(x, barrier, seen, lane, wait);
  if (seen != nullptr) {
    check_aliasing(x, barrier, wait, *seen, lane);
    note_seen(barrier, wait, *seen);
  }
  return wait;
}

// Lanes that waited on the same barrier acquire together. Those that were released have done so.
void acquire(const Execution& x, uint32_t done, const Wait (&waits)[kWarpSize],
             BarrierOrder order) {
  if (!x.is_observed()) return;
  for (uint32_t left = done; left != 0; left &= left - 1)
    if (waits[std::countr_zero(left)].released) done &= ~(1u << std::countr_zero(left));
  while (done != 0) {
    const uint32_t offset = waits[std::countr_zero(done)].offset;
    uint32_t same = 0;
    for (uint32_t left = done; left != 0; left &= left - 1)
      if (waits[std::countr_zero(left)].offset == offset) same |= 1u << std::countr_zero(left);
    const Mbarrier& barrier = mbarrier_at(x.cta, offset);
    if (barrier.phase > 0) x.tell([&](Observer& o) { o.mbarrier_passed(x, same, barrier, order); });
    done &= ~same;
  }
}

// Lanes need not see a phase complete in the same poll: in the random schedule some now and then
// see it one poll later, so that what follows must not rely on the warp having stayed together.
uint32_t seen_now(const Execution& x, uint32_t done) {
  if (x.machine.options().schedule != Schedule::kRandom || (done & (done - 1)) == 0 ||
      x.cluster.random() % kSpuriousOneIn != 0)
    return done;
  return done & (static_cast<uint32_t>(x.cluster.random()) | (done & -done));
}

bool returns_early(const Execution& x) {
  if (x.warp.ticket[x.first_lane()] == kTicketTimeout) return true;
  return x.machine.options().schedule == Schedule::kRandom &&
         x.cluster.random() % kSpuriousOneIn == 0;
}

// What the lanes wait for that go on waiting; the wait of the others is over.
void note_waits(const Execution& x, const Wait (&waits)[kWarpSize], uint32_t done,
                BarrierOrder order) {
  x.for_lanes([&](int lane) {
    if ((done >> lane & 1) != 0)
      x.warp.wait[lane].kind = WaitInfo::Kind::kNone;
    else
      x.warp.wait[lane] = {.kind = WaitInfo::Kind::kMbarrier,
                           .cta_rank = x.cta.rank,
                           .where = waits[lane].offset,
                           .parity = waits[lane].parity,
                           .what = "",
                           .phase = waits[lane].phase,
                           .presumed = waits[lane].presumed,
                           .order = order};
  });
}

Outcome execute_wait(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const MbarrierDetail&>(*insn.detail);
  WaitHistory& history = x.cta.state<WaitHistory>();
  Wait waits[kWarpSize];
  uint32_t done = 0;
  x.for_lanes([&](int lane) {
    waits[lane] = test(x, detail, history, lane);
    if (waits[lane].done) done |= 1u << lane;
  });
  done = seen_now(x, done);
  note_waits(x, waits, done, detail.order);
  if (done == 0 && detail.may_suspend && !returns_early(x)) {
    x.for_lanes([&](int lane) { x.warp.ticket[lane] = kTicketWaiting; });
    return Outcome::kBlock;
  }
  x.set_predicate(detail.result, done);
  acquire(x, done, waits, detail.order);
  if (done == 0) return Outcome::kYield;
  ++x.machine.stats().barrier_waits;
  if (x.warp.ticket[x.first_lane()] >= kTicketWaiting) ++x.machine.stats().barrier_waits_blocked;
  return Outcome::kNext;
}

}  // namespace

void decode_mbarrier_wait(Decode& d, bool may_suspend) {
  d.expect_operands(3, may_suspend ? 4 : 3);
  auto* detail = d.make_detail<MbarrierDetail>();
  detail->may_suspend = may_suspend;
  detail->by_parity = d.modifiers().take("parity");
  detail->order = take_order_and_scope(d, "acquire");
  const SharedForm form = take_shared_form(d);
  if (form == SharedForm::kCluster) d.fail("waits take .shared::cta only");
  detail->result = d.destination(0, Type::kPred);
  detail->address = shared_operand(d, 1, form);
  detail->value = d.source(2, detail->by_parity ? Type::kU32 : Type::kB64);
  if (d.num_operands() == 4) d.source(3, Type::kU32);  // suspendTimeHint
  d.insn().execute = execute_wait;
}

}  // namespace ptxsim
