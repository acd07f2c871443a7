// fence and membar (PTX ISA 9.0, "Parallel Synchronization and Communication Instructions:
// membar/fence"). Memory is sequentially consistent here: fences only tell observers what they
// order. A combination that the text does not have is an error.
#include <array>

#include "insn/memory/memory_order.hpp"
#include "insn/registry.hpp"
#include "insn/traits.hpp"

namespace ptxsim {
namespace {

// Insn::variant; Insn::imm is the scope.
constexpr uint8_t kReleases = 1, kAcquires = 2, kOfShared = 4, kOfGlobal = 8;

Outcome fence(Execution& x, const Insn& insn) {
  x.tell([&](Observer& o) {
    o.fence(x, static_cast<Scope>(insn.imm), (insn.variant & kReleases) != 0,
            (insn.variant & kAcquires) != 0);
  });
  return Outcome::kNext;
}

Outcome fence_proxy_async(Execution& x, const Insn& insn) {
  x.tell([&](Observer& o) {
    o.fence_proxy_async(x, x.mask, (insn.variant & kOfShared) != 0,
                        (insn.variant & kOfGlobal) != 0);
  });
  return fence(x, insn);
}

Outcome fence_mbarrier_init(Execution& x, const Insn& insn) {
  x.tell([&](Observer& o) { o.fence_mbarrier_init(x, x.mask); });
  return fence(x, insn);
}

Outcome release_tensor_maps(Execution& x, const Insn& insn) {
  x.tell([&](Observer& o) { o.tensor_maps_released(x, x.mask); });
  return fence(x, insn);
}

// fence.proxy.tensormap::generic.acquire.scope [addr], 128: the tensor map that is read from now
// on.
struct TensorMapFence final : Detail {
  Slot base;
  int64_t offset = 0;
};

Outcome fence_tensormap(Execution& x, const Insn& insn) {
  const auto& a = static_cast<const TensorMapFence&>(*insn.detail);
  const Outcome outcome = fence(x, insn);
  x.for_lanes([&](int lane) {
    constexpr uint32_t kTensorMapBytes = 128, kTensorMapAlignment = 64;
    const uint64_t address = x.source<uint64_t>(a.base)[lane] + static_cast<uint64_t>(a.offset);
    locate(x, {}, address, kTensorMapBytes, kTensorMapAlignment, lane);
    x.tell([&](Observer& o) { o.tensor_map_acquired(x, lane, address); });
  });
  return outcome;
}

// Orders nothing that is modelled: aliases of addresses.
Outcome nothing(Execution&, const Insn&) { return Outcome::kNext; }

void set_scope(Decode& d, Scope scope) { d.insn().imm = static_cast<uint64_t>(scope); }

void decode_tensormap(Decode& d) {
  auto& m = d.modifiers();
  const int side = m.take_one_of({"release", "acquire"});
  const std::optional<Scope> scope = take_scope(d);
  if (side < 0 || !scope)
    d.fail("fence.proxy.tensormap::generic needs .release or .acquire, and a scope");
  set_scope(d, *scope);
  if (side == 0) {
    d.expect_operands(0, 0);
    d.insn().variant = kReleases;
    d.insn().execute = release_tensor_maps;
    return;
  }
  d.expect_operands(2, 2);
  if (d.immediate(1) != 128u) d.fail("the size must be the literal 128");
  const Decode::Address address = d.address(0);
  if (address.base_bytes != 8 || !address.more.empty()) d.fail("a generic address is needed here");
  auto* detail = d.make_detail<TensorMapFence>();
  detail->base = address.base;
  detail->offset = address.offset;
  d.insn().variant = kAcquires;
  d.insn().execute = fence_tensormap;
}

// .sync_restrict: the acquiring side restricts to shared::cluster, the releasing one to
// shared::cta. Gives the side that the fence has, or 0 when there is no .sync_restrict.
uint8_t take_restricted_side(Decode& d) {
  auto& m = d.modifiers();
  const int restricted =
      m.take_one_of({"sync_restrict::shared::cta", "sync_restrict::shared::cluster"});
  if (restricted < 0) return 0;
  const bool matches = m.take(restricted == 0 ? "release" : "acquire");
  if (!matches || !m.take("cluster"))
    d.fail(
        "must be .release.sync_restrict::shared::cta.cluster or "
        ".acquire.sync_restrict::shared::cluster.cluster");
  set_scope(d, Scope::kCluster);
  return restricted == 0 ? kReleases : kAcquires;
}

void decode_proxy(Decode& d) {
  auto& m = d.modifiers();
  if (m.take("tensormap::generic")) return decode_tensormap(d);
  d.expect_operands(0, 0);
  if (m.take("async::generic")) {
    d.insn().variant = take_restricted_side(d);
    if (d.insn().variant == 0) d.fail("fence.proxy.async::generic needs .sync_restrict");
    d.insn().variant |= kOfShared;
    d.insn().execute = fence_proxy_async;
    return;
  }
  if (m.take("alias")) {
    d.insn().execute = nothing;
    return;
  }
  if (!m.take("async")) d.fail("fence.proxy needs .alias, .async, or a pair of proxies");
  const int space = m.take_one_of({"global", "shared::cta", "shared::cluster"});
  d.insn().variant = space < 0 ? kOfShared | kOfGlobal : space == 0 ? kOfGlobal : kOfShared;
  d.insn().execute = fence_proxy_async;
}

void decode_fence(Decode& d) {
  auto& m = d.modifiers();
  if (m.take("proxy")) return decode_proxy(d);
  d.expect_operands(0, 0);
  if (m.take("mbarrier_init")) {
    if (!m.take("release") || !m.take("cluster"))
      d.fail("fence.mbarrier_init has the form .release.cluster only");
    d.insn().variant = kReleases;
    set_scope(d, Scope::kCluster);
    d.insn().execute = fence_mbarrier_init;
    return;
  }
  d.insn().execute = fence;
  if ((d.insn().variant = take_restricted_side(d)) != 0) return;
  constexpr uint8_t kSides[] = {kReleases | kAcquires, kReleases | kAcquires, kAcquires, kReleases};
  const int sem = m.take_one_of({"sc", "acq_rel", "acquire", "release"});
  d.insn().variant = sem < 0 ? kReleases | kAcquires : kSides[sem];
  const std::optional<Scope> scope = take_scope(d);
  if (!scope) d.fail("fence needs a scope: .cta, .cluster, .gpu or .sys");
  set_scope(d, *scope);
}

void decode_membar(Decode& d) {
  if (d.modifiers().take("proxy")) return decode_proxy(d);
  d.expect_operands(0, 0);
  const int level = d.modifiers().take_one_of({"cta", "gl", "sys"});
  if (level < 0) d.fail("membar needs .cta, .gl, .sys or .proxy");
  constexpr Scope kScopes[] = {Scope::kCta, Scope::kGpu, Scope::kSys};
  set_scope(d, kScopes[level]);
  d.insn().variant = kReleases | kAcquires;
  d.insn().execute = fence;
}

// A fence that is left out must be noticed; membar, which older compilers write, has no mutant.
constexpr Traits kFence = traits::kFence.with(Mutants::kFence);
constexpr Form kFenceForms[] = {
    {{"sc"}, kFence.with(Trait::kScFence)},
    {{"mbarrier_init"}, traits::kFence.with(Mutants::kMbarrierInitFence)},
    {{"proxy"}, kFence},
    {{"proxy", "tensormap::generic"}, kFence.with(Trait::kTensorMap)}};
constexpr Form kMembarForms[] = {{{"proxy"}, traits::kFence}};
constexpr Decoder kDecoders[] = {
    {"fence", decode_fence, kFence, kFenceForms},
    {"membar", decode_membar, traits::kFence.with(Trait::kScFence), kMembarForms}};

}  // namespace

std::span<const Decoder> decoders_fence() { return kDecoders; }

}  // namespace ptxsim
