// Exchange within a warp: shfl.sync, vote.sync, match.sync, elect.sync, activemask (PTX
// ISA 9.0, "Data Movement and Conversion Instructions: shfl.sync"; "Parallel Synchronization and
// Communication Instructions: vote.sync", "match.sync", "elect.sync", "activemask").
//
// The machine runs these handlers with just the lanes of the member mask that have not exited, and
// reports members that never come (R12). None of them orders memory.
#include <array>
#include <bit>

#include "insn/alu/shfl_vote_match.hpp"
#include "insn/registry.hpp"
#include "insn/traits.hpp"
#include "machine/execution.hpp"
#include "ptxsim/machine/memory.hpp"

namespace ptxsim {
namespace {

enum class ShuffleMode : uint8_t { kUp, kDown, kButterfly, kIndexed };

struct Source {
  int lane;
  bool in_range;
};

// "shfl.sync", Semantics. `c`: clamp in bits 4-0, segment mask in bits 12-8.
Source source_lane(ShuffleMode mode, int lane, uint32_t b, uint32_t c) {
  const int offset = static_cast<int>(b & 31), clamp = static_cast<int>(c & 31);
  const int segment = static_cast<int>(c >> 8 & 31);
  const int most = (lane & segment) | (clamp & ~segment);
  int from = 0;
  switch (mode) {
    case ShuffleMode::kUp:
      from = lane - offset;
      break;
    case ShuffleMode::kDown:
      from = lane + offset;
      break;
    case ShuffleMode::kButterfly:
      from = lane ^ offset;
      break;
    case ShuffleMode::kIndexed:
      from = (lane & segment) | (offset & ~segment);
      break;
  }
  const bool in_range = mode == ShuffleMode::kUp ? from >= most : from <= most;
  return {in_range ? from : lane, in_range};
}

// Slots: d, a, b, c, p.
Outcome shuffle(Execution& x, const Insn& insn) {
  const auto mode = static_cast<ShuffleMode>(insn.variant);
  std::array<uint32_t, kWarpSize> value;
  const uint32_t* a = x.source<uint32_t>(insn.slot[1]);
  const uint32_t* b = x.source<uint32_t>(insn.slot[2]);
  const uint32_t* c = x.source<uint32_t>(insn.slot[3]);
  uint32_t in_range = 0;
  x.for_lanes([&](int lane) {
    const Source source = source_lane(mode, lane, b[lane], c[lane]);
    // The value of a lane that does not take part is undefined: a NaN pattern stands for it.
    value[lane] = (x.mask >> source.lane & 1) != 0 ? a[source.lane] : kPoisonWord;
    in_range |= static_cast<uint32_t>(source.in_range) << lane;
  });
  if (insn.slot[0].present()) {
    uint32_t* d = x.destination<uint32_t>(insn.slot[0]);
    x.for_lanes([&](int lane) { d[lane] = value[lane]; });
  }
  x.set_predicate(insn.slot[4], in_range);
  return Outcome::kNext;
}

enum class VoteMode : uint8_t { kAll, kAny, kUniform, kBallot };

Outcome vote(Execution& x, const Insn& insn) {
  const uint32_t yes = x.predicate(insn.slot[1], insn.family != 0) & x.mask;
  bool result = false;
  switch (static_cast<VoteMode>(insn.variant)) {
    case VoteMode::kAll:
      result = yes == x.mask;
      break;
    case VoteMode::kAny:
      result = yes != 0;
      break;
    case VoteMode::kUniform:
      result = yes == x.mask || yes == 0;
      break;
    case VoteMode::kBallot: {
      uint32_t* d = x.destination<uint32_t>(insn.slot[0]);
      x.for_lanes([&](int lane) { d[lane] = yes; });
      return Outcome::kNext;
    }
  }
  x.set_predicate(insn.slot[0], result ? 0xffffffffu : 0);
  return Outcome::kNext;
}

template <class T>
Outcome match_any(Execution& x, const Insn& insn) {
  const T* a = x.source<T>(insn.slot[1]);
  std::array<uint32_t, kWarpSize> equal{};
  x.for_lanes([&](int lane) {
    x.for_lanes(
        [&](int other) { equal[lane] |= static_cast<uint32_t>(a[other] == a[lane]) << other; });
  });
  uint32_t* d = x.destination<uint32_t>(insn.slot[0]);
  x.for_lanes([&](int lane) { d[lane] = equal[lane]; });
  return Outcome::kNext;
}

template <class T>
Outcome match_all(Execution& x, const Insn& insn) {
  const T* a = x.source<T>(insn.slot[1]);
  bool same = true;
  x.for_lanes([&](int lane) { same = same && a[lane] == a[x.first_lane()]; });
  if (insn.slot[0].present()) {
    uint32_t* d = x.destination<uint32_t>(insn.slot[0]);
    x.for_lanes([&](int lane) { d[lane] = same ? x.mask : 0; });
  }
  x.set_predicate(insn.slot[4], same ? 0xffffffffu : 0);
  return Outcome::kNext;
}

// The leader is the lowest lane; the text leaves the choice open but makes it deterministic.
Outcome elect(Execution& x, const Insn& insn) {
  const int leader = x.first_lane();
  if (insn.slot[0].present()) {
    uint32_t* d = x.destination<uint32_t>(insn.slot[0]);
    x.for_lanes([&](int lane) { d[lane] = static_cast<uint32_t>(leader); });
  }
  x.set_predicate(insn.slot[4], 1u << leader);
  return Outcome::kNext;
}

Outcome active_mask(Execution& x, const Insn& insn) {
  uint32_t* d = x.destination<uint32_t>(insn.slot[0]);
  x.for_lanes([&](int lane) { d[lane] = x.mask; });
  return Outcome::kNext;
}

// d, or d|p: slots 0 and 4.
void take_result_and_predicate(Decode& d, bool predicate_required) {
  const Operand& result = d.operand(0);
  if (result.kind == Operand::Kind::kPair) {
    d.insn().slot[0] = d.destination(result.parts.at(0), Type::kB32);
    d.insn().slot[4] = d.destination(result.parts.at(1), Type::kPred);
  } else if (predicate_required) {
    d.fail("needs a pair of destinations d|p");
  } else {
    d.insn().slot[0] = d.destination(result, Type::kB32);
  }
}

void decode_shfl(Decode& d) {
  d.expect_operands(5, 5);
  take_sync(d, 4);
  const int mode = d.modifiers().take_one_of({"up", "down", "bfly", "idx"});
  if (mode < 0 || !d.modifiers().take("b32"))
    d.fail("shfl needs .up, .down, .bfly or .idx, and .b32");
  take_result_and_predicate(d, false);
  d.insn().variant = static_cast<uint8_t>(mode);
  d.insn().slot[1] = d.source(1, Type::kB32);
  d.insn().slot[2] = d.source(2, Type::kB32);
  d.insn().slot[3] = d.source(3, Type::kB32);
  d.insn().execute = shuffle;
}

void decode_vote(Decode& d) {
  d.expect_operands(3, 3);
  take_sync(d, 2);
  const int mode = d.modifiers().take_one_of({"all", "any", "uni", "ballot"});
  if (mode < 0) d.fail("vote needs .all, .any, .uni or .ballot");
  const bool ballot = static_cast<VoteMode>(mode) == VoteMode::kBallot;
  if (!d.modifiers().take(ballot ? "b32" : "pred"))
    d.fail(ballot ? "vote.ballot needs .b32" : "vote needs .pred");
  d.insn().slot[0] = d.destination(0, ballot ? Type::kB32 : Type::kPred);
  require_result(d);
  d.insn().slot[1] = d.predicate(1);
  d.insn().family = d.is_negated(1);
  d.insn().variant = static_cast<uint8_t>(mode);
  d.insn().execute = vote;
}

void decode_match(Decode& d) {
  d.expect_operands(3, 3);
  take_sync(d, 2);
  const int mode = d.modifiers().take_one_of({"any", "all"});
  const int width = d.modifiers().take_one_of({"b32", "b64"});
  if (mode < 0 || width < 0) d.fail("match needs .any or .all, and .b32 or .b64");
  if (mode == 0) {
    d.insn().slot[0] = d.destination(0, Type::kB32);
    require_result(d);
    d.insn().execute = width == 0 ? match_any<uint32_t> : match_any<uint64_t>;
  } else {
    take_result_and_predicate(d, false);
    d.insn().execute = width == 0 ? match_all<uint32_t> : match_all<uint64_t>;
  }
  d.insn().slot[1] = d.source(1, width == 0 ? Type::kB32 : Type::kB64);
}

void decode_elect(Decode& d) {
  d.expect_operands(2, 2);
  take_sync(d, 1);
  take_result_and_predicate(d, true);
  d.insn().execute = elect;
}

void decode_activemask(Decode& d) {
  d.expect_operands(1, 1);
  if (!d.modifiers().take("b32")) d.fail("activemask needs .b32");
  d.insn().slot[0] = d.destination(0, Type::kB32);
  require_result(d);
  d.insn().execute = active_mask;
}

constexpr Decoder kDecoders[] = {
    {"shfl", decode_shfl, traits::kComputing},   {"vote", decode_vote, traits::kComputing},
    {"match", decode_match, traits::kComputing}, {"redux", decode_redux, traits::kComputing},
    {"elect", decode_elect, traits::kQuery},     {"activemask", decode_activemask, traits::kQuery}};

}  // namespace

void require_result(Decode& d) {
  if (!d.insn().slot[0].present()) d.fail("needs a destination register");
}

void take_sync(Decode& d, size_t operand) {
  if (!d.modifiers().take("sync"))
    d.fail("only the form with .sync and a member mask is known; the one without is deprecated");
  d.require_members(d.source(operand, Type::kU32));
}

std::span<const Decoder> decoders_warp() { return kDecoders; }

}  // namespace ptxsim
