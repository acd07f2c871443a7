// clusterlaunchcontrol (PTX ISA 9.0, "clusterlaunchcontrol.try_cancel",
// "clusterlaunchcontrol.query_cancel"). The response is opaque: a mark with bit 0 = cancelled, then
// x, y, z of the cancelled cluster's first CTA.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "insn/async/cp.hpp"
#include "insn/registry.hpp"
#include "insn/traits.hpp"

namespace ptxsim {
namespace {

using Response = std::array<uint32_t, 4>;
constexpr uint32_t kResponseMark = 0x434c4330;
constexpr uint32_t kResponseBytes = sizeof(Response);

// "If the executing CTA has already observed the completion of a try_cancel as failed", another one
// is undefined.
struct ClcState : FamilyState {
  static constexpr const char* kFamilyKey = "clusterlaunchcontrol";
  bool has_seen_failure = false;
};

struct TryCancelDetail : Detail {
  SharedOperand response, barrier;
  bool to_all = false;
};

void write_response(const LoadTarget& target, const Response& response, const AsyncOp& op) {
  Cta& cta = *target.cta;
  if (cta.exited)
    throw Fault(fmt::format(
        "CTA rank {} has exited before the response of try_cancel reached it (R11)", cta.rank));
  std::memcpy(cta.shared.at(target.offset), response.data(), kResponseBytes);
  cta.shared.mark_written(target.offset, kResponseBytes);
  cta.cluster.observers.tell([&](Observer& o) {
    o.arrives_at(op, false, mbarrier_at(cta, target.barrier), static_cast<int>(cta.rank));
  });
  mbarrier_complete_tx(cta, target.barrier, kResponseBytes);
  cta.cluster.changed();
}

std::vector<LoadTarget> targets_of(const Execution& x, const TryCancelDetail& detail, int lane) {
  const SharedAt response = locate(x, detail.response, lane, kResponseBytes, 16);
  const SharedAt barrier = locate(x, detail.barrier, lane, 8, 8);
  if (response.cta != &x.cta || barrier.cta != &x.cta)
    x.fault("the response and the mbarrier of try_cancel must be in the executing CTA's memory",
            lane);
  if (!detail.to_all) return {{&x.cta, response.offset, &x.cta, barrier.offset}};
  std::vector<LoadTarget> targets;
  for (const auto& cta : x.cluster.ctas)
    targets.push_back({cta.get(), response.offset, cta.get(), barrier.offset});
  return targets;
}

void start_cancel(Execution& x, const std::vector<LoadTarget>& targets, int lane) {
  AsyncOp op;
  if (x.is_observed()) op = x.issue(lane, AsyncKind::kClc);
  for (const LoadTarget& target : targets) {
    if (target.cta->exited)
      x.fault(
          fmt::format("try_cancel with .multicast::cluster::all while CTA rank {} has exited (R11)",
                      target.cta->rank),
          lane);
    Mbarrier& barrier = mbarrier_at(*target.cta, target.barrier);
    x.tell([&](Observer& o) {
      o.async_shared(op, x, *target.cta, target.offset, kResponseBytes, AccessKind::kWrite);
      o.mbarrier_used(x, lane, *target.cta, target.barrier, barrier, true);
    });
    target.cta->shared.poison(target.offset, kResponseBytes);
  }
  ++x.machine.stats().async_operations;
  x.cluster.async.submit([&machine = x.machine, &cluster = x.cluster, targets, op,
                          statement = x.insn->statement] {
    Dim3 first{};
    const bool cancelled = machine.cancel_pending_cluster(first);
    const Response response{kResponseMark | (cancelled ? 1u : 0u), first[0], first[1], first[2]};
    const uint32_t outer = std::exchange(cluster.async.statement, statement);
    for (const LoadTarget& target : targets)
      cluster.async.submit([target, response, op] { write_response(target, response, op); });
    cluster.async.statement = outer;
  });
}

Outcome execute_try_cancel(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const TryCancelDetail&>(*insn.detail);
  x.for_lanes([&](int lane) {
    if (x.cta.state<ClcState>().has_seen_failure)
      x.fault("try_cancel after this CTA has seen one fail; its behaviour is undefined", lane);
    start_cancel(x, targets_of(x, detail, lane), lane);
  });
  return Outcome::kNext;
}

Response response_in(const Execution& x, Slot slot, int lane) {
  Response response;
  std::memcpy(response.data(), x.source<std::byte>(slot) + size_t{kResponseBytes} * lane,
              kResponseBytes);
  // CUTLASS's ping-pong kernel for SM120 stores zeros where it has no response, and takes them for
  // a failed request.
  if (response != Response{} && (response[0] & ~1u) != kResponseMark)
    x.fault("the operand of query_cancel is not a response that try_cancel wrote", lane);
  return response;
}

Outcome execute_is_canceled(Execution& x, const Insn& insn) {
  uint32_t cancelled = 0;
  x.for_lanes([&](int lane) {
    const uint32_t head = response_in(x, insn.slot[1], lane)[0];
    if ((head & 1) != 0) cancelled |= 1u << lane;
    if (head == kResponseMark) x.cta.state<ClcState>().has_seen_failure = true;
  });
  x.set_predicate(insn.slot[0], cancelled);
  return Outcome::kNext;
}

// imm: the axis of slot[0], or 3: x y z in slot[0], slot[1], slot[2]; the response is in slot[4].
// The result of a request that failed is undefined: poison, as kernels may ask before they know.
Outcome execute_first_ctaid(Execution& x, const Insn& insn) {
  x.for_lanes([&](int lane) {
    Response response = response_in(x, insn.slot[4], lane);
    if ((response[0] & 1) == 0) response.fill(kPoisonWord);
    const bool all = insn.imm == 3;
    for (uint32_t i = 0; i < (all ? 3 : 1); ++i)
      if (insn.slot[i].present())
        x.destination<uint32_t>(insn.slot[i])[lane] = response[1 + (all ? i : insn.imm)];
  });
  return Outcome::kNext;
}

void decode_try_cancel(Decode& d) {
  Modifiers& modifiers = d.modifiers();
  if (!modifiers.take("async") || !modifiers.take("mbarrier::complete_tx::bytes") ||
      !modifiers.take("b128"))
    d.fail("try_cancel needs .async.mbarrier::complete_tx::bytes and .b128");
  d.expect_operands(2, 2);
  auto* detail = d.make_detail<TryCancelDetail>();
  detail->to_all = modifiers.take("multicast::cluster::all");
  const SharedForm form = modifiers.take("shared::cta") ? SharedForm::kCta : SharedForm::kGeneric;
  detail->response = shared_operand(d, 0, form);
  detail->barrier = shared_operand(d, 1, form);
  d.insn().execute = execute_try_cancel;
}

void decode_first_ctaid(Decode& d, int axis) {
  if (!d.modifiers().take("b32") || !d.modifiers().take("b128"))
    d.fail("get_first_ctaid needs .b32.b128");
  d.expect_operands(2, 2);
  const auto elements = d.elements(0);
  const bool all = axis == 3;
  if (all && !d.modifiers().take("v4")) d.fail("get_first_ctaid without an axis needs .v4");
  if (elements.size() != (all ? 4u : 1u)) d.fail("wrong number of destinations");
  for (size_t i = 0; i < elements.size(); ++i) {
    const Slot slot = d.destination(*elements[i], Type::kB32);
    if (i < 3) d.insn().slot[i] = slot;  // the fourth is unspecified
  }
  d.insn().slot[4] = d.source(1, Type::kB128);
  d.insn().imm = static_cast<uint64_t>(axis);
  d.insn().execute = execute_first_ctaid;
}

void decode_clc(Decode& d) {
  Modifiers& modifiers = d.modifiers();
  if (modifiers.take("try_cancel")) return decode_try_cancel(d);
  if (!modifiers.take("query_cancel")) d.fail("needs .try_cancel or .query_cancel");
  if (!modifiers.take("is_canceled")) {
    const int axis = modifiers.take_one_of(
        {"get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z", "get_first_ctaid"});
    if (axis < 0) d.fail("needs .is_canceled or .get_first_ctaid");
    return decode_first_ctaid(d, axis);
  }
  if (!modifiers.take("pred") || !modifiers.take("b128")) d.fail("is_canceled needs .pred.b128");
  d.expect_operands(2, 2);
  d.insn().slot[0] = d.destination(0, Type::kPred);
  d.insn().slot[1] = d.source(1, Type::kB128);
  d.insn().execute = execute_is_canceled;
}

constexpr Form kForms[] = {{{"try_cancel"}, Traits{Trait::kWrites | Trait::kAsync}}};
constexpr Decoder kDecoders[] = {{"clusterlaunchcontrol", decode_clc, traits::kQuery, kForms}};

}  // namespace

std::span<const Decoder> decoders_clc() { return kDecoders; }

}  // namespace ptxsim
