#include "insn/memory/memory.hpp"

#include <algorithm>

#include "insn/registry.hpp"
#include "insn/traits.hpp"

namespace ptxsim {
namespace {

constexpr Traits kLd = traits::kLoad.with(ResultFrom::kMemory).with(OperandTypes::kOne);
// Nothing races in these spaces, so that observers are not told of such loads.
constexpr Traits kLdUnraced =
    Traits{Trait::kReads}.with(ResultFrom::kMemory).with(OperandTypes::kOne);
constexpr Form kLdForms[] = {{{"param"}, kLdUnraced},
                             {{"const"}, kLdUnraced},
                             {{"relaxed"}, kLd.with(Trait::kStrong)},
                             {{"volatile"}, kLd.with(Trait::kStrong)},
                             {{"acquire"}, kLd.with(Trait::kStrong)},
                             {{"nc"}, kLd.with(Trait::kNonCoherent)}};

constexpr Traits kSt = traits::kStore.with(Trait::kSeesUndefined).with(OperandTypes::kOne);
constexpr Traits kStAsync = traits::kAsyncStore.with(OperandTypes::kOne);
constexpr Form kStForms[] = {{{"relaxed"}, kSt.with(Trait::kStrong)},
                             {{"volatile"}, kSt.with(Trait::kStrong)},
                             {{"release"}, kSt.with(Trait::kStrong)},
                             {{"bulk"}, traits::kStore.with(OperandTypes::kOne)},
                             {{"async"}, kStAsync},
                             {{"async", "release"}, kStAsync.with(Trait::kStrong)}};

constexpr Form kRedForms[] = {{{"async"}, traits::kAsyncUpdate},
                              {{"async", "release"}, traits::kAsyncUpdate.with(Trait::kStrong)}};

constexpr Form kPrefetchForms[] = {{{"tensormap"}, traits::kPrefetch.with(Trait::kTensorMap)}};

constexpr Decoder kDecoders[] = {{"ld", decode_ld, kLd, kLdForms},
                                 {"ldu", decode_ldu, traits::kLoad.with(Trait::kNonCoherent)},
                                 {"st", decode_st, kSt, kStForms},
                                 {"atom", decode_atom, traits::kAtomic},
                                 {"red", decode_red, traits::kAtomic, kRedForms},
                                 {"prefetch", decode_prefetch, traits::kPrefetch, kPrefetchForms},
                                 {"prefetchu", decode_prefetchu, traits::kPrefetch},
                                 {"discard", decode_discard, traits::kHint},
                                 {"applypriority", decode_applypriority, traits::kHint},
                                 {"createpolicy", decode_createpolicy, traits::kQuery}};

}  // namespace

std::span<const Decoder> decoders_memory() { return kDecoders; }

uint64_t SectorCounter::bytes() {
  const auto end = sectors_.begin() + count_;
  if (!std::is_sorted(sectors_.begin(), end)) std::sort(sectors_.begin(), end);
  return kSectorBytes *
         static_cast<uint64_t>(std::unique(sectors_.begin(), end) - sectors_.begin());
}

void check_async_release(Decode& d, Scope scope) {
  d.modifiers().take("async");
  if (scope != Scope::kGpu && scope != Scope::kSys)
    d.fail("an asynchronous release has the scope .gpu or .sys");
}

AddressSpace take_space(Decode& d) {
  switch (d.modifiers().take_one_of({"const", "global", "local", "param", "param::entry", "shared",
                                     "shared::cta", "shared::cluster", "param::func"})) {
    case 0:
      return {Space::kConst, true};
    case 1:
      return {Space::kGlobal, true};
    case 2:
      return {Space::kLocal, true};
    case 3:  // PTX ISA, "ld": of the function when it is in one, else of the entry
      return {d.function() != nullptr ? Space::kLocal : Space::kParam, true};
    case 4:
      return {Space::kParam, true};
    case 5:
    case 6:
      return {Space::kShared, true};
    case 7:
      return {Space::kShared, false};
    case 8:
      return {Space::kLocal, true};
    default:
      return {Space::kGeneric, false};
  }
}

AddressOperand take_address(Decode& d, const Operand& operand, AddressSpace space) {
  const Decode::Address address = d.address(operand);
  if (!address.more.empty()) d.fail("an address of one part is needed here");
  if (space.space == Space::kGeneric && address.variable != nullptr &&
      address.variable->space != Space::kGlobal)
    d.fail("the name of variable " + address.variable->name +
           " is no generic address; name its state space");
  // Parameters of functions and of calls lie in the thread's frame.
  if (address.variable != nullptr && address.variable->in_frame) space.space = Space::kLocal;
  return {space, address.base, address.base_bytes, address.offset};
}

uint32_t take_vector(Decode& d) {
  switch (d.modifiers().take_one_of({"v2", "v4", "v8"})) {
    case 0:
      return 2;
    case 1:
      return 4;
    case 2:
      return 8;
    default:
      return 1;
  }
}

void take_cache_policy(Decode& d, size_t index) {
  const bool has_hint = d.modifiers().take("L2::cache_hint");
  d.expect_operands(index + (has_hint ? 1 : 0), index + (has_hint ? 1 : 0));
  if (has_hint) d.source(index, Type::kB64);
}

}  // namespace ptxsim
