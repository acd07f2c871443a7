#include "insn/memory/memory.hpp"

#include <algorithm>

#include "insn/registry.hpp"

namespace ptxsim {
namespace {

constexpr std::array kDecoders = {Decoder{"ld", decode_ld},
                                  Decoder{"ldu", decode_ldu},
                                  Decoder{"st", decode_st},
                                  Decoder{"atom", decode_atom},
                                  Decoder{"red", decode_red},
                                  Decoder{"prefetch", decode_prefetch},
                                  Decoder{"prefetchu", decode_prefetchu},
                                  Decoder{"discard", decode_discard},
                                  Decoder{"applypriority", decode_applypriority},
                                  Decoder{"createpolicy", decode_createpolicy}};

}  // namespace

std::span<const Decoder> decoders_memory() { return kDecoders; }

void SectorCounter::add(const MemoryAt& at) {
  if (at.space != Space::kGlobal) return;
  const uint64_t sector = at.offset / kSectorBytes;
  if (count_ > 0 && sectors_[count_ - 1] == sector) return;
  sectors_[count_++] = sector;
}

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
