// Instructions write the lanes that execute them and no others, and give the same values whether
// all lanes execute (straight-line code) or only some.
#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "unit/run_text.hpp"

namespace ptxsim::test {
namespace {

constexpr uint32_t kAll = 0xffffffffu;

// Lane i stores what `statement` left in %r0 and %rd0's halves; only the lanes of `mask` execute
// it.
std::string kernel(const std::string& statement, uint32_t mask) {
  return with_header(
      ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
      "  .reg .pred %p<4>;\n  .reg .b16 %h<4>;\n  .reg .b32 %r<9>;\n  .reg .b64 %rd<9>;\n"
      "  ld.param.u64 %rd7, [in];\n  ld.param.u64 %rd8, [out];\n  mov.u32 %r8, %tid.x;\n"
      "  mul.wide.u32 %rd6, %r8, 12;\n  add.s64 %rd7, %rd7, %rd6;\n  add.s64 %rd8, %rd8, %rd6;\n"
      "  ld.global.u32 %r1, [%rd7];\n  ld.global.u32 %r2, [%rd7+4];\n  ld.global.u32 %r3, "
      "[%rd7+8];\n"
      "  mov.b64 %rd1, {%r1, %r2};\n  mov.b64 %rd2, {%r3, %r1};\n  mov.b64 %rd3, {%r2, %r3};\n"
      "  mov.b32 {%h1, %h2}, %r1;\n  mov.b32 {%h3, _}, %r2;\n"
      "  mov.u32 %r0, 0x5a5a5a5a;\n  mov.u64 %rd0, 0x5a5a5a5a5a5a5a5a;\n  mov.b16 %h0, 0x5a5a;\n"
      "  setp.lt.u32 %p1, %r1, %r2;\n  mov.u32 %r7, %lanemask_eq;\n  and.b32 %r7, %r7, " +
      std::to_string(mask) +
      ";\n  setp.ne.b32 %p0, %r7, 0;\n  mov.pred %p3, %p1;\n"
      "  @%p0 " +
      statement +
      "\n  selp.b32 %r6, 1, 0, %p3;\n  mov.b32 %r5, {%h0, %h0};\n  xor.b32 %r6, %r6, %r5;\n  "
      "xor.b32 %r0, %r0, %r6;\n"
      "  mov.b64 {%r4, %r5}, %rd0;\n"
      "  st.global.u32 [%rd8], %r0;\n  st.global.u32 [%rd8+4], %r4;\n  st.global.u32 [%rd8+8], "
      "%r5;\n  ret;\n}\n");
}

std::vector<uint32_t> run_masked(const std::string& statement, uint32_t mask,
                                 const std::vector<std::byte>& in) {
  Launch launch;
  launch.block = {32, 1, 1};
  append_param(launch.params, kInAddress);
  append_param(launch.params, kOutAddress);
  TextRun run = run_text(kernel(statement, mask), launch, in, 96, Options{});
  EXPECT_FALSE(run.result.error.has_value()) << to_string(*run.result.error);
  return run.out;
}

class AluLanes : public testing::TestWithParam<const char*> {};

TEST_P(AluLanes, OnlyTheLanesThatExecuteAreWritten) {
  std::mt19937 random(20240612);
  std::vector<std::byte> in(96 * 4);
  for (std::byte& b : in) b = static_cast<std::byte>(random());
  const std::vector<uint32_t> all = run_masked(GetParam(), kAll, in),
                              none = run_masked(GetParam(), 0, in);
  ASSERT_NE(all, none) << "the statement writes nothing that is stored";
  for (const uint32_t mask : {1u, 0x80000000u, 0x55555555u, 0x0ff0f00fu, 0x7fffffffu}) {
    const std::vector<uint32_t> some = run_masked(GetParam(), mask, in);
    for (int lane = 0; lane < 32; ++lane) {
      const std::vector<uint32_t>& expected = ((mask >> lane) & 1) != 0 ? all : none;
      for (int word = 0; word < 3; ++word)
        ASSERT_EQ(some[lane * 3 + word], expected[lane * 3 + word])
            << GetParam() << " mask " << std::hex << mask << " lane " << std::dec << lane;
    }
  }
}

// One of each kind of handler.
INSTANTIATE_TEST_SUITE_P(
    Kinds, AluLanes,
    testing::Values(
        "add.u32 %r0, %r1, %r2;", "mul.wide.s32 %rd0, %r1, %r2;",
        "mad.lo.u64 %rd0, %rd1, %rd2, %rd3;", "add.u16 %h0, %h1, %h2;", "add.u16x2 %r0, %r1, %r2;",
        "add.cc.u32 %r0, %r1, %r2;", "div.s32 %r0, %r1, %r2;", "popc.b64 %r0, %rd1;",
        "bfi.b32 %r0, %r1, %r2, 5, 9;", "lop3.b32 %r0, %r1, %r2, %r3, 0x96;",
        "lop3.or.b32 %r0|%p3, %r1, %r2, %r3, 0x80, %p1;", "not.pred %p3, %p3;",
        "setp.ge.u32 %p3|%p2, %r1, %r2;", "setp.geu.f16x2 %p2|%p3, %r1, %r2;",
        "set.gt.u32.f32 %r0, %r1, %r2;", "testp.normal.f32 %p3, 0f00000001;",
        "selp.b32 %r0, %r1, %r2, %p1;", "slct.b32.s32 %r0, %r1, %r2, %r3;",
        "prmt.b32 %r0, %r1, %r2, 0x5140;", "mov.u32 %r0, %r1;", "mov.b64 %rd0, {%r1, %r2};",
        "mov.b64 {%r0, _}, %rd1;", "mov.pred %p3, 0;", "mov.u32 %r0, %clock;",
        "add.f32 %r0, %r1, %r2;", "fma.rn.f32 %r0, %r1, %r2, %r3;", "mul.rz.ftz.f32 %r0, %r1, %r2;",
        "add.rn.f32x2 %rd0, %rd1, %rd2;", "fma.rn.f64 %rd0, %rd1, %rd2, %rd3;",
        "mul.f16 %h0, %h1, %h3;", "fma.rn.bf16x2 %r0, %r1, %r2, %r3;", "max.NaN.f32 %r0, %r1, %r2;",
        "neg.f32 %r0, %r1;", "rcp.approx.ftz.f32 %r0, %r1;", "ex2.approx.f32 %r0, %r1;",
        "cvt.s64.s32 %rd0, %r1;", "cvt.rn.f16x2.f32 %r0, %r1, %r2;",
        "cvt.rzi.sat.s32.f32 %r0, %r1;", "cvt.rn.f64.s64 %rd0, %rd1;",
        "cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2;", "cvt.rn.f16x2.e5m2x2 %r0, %h1;",
        "cvt.rna.tf32.f32 %r0, %r1;", "cvt.pack.sat.s8.s32.b32 %r0, %r1, %r2, %r3;",
        "cvta.shared.u64 %rd0, %rd1;", "getctarank.shared::cluster.u32 %r0, %r1;"),
    [](const testing::TestParamInfo<const char*>& info) {
      return "n" + std::to_string(info.index);
    });

// All lanes at once take the processor's own fma, where it has one; some lanes do not.
TEST(AluLanes, FusedSumsOfAllLanesAreRoundedAsThoseOfSome) {
  std::mt19937 random(7);
  // Ties and what lies beside them, ends of the subnormal and the normal range, infinities, NaNs.
  constexpr uint32_t kEdges[] = {0x00000000, 0x00000001, 0x007fffff, 0x00800000, 0x00800001,
                                 0x33800000, 0x33800001, 0x337fffff, 0x3f800000, 0x3f800001,
                                 0x3f7fffff, 0x4b000001, 0x4b7fffff, 0x7f7fffff, 0x7f800000,
                                 0x7f800001, 0x7fc00000, 0x7fffffff, 0x1f800001, 0x20000000};
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> words(96);
    for (uint32_t& word : words) word = kEdges[random() % std::size(kEdges)] ^ (random() % 2) << 31;
    std::vector<std::byte> in(96 * 4);
    std::memcpy(in.data(), words.data(), in.size());
    const char* const statement = "fma.rn.f32 %r0, %r1, %r2, %r3;";
    const std::vector<uint32_t> all = run_masked(statement, kAll, in);
    const std::vector<uint32_t> low = run_masked(statement, 0x0000ffff, in);
    const std::vector<uint32_t> high = run_masked(statement, 0xffff0000, in);
    for (size_t i = 0; i < 96; ++i)
      ASSERT_EQ(all[i], i < 48 ? low[i] : high[i])
          << std::hex << words[i / 3 * 3] << " " << words[i / 3 * 3 + 1] << " "
          << words[i / 3 * 3 + 2];
  }
}

}  // namespace
}  // namespace ptxsim::test
