// mbarrier.init, .inval, .arrive, .arrive_drop, .expect_tx, .complete_tx, .pending_count (PTX
// ISA 9.0, "Parallel Synchronization and Communication Instructions: mbarrier"). What scopes mean
// is for the observers (check/mbarrier_scope.cpp).
#include "machine/memory/mbarrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "insn/registry.hpp"
#include "insn/sync/mbarrier_decode.hpp"
#include "insn/sync/mbarrier_state.hpp"
#include "insn/traits.hpp"

namespace ptxsim {
namespace {

const MbarrierDetail& detail_of(const Insn& insn) {
  return static_cast<const MbarrierDetail&>(*insn.detail);
}

uint32_t value_or_one(const Execution& x, const MbarrierDetail& detail, int lane) {
  return detail.value.present() ? x.source<uint32_t>(detail.value)[lane] : 1;
}

// The barrier that a lane names, own or remote, after the checks that all uses have in common.
struct Target {
  Cta* cta;
  uint32_t offset;
  Mbarrier& barrier;
};
Target target_of(const Execution& x, const MbarrierDetail& detail, int lane) {
  const SharedAt at = locate(x, detail.address, lane, 8, 8);
  if (at.cta->exited)
    x.fault(fmt::format("the mbarrier at 0x{:x} belongs to CTA rank {}, which has exited (R11)",
                        at.offset, at.cta->rank),
            lane);
  Mbarrier& barrier = mbarrier_at(*at.cta, at.offset);
  x.tell([&](Observer& o) {
    o.mbarrier_used(x, lane, *at.cta, at.offset, barrier, at.cta != &x.cta);
  });
  return {at.cta, at.offset, barrier};
}

Outcome execute_init(Execution& x, const Insn& insn) {
  const MbarrierDetail& detail = detail_of(insn);
  std::vector<uint32_t> done;  // offsets that lanes before have initialised
  x.for_lanes([&](int lane) {
    const SharedAt at = locate(x, detail.address, lane, 8, 8);
    const uint32_t count = x.source<uint32_t>(detail.value)[lane];
    if (std::find(done.begin(), done.end(), at.offset) != done.end()) {
      // Lanes that store the same object together leave that object behind.
      const Mbarrier& barrier = mbarrier_at(*at.cta, at.offset);
      if (barrier.expected == count) {
        x.tell([&](Observer& o) { o.mbarrier_initialized(x, lane, *at.cta, at.offset, barrier); });
        return;
      }
      x.fault(fmt::format("mbarrier.init of 0x{:x} with count {} in this lane and {} in another of "
                          "the warp; must be the same (R10)",
                          at.offset, count, barrier.expected),
              lane);
    }
    x.cta.state<WaitHistory>().seen.erase(at.offset);
    mbarrier_init(x, lane, *at.cta, at.offset, count);
    done.push_back(at.offset);
  });
  return Outcome::kNext;
}

Outcome execute_inval(Execution& x, const Insn& insn) {
  x.for_lanes([&](int lane) {
    const SharedAt at = locate(x, detail_of(insn).address, lane, 8, 8);
    mbarrier_inval(x, lane, *at.cta, at.offset);
  });
  return Outcome::kNext;
}

void check_drop(const Execution& x, const Target& target, uint32_t count, int lane) {
  if (target.barrier.expected < count)
    x.fault(
        fmt::format("arrive_drop of {} at {}; its phases take {} arrivals (R10)", count,
                    describe(*target.cta, target.offset, target.barrier), target.barrier.expected),
        lane);
}

void check_no_complete(const Execution& x, const Target& target, uint32_t count, int lane) {
  if (target.barrier.pending == count && target.barrier.tx_count == 0)
    x.fault(fmt::format("an arrival with .noComplete completes the phase of {} (R10)",
                        describe(*target.cta, target.offset, target.barrier)),
            lane);
}

Outcome execute_arrive(Execution& x, const Insn& insn) {
  const MbarrierDetail& detail = detail_of(insn);
  x.for_lanes([&](int lane) {
    const Target target = target_of(x, detail, lane);
    if (target.cta != &x.cta && detail.result.present())
      x.fault(
          fmt::format("an arrival at the mbarrier of CTA rank {} has no state to return; write _",
                      target.cta->rank),
          lane);
    const uint32_t value = value_or_one(x, detail, lane);
    const uint32_t count = detail.expects ? 1 : value;
    const uint64_t state = arrive_state(target.barrier);
    if (detail.drops) check_drop(x, target, count, lane);
    if (detail.no_complete) check_no_complete(x, target, count, lane);
    x.tell([&](Observer& o) { o.mbarrier_arrived(x, lane, target.barrier, detail.order); });
    if (detail.expects) mbarrier_expect_tx(*target.cta, target.offset, value);
    if (detail.drops) target.barrier.expected -= count;
    mbarrier_arrive(*target.cta, target.offset, count);
    if (detail.result.present()) x.destination<uint64_t>(detail.result)[lane] = state;
  });
  return Outcome::kNext;
}

Outcome execute_expect_tx(Execution& x, const Insn& insn) {
  x.for_lanes([&](int lane) {
    const Target target = target_of(x, detail_of(insn), lane);
    mbarrier_expect_tx(*target.cta, target.offset, x.source<uint32_t>(detail_of(insn).value)[lane]);
  });
  return Outcome::kNext;
}

Outcome execute_complete_tx(Execution& x, const Insn& insn) {
  x.for_lanes([&](int lane) {
    const Target target = target_of(x, detail_of(insn), lane);
    x.tell(
        [&](Observer& o) { o.mbarrier_arrived(x, lane, target.barrier, BarrierOrder::kRelaxed); });
    mbarrier_complete_tx(*target.cta, target.offset,
                         x.source<uint32_t>(detail_of(insn).value)[lane]);
  });
  return Outcome::kNext;
}

Outcome execute_pending_count(Execution& x, const Insn& insn) {
  x.for_lanes([&](int lane) {
    const uint64_t state = x.source<uint64_t>(insn.slot[1])[lane];
    if (!is_arrive_state(state))
      x.fault(fmt::format("state 0x{:x} was not returned by mbarrier.arrive (R10)", state), lane);
    x.destination<uint32_t>(insn.slot[0])[lane] = pending_of_state(state);
  });
  return Outcome::kNext;
}

void decode_init(Decode& d) {
  d.expect_operands(2, 2);
  auto* detail = d.make_detail<MbarrierDetail>();
  detail->address = shared_operand(d, 0, take_shared_form(d));
  if (detail->address.form == SharedForm::kCluster) d.fail("mbarrier.init takes .shared::cta only");
  detail->value = d.source(1, Type::kU32);
  d.insn().execute = execute_init;
}

void decode_inval(Decode& d) {
  d.expect_operands(1, 1);
  auto* detail = d.make_detail<MbarrierDetail>();
  detail->address = shared_operand(d, 0, take_shared_form(d));
  if (detail->address.form == SharedForm::kCluster)
    d.fail("mbarrier.inval takes .shared::cta only");
  d.insn().execute = execute_inval;
}

void decode_arrive(Decode& d, bool drops) {
  auto* detail = d.make_detail<MbarrierDetail>();
  detail->drops = drops;
  detail->expects = d.modifiers().take("expect_tx");
  detail->no_complete = d.modifiers().take("noComplete");
  if (detail->expects && detail->no_complete)
    d.fail(".expect_tx and .noComplete exclude each other");
  detail->order = take_order_and_scope(d, "release");
  d.expect_operands(detail->expects || detail->no_complete ? 3 : 2, 3);
  const SharedForm form = take_shared_form(d);
  detail->result = d.destination(0, Type::kB64);
  if (form == SharedForm::kCluster && detail->result.present())
    d.fail("an arrival with .shared::cluster returns no state; write _");
  detail->address = shared_operand(d, 1, form);
  if (d.num_operands() == 3) detail->value = d.source(2, Type::kU32);
  d.insn().execute = execute_arrive;
}

void decode_tx(Decode& d, Handler handler) {
  d.expect_operands(2, 2);
  auto* detail = d.make_detail<MbarrierDetail>();
  take_order_and_scope(d, "relaxed");  // the only order there is for these
  detail->address = shared_operand(d, 0, take_shared_form(d));
  detail->value = d.source(1, Type::kU32);
  d.insn().execute = handler;
}

void decode_mbarrier(Decode& d) {
  Modifiers& modifiers = d.modifiers();
  if (!modifiers.take("b64")) d.fail("mbarrier needs the type .b64");
  if (modifiers.take("init")) return decode_init(d);
  if (modifiers.take("inval")) return decode_inval(d);
  if (modifiers.take("arrive")) return decode_arrive(d, false);
  if (modifiers.take("arrive_drop")) return decode_arrive(d, true);
  if (modifiers.take("expect_tx")) return decode_tx(d, execute_expect_tx);
  if (modifiers.take("complete_tx")) return decode_tx(d, execute_complete_tx);
  if (modifiers.take("test_wait")) return decode_mbarrier_wait(d, false);
  if (modifiers.take("try_wait")) return decode_mbarrier_wait(d, true);
  if (!modifiers.take("pending_count")) d.fail("unknown mbarrier operation");
  d.expect_operands(2, 2);
  d.insn().slot[0] = d.destination(0, Type::kU32);
  d.insn().slot[1] = d.source(1, Type::kB64);
  d.insn().execute = execute_pending_count;
}

constexpr Traits kArrive =
    traits::kLooseBarrier.with(Trait::kArrives).with(Mutants::kMbarrierArrive);
constexpr Form kForms[] = {{{"init"}, traits::kLooseBarrier.with(Mutants::kMbarrierInit)},
                           {{"inval"}, traits::kLooseBarrier.with(Trait::kEndsMbarrier)},
                           {{"expect_tx"}, traits::kLooseBarrier.with(Mutants::kMbarrierExpect)},
                           {{"arrive"}, kArrive},  // .expect_tx, too
                           {{"arrive_drop"}, kArrive},
                           {{"test_wait"}, traits::kLooseBarrier.with(Mutants::kMbarrierWait)},
                           {{"try_wait"}, traits::kLooseBarrier.with(Mutants::kMbarrierWait)}};
constexpr Decoder kDecoders[] = {{"mbarrier", decode_mbarrier, traits::kLooseBarrier, kForms}};

}  // namespace

BarrierOrder take_order_and_scope(Decode& d, const char* ordered) {
  const bool is_wait = std::string_view(ordered) == "acquire";
  const bool is_ordered = d.modifiers().take(ordered);
  const bool is_relaxed = d.modifiers().take("relaxed");
  const int scope = d.modifiers().take_one_of({"cta", "cluster"});
  if (is_ordered && is_relaxed)
    d.fail(std::string(".") + ordered + " and .relaxed exclude each other");
  if ((is_ordered || is_relaxed) != (scope >= 0))
    d.fail("a memory order and its scope (.cta, .cluster) must be given together");
  return is_relaxed                             ? BarrierOrder::kRelaxed
         : scope == 1 || (scope < 0 && is_wait) ? BarrierOrder::kAcquireRelease
                                                : BarrierOrder::kAcquireReleaseCta;
}

std::span<const Decoder> decoders_mbarrier() { return kDecoders; }

}  // namespace ptxsim
