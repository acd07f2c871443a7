// tcgen05.commit: one arrival at an mbarrier when all earlier mma, cp and shift of the executing
// thread are complete (PTX ISA 9.0, "TensorCore 5th Generation Async Synchronization Operations").
// It includes tcgen05.fence::before_thread_sync.
#include <fmt/format.h>

#include <bit>

#include "insn/tensor/tcgen05.hpp"
#include "machine/memory/mbarrier.hpp"

namespace ptxsim {
namespace {

struct CommitDetail : Detail {
  uint32_t cta_group = 1;
  SharedOperand barrier;
  bool is_multicast = false;
};

// An object that has been invalidated since: the arrival has no effect. What the commit stood for
// was waited for by another one, or other rules report it (Triton's attention for sm_100 ends so).
void arrive_at(Cta& cta, uint32_t offset, uint32_t number, AsyncOp op) {
  const auto found = cta.mbarriers.find(offset);
  if (found == cta.mbarriers.end() || found->second.number != number) return;
  Mbarrier& barrier = mbarrier_at(cta, offset);
  if (op) cta.cluster.observers.tell([&](Observer& o) { o.arrives_at(op, true, barrier, -1); });
  mbarrier_arrive(cta, offset, 1);
  cta.cluster.changed();
}

// The CTAs whose barrier the commit arrives at.
std::vector<Cta*> destinations(const Execution& x, const CommitDetail& detail, Cta* owner,
                               uint16_t mask, int lane) {
  if (!detail.is_multicast) return {owner};
  std::vector<Cta*> ctas;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto rank = static_cast<uint32_t>(std::countr_zero(left));
    if (rank >= x.cluster.ctas.size())
      x.fault(fmt::format("CTA mask 0x{:04x} of tcgen05.commit names rank {}; the cluster has {} "
                          "CTAs",
                          mask, rank, x.cluster.ctas.size()),
              lane);
    ctas.push_back(x.cluster.ctas[rank].get());
  }
  if (ctas.empty()) x.fault("CTA mask of tcgen05.commit is 0; it must name a CTA", lane);
  return ctas;
}

void commit(Execution& x, const Insn& insn, const CommitDetail& detail, int lane) {
  const uint64_t given = detail.barrier.address(x, lane);
  const uint64_t address = detail.barrier.is_generic ? shared_from_generic(x, given, lane) : given;
  const SharedAt at = resolve_shared(x, address, 8, 8, /*own_only=*/false, lane);
  const uint32_t offset = at.offset;
  const uint16_t mask = detail.is_multicast ? x.source<uint16_t>(insn.slot[0])[lane] : uint16_t{0};
  const std::vector<Cta*> ctas = destinations(x, detail, at.cta, mask, lane);
  AsyncOp op;
  if (x.is_observed()) op = x.issue(lane, AsyncKind::kTcgen05);
  std::vector<uint32_t> numbers;
  for (Cta* cta : ctas) {
    if (cta->exited)
      x.fault(fmt::format("tcgen05.commit to CTA rank {}, which has exited (R11)", cta->rank),
              lane);
    Mbarrier& barrier = mbarrier_at(*cta, offset);
    numbers.push_back(barrier.number);
    x.tell([&](Observer& o) { o.mbarrier_used(x, lane, *cta, offset, barrier, true); });
  }
  x.cluster.async.submit(channel_of(x, lane), [ctas, numbers, offset, op] {
    for (size_t i = 0; i < ctas.size(); ++i) arrive_at(*ctas[i], offset, numbers[i], op);
  });
}

Outcome execute_commit(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const CommitDetail&>(*insn.detail);
  ctas_of(x, detail.cta_group, "tcgen05.commit");
  x.for_lanes([&](int lane) { commit(x, insn, detail, lane); });
  return Outcome::kNext;
}

}  // namespace

void decode_tcgen05_commit(Decode& d) {
  auto* detail = d.make_detail<CommitDetail>();
  detail->cta_group = take_cta_group(d);
  Modifiers& m = d.modifiers();
  if (!m.take("mbarrier::arrive::one")) d.fail("tcgen05.commit needs .mbarrier::arrive::one");
  if (!m.take("b64")) d.fail("tcgen05.commit needs .b64");
  detail->is_multicast = m.take("multicast::cluster");
  const bool is_shared = m.take("shared::cluster");
  d.expect_operands(detail->is_multicast ? 2 : 1, detail->is_multicast ? 2 : 1);
  detail->barrier = shared_operand(d, 0, !is_shared);
  if (detail->is_multicast) d.insn().slot[0] = d.source(1, Type::kB16);
  d.insn().execute = execute_commit;
}

}  // namespace ptxsim
