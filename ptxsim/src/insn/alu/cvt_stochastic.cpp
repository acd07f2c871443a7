// cvt.rs.bf16x2.f32 and cvt.rs.f16x2.f32 (PTX ISA 9.0, "cvt": .rs and rbits): random bits are added
// to the bits of the mantissa that the destination has no place for, and a carry makes the result
// the next one away from zero. bf16 takes 16 of them, f16 13: a's from the upper half of the third
// source, b's from the lower one. What the manual leaves open is refused when it is met: results
// of f16 below 2^-14, which lose more than 13 bits, and numbers from 2^16 on without .satfinite.
// Forms of four elements are not modelled: which of them share which bits, figures show alone.
#include <fmt/format.h>

#include "insn/alu/cvt.hpp"
#include "insn/alu/float_values.hpp"
#include "machine/execution.hpp"

namespace ptxsim {
namespace {

constexpr uint32_t kInfinityF32 = 0x7f800000u;

// Magnitudes in and out; a code that has reached that of infinity is an overflow.
uint32_t bf16_of(uint32_t magnitude, uint32_t random) { return (magnitude + random) >> 16; }

uint32_t f16_of(const Execution& x, int lane, uint32_t magnitude, uint32_t random, bool satfinite) {
  constexpr uint32_t kSmallestNormal = 113u << 23, kBeyond = 143u << 23, kRebias = 112u << 10;
  const float value = std::bit_cast<float>(magnitude);
  if (magnitude < kSmallestNormal) {
    const uint32_t units = static_cast<uint32_t>(value * 0x1p24f);
    if (static_cast<float>(units) * 0x1p-24f == value) return units;  // nothing is lost
    x.fault(
        fmt::format("cvt.rs.f16x2 of 0x{:08x}: below 2^-14 the manual does not say which bits the "
                    "random ones are added to",
                    magnitude),
        lane);
  }
  if (magnitude >= kBeyond) {
    if (!satfinite)
      x.fault(
          fmt::format("cvt.rs.f16x2 of 0x{:08x}: from 2^16 on the manual does not say what becomes "
                      "infinite without .satfinite",
                      magnitude),
          lane);
    return 0x7c00;
  }
  return ((magnitude + (random & 0x1fff)) >> 13) - kRebias;
}

uint16_t convert(const Execution& x, int lane, const Conversion& how, float value,
                 uint32_t random) {
  const bool is_bf16 = how.to == Type::kBf16x2;
  const uint32_t infinity = is_bf16 ? 0x7f80 : 0x7c00;
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  if (magnitude > kInfinityF32) return kNanHalf;
  if (how.relu && bits != magnitude) return 0;
  uint32_t code = infinity;
  if (magnitude != kInfinityF32)
    code = is_bf16 ? bf16_of(magnitude, random) : f16_of(x, lane, magnitude, random, how.satfinite);
  if (code >= infinity && how.satfinite) code = infinity - 1;
  return static_cast<uint16_t>(code | (bits >> 16 & 0x8000));
}

Outcome execute(Execution& x, const Insn& insn) {
  const auto& how = *static_cast<const Conversion*>(insn.detail);
  const float* a = x.source<float>(insn.slot[1]);
  const float* b = x.source<float>(insn.slot[2]);
  const uint32_t* random = x.source<uint32_t>(insn.slot[3]);
  uint32_t* d = x.destination<uint32_t>(insn.slot[0]);
  x.for_lanes([&](int lane) {
    const uint32_t upper = convert(x, lane, how, a[lane], random[lane] >> 16);
    d[lane] = upper << 16 | convert(x, lane, how, b[lane], random[lane] & 0xffff);
  });
  return Outcome::kNext;
}

}  // namespace

void decode_cvt_stochastic(Decode& d, const Conversion& given) {
  if (given.from != Type::kF32 || (given.to != Type::kBf16x2 && given.to != Type::kF16x2))
    d.fail(fmt::format("cvt.rs of .{} from .{} is not modelled: .bf16x2 and .f16x2 from .f32 are",
                       name_of(given.to), name_of(given.from)));
  if (given.has_rounding || given.ftz || given.sat)
    d.fail("cvt.rs has no other rounding, no .ftz and no .sat");
  d.make_detail<Conversion>(given);
  d.expect_operands(4, 4);
  d.insn().slot[0] = d.destination(0, Type::kB32);
  if (!d.insn().slot[0].present()) d.fail("cvt needs a destination; '_' is not one");
  d.insn().slot[1] = d.source(1, Type::kF32);
  d.insn().slot[2] = d.source(2, Type::kF32);
  d.insn().slot[3] = d.source(3, Type::kB32);
  d.insn().execute = execute;
}

}  // namespace ptxsim
