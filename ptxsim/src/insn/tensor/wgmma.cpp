// wgmma.fence, wgmma.commit_group, wgmma.wait_group.
#include "insn/tensor/wgmma.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "insn/registry.hpp"
#include "insn/traits.hpp"
#include "machine/registers/owned.hpp"

namespace ptxsim {
namespace {

WgmmaState::Group& group_of(Execution& x) {
  return x.cta.state<WgmmaState>().groups[x.warp.index / kWarpgroupWarps];
}
WgmmaState::PerWarp& warp_of(Execution& x) {
  return group_of(x).warps[x.warp.index % kWarpgroupWarps];
}

Outcome fence(Execution& x, const Insn&) {
  warp_of(x).fenced = true;
  x.tell([&](Observer& o) { o.fence_wgmma(x, x.mask); });
  x.warp.unfenced.clear();
  return Outcome::kNext;
}

Outcome commit_group(Execution& x, const Insn&) {
  WgmmaState::PerWarp& warp = warp_of(x);
  warp.groups.push_back(warp.issued);
  x.tell([&](Observer& o) { o.group_committed(x, x.mask, AsyncKind::kWgmma); });
  return Outcome::kNext;
}

// Waits until at most insn.imm of the latest groups are incomplete.
Outcome wait_group(Execution& x, const Insn& insn) {
  WgmmaState::Group& group = group_of(x);
  WgmmaState::PerWarp& warp = warp_of(x);
  if (warp.groups.size() <= insn.imm) return Outcome::kNext;
  const uint64_t bound = warp.groups[warp.groups.size() - 1 - insn.imm];
  if (bound == 0) return Outcome::kNext;
  if (!group.operations[bound - 1]->done)
    return x.block(
        {.kind = WaitInfo::Kind::kAsync,
         .cta_rank = x.cta.rank,
         .what = "wgmma.wait_group: an operation that is in flight, or that another warp of the "
                 "warpgroup has not issued"});
  for (; warp.released < bound; ++warp.released) {
    release_owned(x, wgmma_owner(warp.released));
    for (const AsyncOp op : group.operations[warp.released]->ops)
      x.tell([&](Observer& o) { o.waited_for(x, x.mask, op, false); });
  }
  return Outcome::kNext;
}

void decode_wgmma(Decode& d) {
  Modifiers& m = d.modifiers();
  const int form = m.take_one_of({"mma_async", "fence", "commit_group", "wait_group"});
  if (form < 0) d.fail("wgmma needs .mma_async, .fence, .commit_group or .wait_group");
  if (!m.take("sync") || !m.take("aligned")) d.fail("wgmma needs .sync.aligned");
  d.require_aligned();
  if (form == 0) return decode_wgmma_mma(d);
  static constexpr Handler kHandlers[] = {nullptr, fence, commit_group, wait_group};
  d.insn().execute = kHandlers[form];
  d.expect_operands(form == 3 ? 1 : 0, form == 3 ? 1 : 0);
  if (form != 3) return;
  const std::optional<uint64_t> count = d.immediate(0);
  if (!count) d.fail("wgmma.wait_group needs a number");
  d.insn().imm = *count;
}

constexpr Form kForms[] = {
    {{"mma_async"}, traits::kMultiplication.with(Trait::kAsync).with(Mutants::kWgmma)},
    {{"fence"}, Traits{Trait::kFence}.with(Mutants::kWgmmaFence)},
    {{"commit_group"}, traits::kGroup.with(Mutants::kWgmmaCommit)},
    {{"wait_group"}, traits::kGroup.with(Mutants::kWgmmaWait)}};
constexpr Decoder kDecoders[] = {{"wgmma", decode_wgmma, traits::kMultiplication, kForms}};

}  // namespace

std::span<const Decoder> decoders_wgmma() { return kDecoders; }

}  // namespace ptxsim
