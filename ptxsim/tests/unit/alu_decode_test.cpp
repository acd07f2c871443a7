// Integer, floating-point, conversion, comparison and move instructions that are refused, each with
// the message that says why, and a control beside them that is accepted.
#include <gtest/gtest.h>

#include <string>

#include "unit/run_text.hpp"

namespace ptxsim::test {
namespace {

std::string error_of(const std::string& statement) {
  return decode_error(
      with_header(".visible .entry k() {\n"
                  "  .reg .pred %p<4>;\n  .reg .b8 %q<4>;\n  .reg .b16 %h<4>;\n  .reg .b32 %r<4>;\n"
                  "  .reg .b64 %rd<4>;\n  .reg .b128 %w<2>;\n  " +
                  statement + "\n  ret;\n}\n"));
}

struct Refused {
  const char* statement;
  const char* message;
};

class AluRefuses : public testing::TestWithParam<Refused> {};

TEST_P(AluRefuses, WithTheReason) {
  const std::string message = error_of(GetParam().statement);
  EXPECT_NE(message.find(GetParam().message), std::string::npos)
      << GetParam().statement << "\n  gave: " << message << "\n  wanted: " << GetParam().message;
}

constexpr Refused kRefused[] = {
    {"add.u32.frob %r0, %r1, %r2;", "modifier .frob is not known for add"},
    {"add.sat.u32 %r0, %r1, %r2;", ".sat is known for .s32 alone"},
    {"add.u8 %q0, %q1, %q2;", "type .u8 is not known"},
    {"add.u32 %r0, %r1, %h2;", "has 2 bytes"},
    {"add.u32 %r0, %r1;", "add has 2 operands; must have 3"},
    {"add.u32 _, %r1, %r2;", "needs a destination"},
    {"add %r0, %r1, %r2;", "add names no type"},
    {"mul.u32 %r0, %r1, %r2;", "one of .lo, .hi and .wide must be given"},
    {"mul.wide.u64 %rd0, %rd1, %rd2;", ".wide is known for 16 and 32 bits alone"},
    {"mul.lo.hi.u32 %r0, %r1, %r2;", "exclude each other"},
    {"mad.lo.sat.s32 %r0, %r1, %r2, %r3;", ".sat is known for mad.hi.s32 alone"},
    {"mad24.u32 %r0, %r1, %r2, %r3;", "one of .lo and .hi must be given"},
    {"addc.sat.u32 %r0, %r1, %r2;", "modifier .sat is not known"},
    {"min.relu.u32 %r0, %r1, %r2;", ".relu is known for .s32 and .s16x2 alone"},
    {"shl.s32 %r0, %r1, 1;", "type .s32 is not known for shl"},
    {"shf.l.b32 %r0, %r1, %r2, %r3;", "one of .clamp and .wrap"},
    {"lop3.b32 %r0, %r1, %r2, %r3, 256;", "must be an integer constant in 0..255"},
    {"lop3.or.b32 %r0, %r1, %r2, %r3, 3, %p1;", "the destination must be d|p"},
    {"cnot.pred %p0, %p1;", "cnot is not known for predicates"},
    {"and.pred %p0, %p1, %r2;", "a predicate register is needed"},
    {"bmsk.b32 %r0, %r1, %r2;", "one of .clamp and .wrap"},
    {"prmt.b64 %rd0, %rd1, %rd2, %rd3;", "type .b64 is not known"},
    {"fma.f32 %r0, %r1, %r2, %r3;", "a rounding, .rn .rz .rm or .rp, must be given"},
    {"add.rz.f16 %h0, %h1, %h2;", "round to nearest even alone"},
    {"mul.ftz.f64 %rd0, %rd1, %rd2;", ".ftz is not known for this type"},
    {"mul.ftz.bf16 %h0, %h1, %h2;", ".ftz is not known for this type"},
    {"add.sat.f64 %rd0, %rd1, %rd2;", ".sat is not known for this type"},
    {"fma.rn.relu.f32 %r0, %r1, %r2, %r3;", ".relu is known for 16-bit types alone"},
    {"fma.rn.oob.f32 %r0, %r1, %r2, %r3;", ".oob is known for 16-bit types alone"},
    {"div.f32 %r0, %r1, %r2;", "one of .approx, .full, .rn, .rz, .rm and .rp"},
    {"div.approx.f64 %rd0, %rd1, %rd2;", "type .f64 is not known"},
    {"rcp.f32 %r0, %r1;", "either .approx or a rounding"},
    {"ex2.rn.f32 %r0, %r1;", "ex2 has no rounding"},
    {"ex2.approx.bf16 %h0, %h1;", "ex2 of bf16 has .ftz"},
    {"sin.approx.f16 %h0, %h1;", "known for ex2 and tanh alone"},
    {"min.xorsign.f32 %r0, %r1, %r2;", ".xorsign needs .abs"},
    {"min.f64 %rd0, %rd1, %rd2, %rd3;", "three operands are known for .f32 alone"},
    {"max.NaN.f64 %rd0, %rd1, %rd2;", ".f64 has no modifiers"},
    {"setp.u32 %p0, %r1, %r2;", "setp names no comparison"},
    {"setp.lt.b32 %p0, %r1, %r2;", "can be compared with .eq and .ne alone"},
    {"setp.geu.s32 %p0, %r1, %r2;", "known for floating-point types alone"},
    {"setp.lo.s32 %p0, %r1, %r2;", "known for unsigned types alone"},
    {"setp.lt.and.u32 %p0, %r1, %r2;", "setp has 3 operands; must have 4"},
    {"set.lt.f16x2.f32 %r0, %r1, %r2;", "needs sources of the same type"},
    {"testp.f32 %p0, %r1;", "testp names no property"},
    {"selp.u32 %r0, %r1, %r2, %r3;", "a predicate register is needed"},
    {"slct.ftz.u32.s32 %r0, %r1, %r2, %r3;", ".ftz is known for a condition of type .f32 alone"},
    {"mov.u32 %r0, %rd1;", "has 8 bytes"},
    {"mov.b64 {%r0, %r1, %r2}, %rd0;", "a vector of 3 elements"},
    {"mov.b32 %r0, {%h0, %r1};", "has 4 bytes"},
    {"mov.u32 %r0, %clock64;", "the special register has 8 bytes; the type has 4"},
    {"cvt.u32 %r0, %r1;", "cvt needs two types"},
    {"cvt.u32.f32 %r0, %r1;", "float to integer needs .rni"},
    {"cvt.f32.s32 %r0, %r1;", "integer to float needs .rn"},
    {"cvt.rn.u32.s32 %r0, %r1;", "integer to integer has no rounding"},
    {"cvt.f16.f32 %h0, %r1;", "a conversion to a smaller float needs"},
    {"cvt.rn.relu.f32.f64 %r0, %rd1;", ".relu and .satfinite are known from .f32"},
    {"cvt.rna.f16.f32 %h0, %r1;", ".rna is known for .tf32 alone"},
    {"cvt.rni.rn.s32.f32 %r0, %r1;", "exclude each other"},
    {"cvt.rs.satfinite.e4m3x4.f32 %r0, {%r1, %r2, %r3, %r0}, %r1;", "cvt.rs of .e4m3x4 from .f32"},
    {"cvt.rs.bf16x2.f32 %r0, %r1, %r2;", "cvt has 3 operands; must have 4"},
    {"cvt.rs.rn.bf16x2.f32 %r0, %r1, %r2, %r3;", "cvt.rs has no other rounding"},
    {"cvt.rs.ftz.f16x2.f32 %r0, %r1, %r2, %r3;", "no .ftz"},
    {"cvt.rn.e4m3x2.f32 %h0, %r1, %r2;", ".satfinite must be given"},
    {"cvt.rz.satfinite.e2m1x2.f32 %q0, %r1, %r2;", "this rounding is not known"},
    {"cvt.rn.satfinite.ue8m0x2.f32 %h0, %r1, %r2;", "this rounding is not known"},
    {"cvt.rn.satfinite.e4m3x2.e5m2x2 %h0, %h1;", "conversion from .e5m2x2 to .e4m3x2 is not known"},
    {"cvt.pack.u8.s32.b32 %r0, %r1, %r2, %r3;", "cvt.pack needs .sat"},
    {"cvta.u64 %rd0, %rd1;", "one of .const .global .local .shared .param must be given"},
    {"cvta.shared.u32 %r0, %r1;", "generic addresses have 64 bits"},
    {"mapa.u32 %r0, %r1, %r2;", "generic addresses have 64 bits"},
};

INSTANTIATE_TEST_SUITE_P(Statements, AluRefuses, testing::ValuesIn(kRefused),
                         [](const testing::TestParamInfo<Refused>& info) {
                           return "n" + std::to_string(info.index);
                         });

// The forms nearest to what is refused above.
TEST(AluAccepts, WhatPtxHas) {
  for (const char* statement : {"add.sat.s32 %r0, %r1, %r2;",
                                "mul.wide.u32 %rd0, %r1, %r2;",
                                "mad.hi.sat.s32 %r0, %r1, %r2, %r3;",
                                "min.relu.s32 %r0, %r1, %r2;",
                                "lop3.or.b32 %r0|%p0, %r1, %r2, %r3, 3, !%p1;",
                                "add.rn.f16 %h0, %h1, %h2;",
                                "mul.ftz.sat.f32 %r0, %r1, 0f3F800000;",
                                "fma.rn.relu.bf16x2 %r0, %r1, %r2, %r3;",
                                "div.full.f32 %r0, %r1, %r2;",
                                "ex2.approx.ftz.bf16x2 %r0, %r1;",
                                "min.xorsign.abs.f32 %r0, %r1, %r2;",
                                "setp.lt.and.f32 %p0|_, %r1, %r2, !%p2;",
                                "setp.lt.f16x2 %p0|%p1, %r1, %r2;",
                                "mov.b64 {_, %r1}, %rd0;",
                                "mov.b128 %w0, {%rd0, %rd1};",
                                "mov.pred %p0, 1;",
                                "mov.u64 %rd0, %clock64;",
                                "mov.pred %p0, %is_explicit_cluster;",
                                "cvt.u8.u32 %r0, %r1;",
                                "cvt.rn.satfinite.e2m1x2.f32 %q0, %r1, %r2;",
                                "cvt.rp.satfinite.ue8m0x2.f32 %h0, %r1, %r2;",
                                "cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, 0;",
                                "cvta.to.global.u64 %rd0, %rd1;",
                                "mapa.shared::cluster.u32 %r0, %r1, 1;",
                                "isspacep.shared::cluster %p0, %rd1;"})
    EXPECT_EQ(error_of(statement), "") << statement;
}

}  // namespace
}  // namespace ptxsim::test
