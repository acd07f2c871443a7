// cvt (PTX ISA 9.0, "cvt", "cvt.pack"): modifiers and types, handed to the scalar or packed form.
// Not modelled: .rs (stochastic rounding; PTX shows the use of its random bits in figures alone)
// and .s2f6x2.
#include "insn/alu/cvt.hpp"

#include <fmt/format.h>

#include "insn/registry.hpp"
#include "insn/traits.hpp"

namespace ptxsim {

std::optional<Format> format_of(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kF16x2:
      return Format::kF16;
    case Type::kBf16:
    case Type::kBf16x2:
      return Format::kBf16;
    case Type::kF32:
      return Format::kF32;
    case Type::kTf32:
      return Format::kTf32;
    case Type::kE4m3x2:
      return Format::kE4m3;
    case Type::kE5m2x2:
      return Format::kE5m2;
    case Type::kE2m1x2:
      return Format::kE2m1;
    case Type::kE2m3x2:
      return Format::kE2m3;
    case Type::kE3m2x2:
      return Format::kE3m2;
    case Type::kUe8m0x2:
      return Format::kUe8m0;
    default:
      return std::nullopt;
  }
}

unsigned elements_of(Type type) {
  switch (type) {
    case Type::kF16x2:
    case Type::kBf16x2:
    case Type::kE4m3x2:
    case Type::kE5m2x2:
    case Type::kE2m1x2:
    case Type::kE2m3x2:
    case Type::kE3m2x2:
    case Type::kUe8m0x2:
      return 2;
    case Type::kE4m3x4:
    case Type::kE5m2x4:
    case Type::kE2m1x4:
    case Type::kE2m3x4:
    case Type::kE3m2x4:
      return 4;
    default:
      return 1;
  }
}

namespace {

void decode_cvt(Decode& d) {
  if (d.modifiers().take("pack")) return decode_cvt_pack(d);
  Conversion how;
  const int integral = d.modifiers().take_one_of({"rni", "rzi", "rmi", "rpi"});
  const int rounding =
      d.modifiers().take_one_of({"rn", "rz", "rm", "rp", "rna"});  // in the order of Rounding
  if (integral >= 0 && rounding >= 0)
    d.fail("an integer rounding and a floating-point rounding exclude each other");
  how.integral = integral >= 0;
  how.has_rounding = integral >= 0 || rounding >= 0;
  if (how.has_rounding) how.rounding = static_cast<Rounding>(integral >= 0 ? integral : rounding);
  how.ftz = d.modifiers().take("ftz");
  how.sat = d.modifiers().take("sat");
  how.relu = d.modifiers().take("relu");
  how.satfinite = d.modifiers().take("satfinite");
  const bool is_stochastic = d.modifiers().take("rs");
  how.to = d.modifiers().take_type();
  how.from = d.modifiers().take_type();
  if (how.from == Type::kNone) d.fail("cvt needs two types, of the destination and of the source");
  if (is_stochastic) return decode_cvt_stochastic(d, how);
  if (how.to == Type::kTf32 || elements_of(how.to) > 1) return decode_cvt_packed(d, how);
  if (how.rounding == Rounding::kNearestAway) d.fail(".rna is known for .tf32 alone");
  decode_cvt_scalar(d, how);
}

}  // namespace

std::span<const Decoder> decoders_convert() {
  static constexpr Decoder kDecoders[] = {
      {"cvt", decode_cvt,
       traits::kComputing.with(ResultFrom::kOperand).with(OperandTypes::kNamed)}};
  return kDecoders;
}

}  // namespace ptxsim
