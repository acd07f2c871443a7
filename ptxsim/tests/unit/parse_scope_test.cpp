#include <string>
#include <vector>

#include "unit/parse_text.hpp"

namespace ptxsim::test {
namespace {

using Kind = Operand::Kind;

uint32_t target(const Entry& entry, size_t statement) {
  const Operand& operand = entry.statements.at(statement).operands.at(0);
  EXPECT_EQ(operand.kind, Kind::kLabel);
  return operand.label;
}

// What inlined wait loops look like: the same register and label names in one scope after the
// other.
TEST(ParseScope, ScopesHaveNamesOfTheirOwn) {
  const std::string loop =
      "{ .reg .pred P1;\nLAB_WAIT:\n try_wait P1;\n @P1 bra DONE;\n bra LAB_WAIT;\nDONE:\n}\n";
  const Entry entry = parse_body(loop + loop + "ret;");
  ASSERT_EQ(entry.statements.size(), 7u);
  ASSERT_EQ(entry.registers.size(), 2u);
  EXPECT_EQ(entry.statements[0].operands[0].reg, 0u);
  EXPECT_EQ(entry.statements[3].operands[0].reg, 1u);
  EXPECT_EQ(entry.statements[4].guard, 1u);
  EXPECT_EQ(target(entry, 1), 3u);
  EXPECT_EQ(target(entry, 2), 0u);
  EXPECT_EQ(target(entry, 4), 6u);
  EXPECT_EQ(target(entry, 5), 3u);
}

TEST(ParseScope, InnerNamesHideOuterOnes) {
  const Entry entry = parse_body(".reg .b32 a; { .reg .b64 a; op a; { op a; } } op a;");
  ASSERT_EQ(entry.registers.size(), 2u);
  EXPECT_EQ(entry.statements[0].operands[0].reg, 1u);
  EXPECT_EQ(entry.statements[1].operands[0].reg, 1u);
  EXPECT_EQ(entry.statements[2].operands[0].reg, 0u);
}

TEST(ParseScope, InnerLabelHidesOuterEvenWhenItFollows) {
  const Entry entry = parse_body("L: op0; { bra L; op1; L: op2; } bra L; ret;");
  EXPECT_EQ(target(entry, 1), 3u);
  EXPECT_EQ(target(entry, 4), 0u);
}

TEST(ParseScope, BranchOutOfNestedScopes) {
  const Entry entry = parse_body("{ { bra OUT; } bra OUT; } op; OUT: ret;");
  EXPECT_EQ(target(entry, 0), 3u);
  EXPECT_EQ(target(entry, 1), 3u);
}

TEST(ParseScope, BranchPrefersALabelToAVariable) {
  const Entry entry = parse_body(".reg .b32 DONE; { bra DONE; DONE: } ret;");
  EXPECT_EQ(target(entry, 0), 1u);
}

TEST(ParseScope, BranchTargets) {
  const Entry entry =
      parse_body(".reg .b32 i;\nT: .branchtargets A, B, A;\nbrx.idx i, T;\nA: op;\nB: ret;\n");
  ASSERT_EQ(entry.statements.size(), 3u);
  const std::vector<Operand>& operands = entry.statements[0].operands;
  ASSERT_EQ(operands.size(), 2u);
  EXPECT_EQ(operands[0].kind, Kind::kRegister);
  ASSERT_EQ(operands[1].kind, Kind::kVector);
  ASSERT_EQ(operands[1].parts.size(), 3u);
  for (const Operand& part : operands[1].parts) EXPECT_EQ(part.kind, Kind::kLabel);
  EXPECT_EQ(operands[1].parts[0].label, 1u);
  EXPECT_EQ(operands[1].parts[1].label, 2u);
  EXPECT_EQ(operands[1].parts[2].label, 1u);
}

TEST(ParseScope, BranchTargetsMayFollowTheirUse) {
  const Entry entry =
      parse_body(".reg .b32 i; { brx.idx.uni i, T; } A: op; T: .branchtargets A; ret;");
  ASSERT_EQ(entry.statements[0].operands.at(1).parts.size(), 1u);
  EXPECT_EQ(entry.statements[0].operands[1].parts[0].label, 1u);
}

TEST(ParseScope, RetIsAddedWhereTheTextHasNone) {
  const Entry trap = parse_body("bra END;\nop;\nEND:");
  ASSERT_EQ(trap.statements.size(), 3u);
  EXPECT_EQ(target(trap, 0), 2u);
  EXPECT_EQ(trap.statements[2].root, "ret");
  EXPECT_EQ(trap.statements[2].line, kHeaderLines + 6);
  EXPECT_EQ(parse_body("ret;").statements.size(), 1u);
  EXPECT_EQ(parse_body("exit;").statements.size(), 1u);
  EXPECT_EQ(parse_body(".reg .pred p; @p ret;").statements.size(), 2u);
  EXPECT_EQ(parse_body("bra L; ret; L: ").statements.size(), 3u);
  EXPECT_EQ(parse_body("").statements.size(), 1u);
}

TEST(ParseScope, CallPrototypeIsALabel) {
  const Entry entry = parse_body(
      ".reg .b64 f; op0; { proto: .callprototype (.param .b32 _) _ (.param .b64 _); call f, proto; "
      "}");
  EXPECT_EQ(entry.statements.at(1).operands.at(1).kind, Kind::kPrototype);
  EXPECT_EQ(entry.statements.at(1).operands.at(1).symbol, 0u);
}

}  // namespace
}  // namespace ptxsim::test
