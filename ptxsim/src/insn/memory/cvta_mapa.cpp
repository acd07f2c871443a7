// cvta, isspacep, mapa, getctarank (PTX ISA 9.0, "Data Movement and Conversion Instructions").
// Generic addresses: the windows of machine/memory.hpp; global addresses are generic ones.
// Addresses of shared memory carry the CTA's rank.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "insn/alu/lanes.hpp"
#include "insn/alu/mov.hpp"

namespace ptxsim {
namespace {

bool in_window(uint64_t address, uint64_t window) {
  return address >= window && address - window < kWindowBytes;
}

// Insn::imm: the window. Addresses of constants and parameters may already be generic ones.
uint64_t to_generic(uint64_t address, uint64_t window) {
  return in_window(address, window) ? address : address + window;
}
uint64_t from_generic(uint64_t address, uint64_t window) { return address - window; }
uint64_t unchanged(uint64_t address) { return address; }

struct NamedSpace {
  std::string_view name;
  Space space;
  uint64_t window;             // 0: global addresses are generic ones
  bool whole_cluster = false;  // shared memory of all CTAs, not the own alone
};
constexpr NamedSpace kSpaces[] = {
    {"const", Space::kConst, kConstWindow},
    {"global", Space::kGlobal, 0},
    {"local", Space::kLocal, kLocalWindow},
    {"shared", Space::kShared, kSharedWindow},
    {"shared::cta", Space::kShared, kSharedWindow},
    {"shared::cluster", Space::kShared, kSharedWindow, true},
    {"param", Space::kParam, kParamWindow},
    {"param::entry", Space::kParam, kParamWindow},
};
const NamedSpace& take_space(Decode& d) {
  for (const NamedSpace& space : kSpaces)
    if (d.modifiers().take(space.name)) return space;
  d.fail("one of .const .global .local .shared .param must be given");
}

void need_64_bits(Decode& d) {
  if (d.modifiers().take_type() != Type::kU64)
    d.fail("generic addresses have 64 bits: the type must be .u64");
}

Outcome is_in_window(Execution& x, const Insn& insn) {
  const uint64_t* a = x.source<uint64_t>(insn.slot[1]);
  uint32_t bits = 0;
  for (int lane = 0; lane < kWarpSize; ++lane)
    bits |= static_cast<uint32_t>(in_window(a[lane], insn.imm)) << lane;
  x.set_predicate(insn.slot[0], bits);
  return Outcome::kNext;
}
Outcome is_in_own_shared(Execution& x, const Insn& insn) {
  const uint64_t* a = x.source<uint64_t>(insn.slot[1]);
  uint32_t bits = 0;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const bool own = in_window(a[lane], kSharedWindow) &&
                     (a[lane] - kSharedWindow) >> kSharedRankShift == x.cta.rank;
    bits |= static_cast<uint32_t>(own) << lane;
  }
  x.set_predicate(insn.slot[0], bits);
  return Outcome::kNext;
}
// The parameters' window counts as global memory.
Outcome is_global(Execution& x, const Insn& insn) {
  const uint64_t* a = x.source<uint64_t>(insn.slot[1]);
  uint32_t bits = 0;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const bool elsewhere = in_window(a[lane], kSharedWindow) || in_window(a[lane], kLocalWindow) ||
                           in_window(a[lane], kConstWindow);
    bits |= static_cast<uint32_t>(!elsewhere) << lane;
  }
  x.set_predicate(insn.slot[0], bits);
  return Outcome::kNext;
}

constexpr uint32_t kMaxRank = 0xff;  // of an address; clusters have at most 16 CTAs

// T: type of the address. Insn::variant: the address is generic.
template <class T>
Outcome map_to_cta(Execution& x, const Insn& insn) {
  const T* address = x.source<T>(insn.slot[1]);
  const uint32_t* rank = x.source<uint32_t>(insn.slot[2]);
  T* out = x.destination<T>(insn.slot[0]);
  x.for_lanes([&](int lane) {
    if (insn.variant != 0) shared_from_generic(x, address[lane], lane);
    // A rank that the cluster does not have gives an address that nothing can use: the fault comes
    // with its use.
    const uint32_t named = std::min(rank[lane], kMaxRank);
    if (named >= x.cluster.ctas.size()) x.cluster.mapa_beyond[named] = insn.statement;
    constexpr T kRankBits = static_cast<T>(kMaxRank) << kSharedRankShift;
    out[lane] =
        static_cast<T>((address[lane] & ~kRankBits) | (static_cast<T>(named) << kSharedRankShift));
  });
  return Outcome::kNext;
}
template <class T>
Outcome rank_of_address(Execution& x, const Insn& insn) {
  const T* address = x.source<T>(insn.slot[1]);
  uint32_t* out = x.destination<uint32_t>(insn.slot[0]);
  x.for_lanes([&](int lane) {
    const uint64_t at =
        insn.variant != 0 ? shared_from_generic(x, address[lane], lane) : uint64_t{address[lane]};
    out[lane] = static_cast<uint32_t>(at >> kSharedRankShift) & 0xffu;
  });
  return Outcome::kNext;
}

// The address type of mapa and getctarank; sets Insn::variant.
Type take_address_type(Decode& d) {
  const bool generic = !d.modifiers().take("shared::cluster");
  const Type type = take_type_of(d, {Type::kU32, Type::kU64});
  if (generic && type == Type::kU32)
    d.fail("generic addresses have 64 bits: the type must be .u64");
  d.insn().variant = generic ? 1 : 0;
  return type;
}

}  // namespace

void decode_cvta(Decode& d) {
  const bool to = d.modifiers().take("to");
  const NamedSpace& space = take_space(d);
  need_64_bits(d);
  take_operands(d, Type::kU64, {Type::kU64});
  if (space.space == Space::kGlobal) {
    d.insn().execute = &each_lane<&unchanged>;
    return;
  }
  d.insn().imm = space.window;
  d.insn().execute = to ? &each_lane_imm<&from_generic> : &each_lane_imm<&to_generic>;
}

void decode_isspacep(Decode& d) {
  const NamedSpace& space = take_space(d);
  d.expect_operands(2, 2);
  d.insn().slot[0] = d.destination(0, Type::kPred);
  d.insn().slot[1] = d.source(1, Type::kU64);
  if (space.space == Space::kGlobal) {
    d.insn().execute = &is_global;
    return;
  }
  d.insn().imm = space.window;
  const bool own_only = space.space == Space::kShared && !space.whole_cluster;
  d.insn().execute = own_only ? &is_in_own_shared : &is_in_window;
}

void decode_mapa(Decode& d) {
  const Type type = take_address_type(d);
  take_operands(d, type, {type, Type::kU32});
  d.insn().execute = type == Type::kU32 ? &map_to_cta<uint32_t> : &map_to_cta<uint64_t>;
}

void decode_getctarank(Decode& d) {
  const Type type = take_address_type(d);
  take_operands(d, Type::kU32, {type});
  d.insn().execute = type == Type::kU32 ? &rank_of_address<uint32_t> : &rank_of_address<uint64_t>;
}

}  // namespace ptxsim
