// tcgen05: the root and what its instructions share (PTX ISA 9.0, "TensorCore 5th Generation Family
// Instructions"). Not modelled: K = 96, tcgen05.shift and .ashift.
#include "insn/tensor/tcgen05.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "insn/registry.hpp"
#include "insn/traits.hpp"

namespace ptxsim {
namespace {

void decode_tcgen05(Decode& d) {
  Modifiers& m = d.modifiers();
  switch (m.take_one_of({"alloc", "dealloc", "relinquish_alloc_permit", "mma", "cp", "commit", "ld",
                         "st", "wait::ld", "wait::st", "fence::before_thread_sync",
                         "fence::after_thread_sync", "shift"})) {
    case 0:
      return decode_tcgen05_alloc(d);
    case 1:
      return decode_tcgen05_dealloc(d);
    case 2:
      return decode_tcgen05_relinquish(d);
    case 3:
      return decode_tcgen05_mma(d);
    case 4:
      return decode_tcgen05_cp(d);
    case 5:
      return decode_tcgen05_commit(d);
    case 6:
      return decode_tcgen05_ld(d);
    case 7:
      return decode_tcgen05_st(d);
    case 8:
      return decode_tcgen05_wait(d, true);
    case 9:
      return decode_tcgen05_wait(d, false);
    case 10:
      return decode_tcgen05_fence(d, false);
    case 11:
      return decode_tcgen05_fence(d, true);
    case 12:
      d.fail("tcgen05.shift is not modelled");
    default:
      d.fail("tcgen05 without an operation that is known");
  }
}

Outcome execute_fence(Execution& x, const Insn& insn) {
  x.tell([&](Observer& o) { o.fence_tcgen05(x, x.mask, insn.variant != 0); });
  return Outcome::kNext;
}

constexpr Traits kAsyncMove = traits::kTensorMemory.with(Trait::kAsync);
constexpr Traits kOrder{Trait::kFence};
constexpr Form kForms[] = {
    {{"alloc"},  // and writes the address to shared memory
     traits::kTensorMemory.with(Trait::kWrites)
         .with(TensorWork::kAllocate)
         .with(Mutants::kTensorAlloc)},
    {{"dealloc"}, traits::kTensorMemory.with(Mutants::kTensorAlloc)},
    {{"mma"},
     traits::kMultiplication.with(Trait::kAsync).with(TensorWork::kMma).with(Mutants::kTensorMma)},
    {{"cp"}, kAsyncMove.with(TensorWork::kCopy).with(Mutants::kTensorCopy)},
    {{"commit"},
     traits::kGroup.with(Trait::kAsync).with(TensorWork::kCommit).with(Mutants::kTensorCommit)},
    {{"ld"}, kAsyncMove.with(TensorWork::kLoad)},
    {{"st"}, kAsyncMove},
    {{"wait::ld"}, traits::kGroup.with(Mutants::kTensorWaitLoad)},
    {{"wait::st"}, traits::kGroup.with(Mutants::kTensorWaitStore)},
    {{"fence::before_thread_sync"}, kOrder.with(Mutants::kTensorFence)},
    {{"fence::after_thread_sync"}, kOrder.with(Mutants::kTensorFence)}};
constexpr Decoder kDecoders[] = {{"tcgen05", decode_tcgen05, traits::kTensorMemory, kForms}};

}  // namespace

std::span<const Decoder> decoders_tcgen05() { return kDecoders; }

void decode_tcgen05_fence(Decode& d, bool after_thread_sync) {
  d.expect_operands(0, 0);
  d.insn().variant = after_thread_sync ? 1 : 0;
  d.insn().execute = execute_fence;
}

uint32_t take_cta_group(Decode& d) {
  const int group = d.modifiers().take_one_of({"cta_group::1", "cta_group::2"});
  if (group < 0) d.fail("tcgen05 needs .cta_group::1 or .cta_group::2");
  const char* other = group == 0 ? "cta_group::2" : "cta_group::1";
  for (const Statement& statement : d.entry().statements)
    if (statement.root == "tcgen05" &&
        std::find(statement.modifiers.begin(), statement.modifiers.end(), other) !=
            statement.modifiers.end())
      d.fail(
          fmt::format(".cta_group::{} here and .{} in line {}; all tcgen05 instructions of a "
                      "kernel must have the same",
                      group + 1, other, statement.line));
  return static_cast<uint32_t>(group + 1);
}

Cta& peer_of(const Execution& x, const char* what) {
  const uint32_t rank = x.cta.rank ^ 1;
  if (rank >= x.cluster.ctas.size())
    x.fault(
        fmt::format("{} with cta_group::2 in CTA rank {} of a cluster of {}; there is no other "
                    "CTA of the pair",
                    what, x.cta.rank, x.cluster.ctas.size()));
  Cta& peer = *x.cluster.ctas[rank];
  if (peer.exited)
    x.fault(
        fmt::format("{} with cta_group::2 after the other CTA of the pair, rank {}, has exited "
                    "(R11)",
                    what, rank));
  return peer;
}

std::vector<Cta*> ctas_of(const Execution& x, uint32_t cta_group, const char* what) {
  if (cta_group == 1) return {&x.cta};
  Cta& peer = peer_of(x, what);
  if ((x.cta.rank & 1) != 0)
    x.fault(
        fmt::format("{} with cta_group::2 issued by CTA rank {}; only issue from the even CTA "
                    "of a pair is modelled",
                    what, x.cta.rank));
  return {&x.cta, &peer};
}

uint64_t channel_of(const Execution& x, int lane) {
  uint64_t& channel = x.cta.state<Tcgen05State>().channels[x.thread_of(lane)];
  if (channel == 0) channel = x.cluster.async.new_channel();
  return channel;
}

TmemOperand tmem_operand(Decode& d, size_t index) {
  if (d.operand(index).kind != Operand::Kind::kAddress)
    d.fail(fmt::format("operand {} must be an address in tensor memory, [taddr]", index + 1));
  const Decode::Address address = d.address(index);
  if (address.variable != nullptr || address.base_bytes != 4 || !address.more.empty())
    d.fail("an address in tensor memory is one 32-bit register, and a constant if need be");
  return {address.base, static_cast<uint32_t>(address.offset)};
}

// A 32-bit register without a state space holds a shared::cluster address: kernels that are known
// to run write commit this way.
SharedOperand shared_operand(Decode& d, size_t index, bool is_generic) {
  const Decode::Address address = d.address(index);
  return {address.base, address.base_bytes, address.offset, is_generic && address.base_bytes == 8};
}

uint64_t SharedOperand::address(const Execution& x, int lane) const {
  const uint64_t value =
      base_bytes == 8 ? x.source<uint64_t>(base)[lane] : x.source<uint32_t>(base)[lane];
  return value + static_cast<uint64_t>(offset);
}

void Tcgen05State::cta_exits(Cta& cta) {
  const uint32_t columns = cta.tmem ? cta.tmem->allocated_columns() : 0;
  if (columns != 0)
    throw Fault(
        fmt::format("CTA rank {} exits with {} columns of tensor memory allocated; all "
                    "must be deallocated (R9)",
                    cta.rank, columns));
  if (!cta.machine.options().sanitize) return;
  for (uint32_t buffer = 0; buffer < fills.size(); ++buffer) {
    const std::optional<CollectorFill>& fill = fills[buffer];
    if (!fill || fill->used) continue;
    const std::string name = name_of_collector(buffer);
    cta.machine.reports().add(
        {.rule = 15,
         .severity = Severity::kWarning,
         .message = fmt::format("{}::fill whose matrix {} no later instruction uses", name,
                                buffer == 0 ? 'A' : 'B'),
         .place = cta.machine.place_of(fill->statement),
         .actor = fmt::format("CTA rank {}", cta.rank),
         .other = {},
         .missing = {},
         .fix =
             fmt::format("use the matrix with {}::use or lastuse, or leave the modifier out", name),
         .statement = static_cast<int>(fill->statement)});
  }
}

}  // namespace ptxsim
