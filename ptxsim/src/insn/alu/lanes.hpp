// Instructions that do the same in each lane: a plain function of the operands' values becomes a
// handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "machine/execution.hpp"
#include "ptxsim/insn/decode.hpp"

// A destination is a source's register or disjoint from it, so lanes do not depend on each other.
// (Clang finds that out when it runs.)
#if defined(__GNUC__) && !defined(__clang__)
#define PTXSIM_LANES_INDEPENDENT _Pragma("GCC ivdep")
#else
#define PTXSIM_LANES_INDEPENDENT
#endif

namespace ptxsim {

// The compilers' 128-bit integers, for products of 64 bits.
__extension__ using Uint128 = unsigned __int128;
__extension__ using Int128 = __int128;

namespace detail {

template <class Function>
struct Signature;
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Result = R;
  using Arguments = std::tuple<A...>;
};

template <auto kFunction, class Result, class... A, size_t... kIndex>
Outcome run_lanes(Execution& x, const Insn& insn, std::tuple<A...>*,
                  std::index_sequence<kIndex...>) {
  const std::tuple<const A*...> in{x.source<A>(insn.slot[kIndex + 1])...};
  Result* const out = x.destination<Result>(insn.slot[0]);
  if (x.mask == kAllLanes) {
    PTXSIM_LANES_INDEPENDENT
    for (int lane = 0; lane < kWarpSize; ++lane)
      out[lane] = kFunction(std::get<kIndex>(in)[lane]...);
  } else {
    x.for_lanes([&](int lane) { out[lane] = kFunction(std::get<kIndex>(in)[lane]...); });
  }
  return Outcome::kNext;
}

// The same with the instruction's constant Insn::imm as the function's last argument.
template <auto kFunction, class Result, class... A, size_t... kIndex>
Outcome run_lanes_imm(Execution& x, const Insn& insn, std::tuple<A...>*,
                      std::index_sequence<kIndex...>) {
  const std::tuple<const std::tuple_element_t<kIndex, std::tuple<A...>>*...> in{
      x.source<std::tuple_element_t<kIndex, std::tuple<A...>>>(insn.slot[kIndex + 1])...};
  Result* const out = x.destination<Result>(insn.slot[0]);
  const uint64_t imm = insn.imm;
  if (x.mask == kAllLanes) {
    PTXSIM_LANES_INDEPENDENT
    for (int lane = 0; lane < kWarpSize; ++lane)
      out[lane] = kFunction(std::get<kIndex>(in)[lane]..., imm);
  } else {
    x.for_lanes([&](int lane) { out[lane] = kFunction(std::get<kIndex>(in)[lane]..., imm); });
  }
  return Outcome::kNext;
}

}  // namespace detail

// Handler: slot[0] = kFunction(slot[1], slot[2], ...).
template <auto kFunction>
Outcome each_lane(Execution& x, const Insn& insn) {
  using S = detail::Signature<decltype(kFunction)>;
  using Arguments = typename S::Arguments;
  return detail::run_lanes<kFunction, typename S::Result>(
      x, insn, static_cast<Arguments*>(nullptr),
      std::make_index_sequence<std::tuple_size_v<Arguments>>());
}

// Handler: slot[0] = kFunction(slot[1], slot[2], ..., Insn::imm).
template <auto kFunction>
Outcome each_lane_imm(Execution& x, const Insn& insn) {
  using S = detail::Signature<decltype(kFunction)>;
  using Arguments = typename S::Arguments;
  return detail::run_lanes_imm<kFunction, typename S::Result>(
      x, insn, static_cast<Arguments*>(nullptr),
      std::make_index_sequence<std::tuple_size_v<Arguments> - 1>());
}

// Handler: predicate slot[0] = kFunction(slot[1], slot[2], ...).
template <auto kFunction, class... A, size_t... kIndex>
uint32_t lane_bits(Execution& x, const Insn& insn, std::tuple<A...>*,
                   std::index_sequence<kIndex...>) {
  const std::tuple<const A*...> in{x.source<A>(insn.slot[kIndex + 1])...};
  uint32_t bits = 0;
  for (int lane = 0; lane < kWarpSize; ++lane)
    bits |= static_cast<uint32_t>(kFunction(std::get<kIndex>(in)[lane]...)) << lane;
  return bits;
}
template <auto kFunction>
Outcome each_lane_predicate(Execution& x, const Insn& insn) {
  using Arguments = typename detail::Signature<decltype(kFunction)>::Arguments;
  x.set_predicate(insn.slot[0],
                  lane_bits<kFunction>(x, insn, static_cast<Arguments*>(nullptr),
                                       std::make_index_sequence<std::tuple_size_v<Arguments>>()));
  return Outcome::kNext;
}

// Takes operands d, a, b, ... into slot[0], slot[1], ...: exactly these, the destination a
// register.
void take_operands(Decode& d, Type destination, std::initializer_list<Type> sources);
// Takes the instruction's type, which must be one of `allowed`.
Type take_type_of(Decode& d, std::initializer_list<Type> allowed);
// Whether a modifier names a floating-point type: roots such as add belong to integers and floats.
bool names_float_type(const Decode& d);

}  // namespace ptxsim
