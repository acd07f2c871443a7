// Machine instructions of a listing by statements of PTX: loops with copies, slow paths, pipes.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "ptxsim/ptxsim.hpp"
#include "timing/sass_costs.hpp"
#include "timing/statements.hpp"

namespace {

using namespace ptxsim;
using namespace ptxsim::timing;

// Lines 10 to 17: a loop of five statements that ends with its jump, and a division behind it.
const std::string kKernel = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<6>;
  .reg .b64 %rd<4>;
again:
  ld.global.f32 %f1, [%rd1];
  fma.rn.f32 %f2, %f1, %f1, %f2;
  xor.b32 %r1, %r1, %r2;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra again;
  div.rn.f32 %f3, %f2, %f1;
  div.u64 %rd2, %rd2, %rd3;
  st.global.f32 [%rd1], %f3;
  ret;
}
.visible .entry other() { ret; }
)";

std::string at(int line) {
  return "\t//## File \".nv_debug_ptx_txt\", line " + std::to_string(line) + "\n";
}
std::string insn(const std::string& text) {
  return "        /*0010*/                   " + text + " ;\n";
}

// The loop twice; of the division a fast path, and a subroutine for the rest.
const std::string kListing =
    "\t.section\t.debug_frame,\"\",@progbits\n" + insn("FFMA R0") +
    "\t.section\t.text.k,\"ax\",@progbits\n.text.k:\n" + insn("LDC R1, c[0x0][0x28]") +
    ".L_x_0:\n" + at(11) + insn("LDG.E R0, desc[UR4][R2.64]") + at(12) +
    insn("FFMA R1, R0, R0, R1") + at(13) + insn("LOP3.LUT R3, R3, R4, RZ, 0x3c, !PT") + at(11) +
    insn("LDG.E R0, desc[UR4][R2.64]") + at(12) + insn("FFMA R1, R0, R0, R1") + at(13) +
    insn("LOP3.LUT R3, R3, R4, RZ, 0x3c, !PT") + at(14) + insn("ISETP.NE.AND P0, PT, R3, RZ, PT") +
    insn("ISETP.NE.AND P1, PT, R3, RZ, PT") + at(15) + insn("@P0 BRA `(.L_x_0)") +
    insn("@P1 BRA `(.L_x_0)") + at(16) + insn("MUFU.RCP R5, R0") + insn("FFMA R6, R5, R5, R5") +
    insn("FCHK P0, R1, R0") + insn("@!P0 BRA `(.L_x_1)") + insn("MOV R8, 0x10") +
    insn("CALL.REL.NOINC `($k$__internal_0_$__cuda_sm3x_div_rn)") + ".L_x_1:\n" + at(17) +
    insn("IMAD R9, R9, R9, RZ") + at(18) + insn("STG.E desc[UR4][R2.64], R6") + at(19) +
    insn("EXIT") + "        .weak           $__internal_0_$__cuda_sm3x_div_rn\n" +
    "$k$__internal_0_$__cuda_sm3x_div_rn:\n" + at(16) + insn("FMUL R1, R1, R1") +
    insn("RET.REL.NODEC R8 `(k)") + ".L_x_2:\n" + insn("BRA `(.L_x_2)") + insn("NOP") +
    "\t.section\t.text.other,\"ax\",@progbits\n" + at(11) + insn("LDG.E R0, desc[UR4][R2.64]");

std::shared_ptr<const Program> program() {
  auto module = load(kKernel, "k.ptx");
  EXPECT_TRUE(module.ok()) << to_string(module.error());
  return *decode(*module, "k");
}

std::vector<SassSection> sections(const std::string& text = kListing) {
  auto parsed = parse_sass(text, "k.sass");
  EXPECT_TRUE(parsed.ok()) << to_string(parsed.error());
  return *parsed;
}

TEST(Sass, AListingHasSectionsLinesAndSubroutines) {
  const std::vector<SassSection> all = sections();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "k");
  EXPECT_EQ(all[0].insns[0].line, 0);
  EXPECT_EQ(all[0].insns[1].opcode, "LDG.E");
  EXPECT_EQ(all[0].insns[1].line, 11);
  EXPECT_EQ(all[0].insns[9].opcode, "BRA");
  EXPECT_TRUE(all[0].insns[9].is_guarded);
  EXPECT_EQ(all[0].insns[9].target, 1);
  EXPECT_EQ(all[0].insns.size() - all[0].own, 4u);
}

TEST(Sass, WhatHasNoLinesOfPtxIsRefused) {
  for (const std::string text : {"", "int main() {}\n", "\t.section\t.text.k\n/*0000*/ NOP ;\n"}) {
    const auto parsed = parse_sass(text, "k.sass");
    ASSERT_FALSE(parsed.ok());
    EXPECT_NE(to_string(parsed.error()).find("k.sass: no instruction with its line of PTX"),
              std::string::npos);
  }
}

// Two copies of the loop by its load: of ten instructions four are of the ALU, which has half the
// rate, so that slots count. The other kernel's line 11 is not this one's.
TEST(Sass, CopiesOfALoopAreOneExecution) {
  const auto costs = costs_of_sass(*program(), sections());
  ASSERT_GE(costs.size(), 9u);
  const double expected[] = {1, 1, 1, 1, 1};
  for (size_t i = 0; i < 5; ++i) EXPECT_DOUBLE_EQ(costs[i].value().slots, expected[i]) << i;
}

// Its call and what leads to it are jumped over: four instructions, two of the function unit.
TEST(Sass, ADivisionTakesItsFastPath) {
  const auto costs = costs_of_sass(*program(), sections());
  EXPECT_DOUBLE_EQ(costs[5].value().slots, 4);
  EXPECT_DOUBLE_EQ(costs[5].value().functions, 2);
  EXPECT_FALSE(costs[6].has_value());  // of 64-bit integers: which path, operands say
  EXPECT_DOUBLE_EQ(costs[7].value().slots, 1);
}

// Eight instructions of the ALU of twelve take 16 slots' time.
TEST(Sass, AUnitOfHalfTheRateSetsTheTime) {
  std::string text = kListing;
  const std::string logic = insn("LOP3.LUT R3, R3, R4, RZ, 0x3c, !PT");
  for (size_t at = 0; (at = text.find(logic, at)) != std::string::npos; at += 2 * logic.size())
    text.insert(at, logic);
  const auto costs = costs_of_sass(*program(), sections(text));
  EXPECT_DOUBLE_EQ(costs[0].value().slots, 1);  // six of twelve: still the slots'
  text = kListing;
  for (size_t at = 0; (at = text.find(logic, at)) != std::string::npos; at += 4 * logic.size())
    text.insert(at, logic + logic + logic);
  const auto more = costs_of_sass(*program(), sections(text));
  EXPECT_DOUBLE_EQ(more[0].value().slots, 20.0 / 16);
}

TEST(Sass, TheTableFillsInWhatAListingDoesNotSay) {
  const auto table = costs_of(*program());
  const auto counted = costs_of(*program(), sections());
  EXPECT_EQ(table->told, 0u);
  EXPECT_EQ(counted->told, counted->of.size() - 1);
  EXPECT_DOUBLE_EQ(counted->of[6].expansion.slots, table->of[6].expansion.slots);
  EXPECT_DOUBLE_EQ(counted->of[5].expansion.slots, 4);
}

}  // namespace
