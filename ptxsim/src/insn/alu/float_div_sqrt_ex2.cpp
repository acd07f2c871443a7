// div, rcp, sqrt, rsqrt, ex2, lg2, sin, cos, tanh (PTX ISA 9.0, "Floating-Point Instructions").
// Results with a rounding modifier are IEEE 754's. PTX gives the .approx and .full forms an error
// bound and special cases only: here they are the value computed in double and rounded to nearest,
// which lies within every bound.
#include <string_view>

#include "insn/alu/arithmetic.hpp"
#include "insn/alu/float_decode.hpp"
#include "insn/alu/float_values.hpp"
#include "insn/alu/lanes.hpp"

namespace ptxsim {
namespace {

double f64_in(uint64_t bits) { return std::bit_cast<double>(bits); }

uint32_t f32_div(uint32_t a, uint32_t b, uint64_t modifiers) {
  const float x = f32_in(a, modifiers), y = f32_in(b, modifiers);
  return f32_out(div_rounded(x, y, rounding_of(modifiers)), static_cast<double>(x) / y, modifiers);
}
uint32_t f32_div_nearest(uint32_t a, uint32_t b, uint64_t modifiers) {
  const float x = f32_in(a, modifiers), y = f32_in(b, modifiers);
  return f32_out(x / y, static_cast<double>(x) / y, modifiers);
}
// a * (1 / b), where 1 / b is flushed to zero for |b| > 2^126.
uint32_t f32_div_approximate(uint32_t a, uint32_t b, uint64_t modifiers) {
  const float divisor = f32_in(b, modifiers);
  if (std::fabs(divisor) <= 0x1p126f || divisor != divisor) return f32_div_nearest(a, b, modifiers);
  const float product = f32_in(a, modifiers) * std::copysign(0.0f, divisor);
  return f32_out(product, product, modifiers);
}
uint64_t f64_div(uint64_t a, uint64_t b, uint64_t modifiers) {
  const Rounding rounding = rounding_of(modifiers);
  const double x = f64_in(a), y = f64_in(b);
  return f64_out(rounding == Rounding::kNearestEven ? x / y : div_rounded(x, y, rounding), a, b);
}

constexpr uint32_t kOneF32 = 0x3f800000u;
constexpr uint64_t kOneF64 = 0x3ff0000000000000u;
uint32_t f32_reciprocal(uint32_t a, uint64_t modifiers) { return f32_div(kOneF32, a, modifiers); }
uint32_t f32_reciprocal_nearest(uint32_t a, uint64_t modifiers) {
  return f32_div_nearest(kOneF32, a, modifiers);
}
uint64_t f64_reciprocal(uint64_t a, uint64_t modifiers) { return f64_div(kOneF64, a, modifiers); }

// Roots are never below the normal range.
uint32_t f32_root(uint32_t a, uint64_t modifiers) {
  return f32_out<false>(sqrt_rounded(f32_in(a, modifiers), rounding_of(modifiers)));
}
uint32_t f32_root_nearest(uint32_t a, uint64_t modifiers) {
  return f32_out<false>(std::sqrt(f32_in(a, modifiers)));
}
uint64_t f64_root(uint64_t a, uint64_t modifiers) {
  const Rounding rounding = rounding_of(modifiers);
  return f64_out(
      rounding == Rounding::kNearestEven ? std::sqrt(f64_in(a)) : sqrt_rounded(f64_in(a), rounding),
      a);
}

double reciprocal_root(double a) { return 1.0 / std::sqrt(a); }
uint64_t f64_reciprocal_root(uint64_t a) { return f64_out(reciprocal_root(f64_in(a)), a); }

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: the upper word of the operand and of the result,
// in 1.11.20 format, without subnormals; a NaN gives 0x7fffffff in the upper word.
template <double (*kFunction)(double)>
uint64_t gross_f64(uint64_t a) {
  constexpr uint64_t kUpper = 0xffffffff00000000u, kSign = uint64_t{1} << 63,
                     kExponent = 0x7ff0000000000000u;
  const auto flush = [](uint64_t bits) { return (bits & kExponent) == 0 ? bits & kSign : bits; };
  const double value = kFunction(f64_in(flush(a & kUpper)));
  if (value != value) return 0x7fffffff00000000u;
  return flush(std::bit_cast<uint64_t>(value) & kUpper);
}
double reciprocal(double a) { return 1.0 / a; }

// A subnormal's sine is a zero on an H200.
double sine(double a) { return std::fabs(a) < 0x1p-126 ? std::copysign(0.0, a) : std::sin(a); }
double cosine(double a) { return std::cos(a); }
double power_of_two(double a) { return std::exp2(a); }
double base_2_logarithm(double a) { return std::log2(a); }
double hyperbolic_tangent(double a) { return std::tanh(a); }

using Real = double (*)(double);
template <Real kFunction>
uint32_t f32_function(uint32_t a, uint64_t modifiers) {
  const double value = kFunction(static_cast<double>(f32_in(a, modifiers)));
  return f32_out(static_cast<float>(value), value, modifiers);
}
template <class H, Real kFunction>
uint16_t half_function(uint16_t a, uint64_t modifiers) {
  return half_out<H>(float_to_odd(kFunction(static_cast<double>(half_in<H>(a, modifiers)))),
                     modifiers);
}
template <Real kFunction>
Handler half_handler(Type type) {
  switch (type) {
    case Type::kF16:
      return &each_lane_imm<&half_function<HalfF16, kFunction>>;
    case Type::kF16x2:
      return &each_lane_imm<&unary_halves<&half_function<HalfF16, kFunction>>>;
    case Type::kBf16:
      return &each_lane_imm<&half_function<HalfBf16, kFunction>>;
    default:
      return &each_lane_imm<&unary_halves<&half_function<HalfBf16, kFunction>>>;
  }
}

// Functions that have an .approx form alone, on f32.
struct ApproximateForm {
  std::string_view root;
  Handler handler;
};
constexpr ApproximateForm kApproximateForms[] = {
    {"rcp", &each_lane_imm<&f32_reciprocal_nearest>},
    {"sqrt", &each_lane_imm<&f32_root_nearest>},
    {"rsqrt", &each_lane_imm<&f32_function<&reciprocal_root>>},
    {"ex2", &each_lane_imm<&f32_function<&power_of_two>>},
    {"lg2", &each_lane_imm<&f32_function<&base_2_logarithm>>},
    {"sin", &each_lane_imm<&f32_function<&sine>>},
    {"cos", &each_lane_imm<&f32_function<&cosine>>},
    {"tanh", &each_lane_imm<&f32_function<&hyperbolic_tangent>>},
};

Handler approximate_handler(std::string_view root) {
  for (const ApproximateForm& form : kApproximateForms)
    if (form.root == root) return form.handler;
  return nullptr;
}

void decode_approximate(Decode& d, uint64_t modifiers) {
  const std::string& root = d.statement().root;
  const bool ftz = (modifiers & kFtz) != 0;
  const Type type = take_type_of(
      d, {Type::kF32, Type::kF64, Type::kF16, Type::kF16x2, Type::kBf16, Type::kBf16x2});
  take_operands(d, type, {type});
  if (type == Type::kF32) {
    if (ftz && root == "tanh") d.fail(".ftz is not known for tanh");
    d.insn().execute = approximate_handler(root);
  } else if (type == Type::kF64) {
    if (root == "rcp" && ftz) {
      d.insn().execute = &each_lane<&gross_f64<&reciprocal>>;
    } else if (root == "rsqrt") {
      d.insn().execute =
          ftz ? &each_lane<&gross_f64<&reciprocal_root>> : &each_lane<&f64_reciprocal_root>;
    } else {
      d.fail(root + ".approx.f64 is known for rcp (with .ftz) and rsqrt alone");
    }
  } else if (root == "ex2") {
    const bool is_bf16 = type == Type::kBf16 || type == Type::kBf16x2;
    if (ftz != is_bf16) d.fail("ex2 of bf16 has .ftz, ex2 of f16 does not");
    d.insn().execute = half_handler<&power_of_two>(type);
  } else if (root == "tanh") {
    if (ftz) d.fail(".ftz is not known for tanh");
    d.insn().execute = half_handler<&hyperbolic_tangent>(type);
  } else {
    d.fail("16-bit types are known for ex2 and tanh alone");
  }
}

void decode_rounded(Decode& d, uint64_t modifiers) {
  const std::string& root = d.statement().root;
  if (root != "rcp" && root != "sqrt") d.fail(root + " has no rounding; .approx must be given");
  const bool nearest = rounding_of(modifiers) == Rounding::kNearestEven;
  const Type type = take_type_of(d, {Type::kF32, Type::kF64});
  if (type == Type::kF64 && (modifiers & kFtz) != 0) d.fail(".ftz is not known for this type");
  take_operands(d, type, {type});
  if (root == "rcp") {
    d.insn().execute = type == Type::kF64 ? &each_lane_imm<&f64_reciprocal>
                       : nearest          ? &each_lane_imm<&f32_reciprocal_nearest>
                                          : &each_lane_imm<&f32_reciprocal>;
  } else {
    d.insn().execute = type == Type::kF64 ? &each_lane_imm<&f64_root>
                       : nearest          ? &each_lane_imm<&f32_root_nearest>
                                          : &each_lane_imm<&f32_root>;
  }
}

}  // namespace

void decode_float_function(Decode& d) {
  const bool approx = d.modifiers().take("approx");
  bool explicit_rounding;
  const uint64_t modifiers = take_float_modifiers(d, explicit_rounding);
  if (approx == explicit_rounding)
    d.fail("either .approx or a rounding, .rn .rz .rm or .rp, must be given");
  if ((modifiers & kSat) != 0) d.fail(".sat is not known for " + d.statement().root);
  d.insn().imm = modifiers;
  if (approx) return decode_approximate(d, modifiers);
  decode_rounded(d, modifiers);
}

void decode_float_div(Decode& d) {
  const int form = d.modifiers().take_one_of({"approx", "full"});
  bool explicit_rounding;
  const uint64_t modifiers = take_float_modifiers(d, explicit_rounding);
  if ((form >= 0) == explicit_rounding)
    d.fail("one of .approx, .full, .rn, .rz, .rm and .rp must be given");
  if ((modifiers & kSat) != 0) d.fail(".sat is not known for div");
  const Type type =
      form >= 0 ? take_type_of(d, {Type::kF32}) : take_type_of(d, {Type::kF32, Type::kF64});
  if (type == Type::kF64 && (modifiers & kFtz) != 0) d.fail(".ftz is not known for this type");
  take_operands(d, type, {type, type});
  d.insn().imm = modifiers;
  if (type == Type::kF64) {
    d.insn().execute = &each_lane_imm<&f64_div>;
  } else if (form == 0) {
    d.insn().execute = &each_lane_imm<&f32_div_approximate>;
  } else if (form == 1 || rounding_of(modifiers) == Rounding::kNearestEven) {
    d.insn().execute = &each_lane_imm<&f32_div_nearest>;
  } else {
    d.insn().execute = &each_lane_imm<&f32_div>;
  }
}

}  // namespace ptxsim
