// bar and barrier{.cta} (PTX ISA 9.0, "Parallel Synchronization and Communication Instructions:
// bar, barrier").
//
// A warp counts, with 32 threads, once all its lanes that have not exited have arrived, and again
// if it arrives again before the phase has completed: FlashAttention 3 gives its first warpgroup
// the turn so, by bar.arrive of 128 of 256 threads ahead of that warpgroup's own bar.sync. Without
// a count the barrier completes when every thread of the CTA that has not exited is there; so it
// may complete when a thread exits, which the waiting lanes notice when they are tried again.
//
// Tickets: 0 not arrived, kArrived, or kDone with the results of bar.red, which the warp that
// completes the barrier writes into the tickets of those that wait: another phase may complete
// before they run.
#include <fmt/format.h>

#include <bit>

#include "insn/sync/bar.hpp"
#include "machine/execution.hpp"

namespace ptxsim {
namespace {

enum class Action : uint8_t { kSync, kArrive, kReduce };
enum class Reduction : uint8_t { kPopc, kAnd, kOr };

constexpr uint64_t kArrived = 2;  // 1 is kTicketTimeout
constexpr uint64_t kDone = uint64_t{1} << 63, kDoneAnd = uint64_t{1} << 62,
                   kDoneOr = uint64_t{1} << 61;
constexpr uint64_t kDonePopc = 0xffff;

bool is_whole(const Cta& cta, const NamedBarrier& barrier, size_t warp) {
  return (cta.warps[warp]->live & ~barrier.arrived_lanes[warp]) == 0;
}

bool is_complete(const Cta& cta, NamedBarrier& barrier) {
  bool all = true;
  barrier.arrived = barrier.arrived_before;
  for (size_t w = 0; w < cta.warps.size(); ++w) {
    const bool whole = is_whole(cta, barrier, w);
    all = all && whole;
    if (whole && barrier.arrived_lanes[w] != 0) barrier.arrived += kWarpSize;
  }
  return barrier.all_threads ? all : barrier.arrived >= barrier.expected;
}

void complete(Cta& cta, NamedBarrier& barrier) {
  const uint64_t result = kDone | (barrier.reduction_and != 0 ? kDoneAnd : 0) |
                          (barrier.reduction_or != 0 ? kDoneOr : 0) | barrier.reduction_popc;
  for (size_t w = 0; w < cta.warps.size(); ++w)
    for (uint32_t left = barrier.waiting_lanes[w]; left != 0; left &= left - 1)
      cta.warps[w]->ticket[std::countr_zero(left)] = result;
  cta.cluster.observers.tell([&](Observer& o) {
    o.barrier_completed(cta, static_cast<uint32_t>(&barrier - cta.barriers.data()));
  });
  NamedBarrier next;
  next.generation = barrier.generation + 1;
  barrier = next;
  cta.cluster.changed();
}

// The first arrival of a phase says what the barrier is; the others must agree.
void check_phase(const Execution& x, NamedBarrier& barrier, uint32_t number, uint32_t count,
                 bool reduces) {
  const uint32_t most = static_cast<uint32_t>(x.cta.warps.size()) * kWarpSize;
  if (count % kWarpSize != 0 || count > most)
    x.fault(
        fmt::format("barrier {} with a count of {} threads; must be a multiple of 32, at most "
                    "the {} of the CTA (R13)",
                    number, count, most));
  if (barrier.expected == 0) {
    barrier.all_threads = count == 0;
    barrier.expected = count == 0 ? most : count;
    barrier.reduces = reduces;
  }
  const uint32_t expected = count == 0 ? most : count;
  if (barrier.expected != expected)
    x.fault(
        fmt::format("barrier {} with a count of {} threads, while {} of {} have arrived; all "
                    "arrivals of a phase must have the same count (R13)",
                    number, expected, barrier.arrived, barrier.expected));
  if (barrier.reduces != reduces)
    x.fault(
        fmt::format("barrier {}: .red together with .sync or .arrive in one phase (R13)", number));
}

void arrive(Execution& x, NamedBarrier& barrier, uint32_t number, bool waits) {
  uint32_t& arrived = barrier.arrived_lanes[x.warp.index];
  if (arrived != 0 && is_whole(x.cta, barrier, x.warp.index)) {
    barrier.arrived_before += kWarpSize;
    arrived = 0;
  }
  if ((arrived & x.mask) != 0)
    x.fault(fmt::format("lanes {:08x} arrive again at barrier {} before the others of their warp; "
                        "{} of {} threads have arrived (R13)",
                        arrived & x.mask, number, barrier.arrived, barrier.expected),
            std::countr_zero(arrived & x.mask));
  arrived |= x.mask;
  if (waits) {
    barrier.waiting_lanes[x.warp.index] |= x.mask;
    x.for_lanes([&](int lane) { x.warp.ticket[lane] = kArrived; });
  }
  x.tell([&](Observer& o) { o.barrier_arrived(x, x.mask, number); });
}

void reduce(const Execution& x, const Insn& insn, NamedBarrier& barrier) {
  const uint32_t yes = x.predicate(insn.slot[3], insn.imm != 0) & x.mask;
  barrier.reduction_and &= yes == x.mask;
  barrier.reduction_or |= yes != 0;
  barrier.reduction_popc += static_cast<uint32_t>(std::popcount(yes));
}

void write_result(Execution& x, const Insn& insn, uint64_t ticket) {
  switch (static_cast<Reduction>(insn.variant)) {
    case Reduction::kPopc: {
      if (!insn.slot[2].present()) return;
      uint32_t* d = x.destination<uint32_t>(insn.slot[2]);
      x.for_lanes([&](int lane) { d[lane] = static_cast<uint32_t>(ticket & kDonePopc); });
      return;
    }
    case Reduction::kAnd:
      return x.set_predicate(insn.slot[2], (ticket & kDoneAnd) != 0 ? 0xffffffffu : 0);
    case Reduction::kOr:
      return x.set_predicate(insn.slot[2], (ticket & kDoneOr) != 0 ? 0xffffffffu : 0);
  }
}

// `mask` of the lanes narrowed for a while.
template <class F>
void for_some(Execution& x, uint32_t lanes, F&& f) {
  const uint32_t all = x.mask;
  x.mask = lanes;
  f();
  x.mask = all;
}

void finish(Execution& x, const Insn& insn, uint32_t number, uint32_t lanes) {
  for_some(x, lanes, [&] {
    x.tell([&](Observer& o) { o.barrier_passed(x, lanes, number); });
    if (static_cast<Action>(insn.family) == Action::kReduce)
      write_result(x, insn, x.warp.ticket[x.first_lane()]);
    x.for_lanes([&](int lane) { x.warp.ticket[lane] = 0; });
  });
}

uint32_t done_lanes(const Execution& x) {
  uint32_t done = 0;
  x.for_lanes(
      [&](int lane) { done |= static_cast<uint32_t>((x.warp.ticket[lane] & kDone) != 0) << lane; });
  return done;
}

// Lanes of different phases at the same statement: those that are done go on alone.
Outcome let_pass(Execution& x, const Insn& insn, uint32_t done) {
  x.for_lanes([&](int lane) { x.warp.pc[lane] = insn.statement + (done >> lane & 1); });
  x.jump_target = Execution::kPerLane;
  return Outcome::kJump;
}

Outcome named_barrier(Execution& x, const Insn& insn) {
  const auto action = static_cast<Action>(insn.family);
  const uint32_t number = x.uniform<uint32_t>(insn.slot[0], "the barrier's number");
  if (number >= x.cta.barriers.size())
    x.fault(fmt::format("barrier {}; must be 0 to {}", number, x.cta.barriers.size() - 1));
  NamedBarrier& barrier = x.cta.barriers[number];

  uint32_t done = done_lanes(x);
  uint32_t fresh = 0;
  x.for_lanes([&](int lane) { fresh |= static_cast<uint32_t>(x.warp.ticket[lane] == 0) << lane; });
  if (fresh != 0 && done == 0) {
    for_some(x, fresh, [&] {
      const uint32_t count =
          insn.slot[1].present() ? x.uniform<uint32_t>(insn.slot[1], "the barrier's count") : 0;
      if (insn.slot[1].present() && count == 0)
        x.fault(fmt::format("barrier {} with a count of 0 threads; must be a multiple of 32 (R13)",
                            number));
      check_phase(x, barrier, number, count, action == Action::kReduce);
      arrive(x, barrier, number, action != Action::kArrive);
      if (action == Action::kReduce) reduce(x, insn, barrier);
    });
  }
  // Also when nothing has arrived just now: a thread may have exited.
  if (barrier.expected != 0 && is_complete(x.cta, barrier)) complete(x.cta, barrier);
  if (action == Action::kArrive) return Outcome::kNext;
  done = done_lanes(x);
  if (done == 0)
    return x.block(
        {WaitInfo::Kind::kNamedBarrier, x.cta.rank, number, 0, "more threads must arrive"});
  finish(x, insn, number, done);
  return done == x.mask ? Outcome::kNext : let_pass(x, insn, done);
}

}  // namespace

void decode_named_barrier(Decode& d, bool aligned) {
  auto& m = d.modifiers();
  m.take("cta");
  const int action = m.take_one_of({"sync", "arrive", "red"});
  if (action < 0) d.fail("a barrier needs .sync, .arrive or .red");
  Insn& insn = d.insn();
  insn.family = static_cast<uint8_t>(action);
  size_t number = 0, operands = d.num_operands();
  switch (static_cast<Action>(action)) {
    case Action::kSync:
      d.expect_operands(1, 2);
      break;
    case Action::kArrive:
      d.expect_operands(2, 2);
      break;
    case Action::kReduce: {
      d.expect_operands(3, 4);
      const int reduction = m.take_one_of({"popc", "and", "or"});
      if (reduction < 0 || !m.take(reduction == 0 ? "u32" : "pred"))
        d.fail("a reducing barrier needs .popc.u32, .and.pred or .or.pred");
      insn.variant = static_cast<uint8_t>(reduction);
      insn.slot[2] = d.destination(0, reduction == 0 ? Type::kU32 : Type::kPred);
      insn.slot[3] = d.predicate(operands - 1);
      insn.imm = d.is_negated(operands - 1);
      number = 1;
      --operands;
    }
  }
  insn.slot[0] = d.source(number, Type::kU32);
  if (operands == number + 2) insn.slot[1] = d.source(number + 1, Type::kU32);
  if (aligned) d.require_aligned();
  insn.execute = named_barrier;
}

}  // namespace ptxsim
