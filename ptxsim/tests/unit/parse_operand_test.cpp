#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "unit/parse_text.hpp"

namespace ptxsim::test {
namespace {

using Kind = Operand::Kind;

Operand only_operand(const std::string& text) {
  Statement statement = parse_statement("op " + text + ";");
  EXPECT_EQ(statement.operands.size(), 1u) << text;
  return statement.operands.empty() ? Operand{} : std::move(statement.operands.front());
}

TEST(ParseOperand, Register) {
  const Operand operand = only_operand("%rd3");
  EXPECT_EQ(operand.kind, Kind::kRegister);
  EXPECT_EQ(operand.reg, 13u);  // after ten %r
  EXPECT_FALSE(operand.negated);
}

TEST(ParseOperand, NegatedPredicate) {
  const Operand operand = only_operand("!%p4");
  EXPECT_EQ(operand.kind, Kind::kRegister);
  EXPECT_EQ(operand.reg, 24u);
  EXPECT_TRUE(operand.negated);
}

TEST(ParseOperand, Integers) {
  const std::vector<std::pair<std::string, uint64_t>> cases = {
      {"0", 0},
      {"7", 7},
      {"7U", 7},
      {"017", 15},
      {"0x1aF", 0x1af},
      {"0x1AFU", 0x1af},
      {"0X10", 16},
      {"0b101", 5},
      {"0B11U", 3},
      {"-1", ~uint64_t{0}},
      {"- 1", ~uint64_t{0}},
      {"--1", 1},
      {"+5", 5},
      {"~0", ~uint64_t{0}},
      {"-~0", 1},
      {"!0", 1},
      {"!3", 0},
      {"4+3-2", 5},
      {"4 - -3", 7},
      {"18446744073709551615", ~uint64_t{0}},
      {"0xffffffffffffffff", ~uint64_t{0}},
      {"0x7f", 127},
      {"0xdead", 0xdead},
      {"0x1e5", 0x1e5},
      {"WARP_SZ", 32},
      {"-WARP_SZ", static_cast<uint64_t>(-32)},
  };
  for (const auto& [text, bits] : cases) {
    const Operand operand = only_operand(text);
    EXPECT_EQ(operand.kind, Kind::kImmediate) << text;
    EXPECT_FALSE(operand.is_float) << text;
    EXPECT_EQ(operand.bits, bits) << text;
  }
}

TEST(ParseOperand, FloatPatterns) {
  for (const std::string text : {"0f3F800000", "0F3f800000"}) {
    const Operand one = only_operand(text);
    EXPECT_TRUE(one.is_float);
    EXPECT_EQ(one.float_bytes, 4);
    EXPECT_EQ(one.bits, 0x3f800000u);
  }
  const Operand minus = only_operand("-0f3F800000");
  EXPECT_EQ(minus.float_bytes, 4);
  EXPECT_EQ(minus.bits, 0xbf800000u);
  const Operand twice = only_operand("0d4000000000000000");
  EXPECT_EQ(twice.float_bytes, 8);
  EXPECT_EQ(std::bit_cast<double>(twice.bits), 2.0);
}

TEST(ParseOperand, DecimalFloats) {
  const std::vector<std::pair<std::string, double>> cases = {{"1.5", 1.5},      {"0.25", 0.25},
                                                             {"2.", 2.0},       {"1e3", 1000.0},
                                                             {"1.5E-2", 0.015}, {"-3.5e+1", -35.0}};
  for (const auto& [text, value] : cases) {
    const Operand operand = only_operand(text);
    EXPECT_EQ(operand.kind, Kind::kImmediate) << text;
    EXPECT_TRUE(operand.is_float) << text;
    EXPECT_EQ(operand.float_bytes, 8) << text;
    EXPECT_EQ(std::bit_cast<double>(operand.bits), value) << text;
  }
}

TEST(ParseOperand, VectorWithSinkAndImmediate) {
  const Operand operand = only_operand("{%r0, _, 5, %rd1}");
  ASSERT_EQ(operand.kind, Kind::kVector);
  ASSERT_EQ(operand.parts.size(), 4u);
  EXPECT_EQ(operand.parts[0].reg, 0u);
  EXPECT_EQ(operand.parts[1].kind, Kind::kSink);
  EXPECT_EQ(operand.parts[2].bits, 5u);
  EXPECT_EQ(operand.parts[3].reg, 11u);
}

TEST(ParseOperand, Pair) {
  const Operand pair = only_operand("%r1|%p2");
  ASSERT_EQ(pair.kind, Kind::kPair);
  ASSERT_EQ(pair.parts.size(), 2u);
  EXPECT_EQ(pair.parts[0].reg, 1u);
  EXPECT_EQ(pair.parts[1].reg, 22u);
  const Operand sink = only_operand("_|%p2");
  ASSERT_EQ(sink.kind, Kind::kPair);
  EXPECT_EQ(sink.parts[0].kind, Kind::kSink);
  EXPECT_EQ(sink.parts[1].reg, 22u);
}

TEST(ParseOperand, AddressOfRegister) {
  const std::vector<std::pair<std::string, int64_t>> cases = {
      {"[%rd1]", 0},     {"[%rd1+16]", 16}, {"[%rd1 + 0x10]", 16},
      {"[%rd1+-8]", -8}, {"[%rd1-8]", -8},  {"[ %rd1+8+8 ]", 16}};
  for (const auto& [text, offset] : cases) {
    const Operand operand = only_operand(text);
    ASSERT_EQ(operand.kind, Kind::kAddress) << text;
    ASSERT_EQ(operand.parts.size(), 1u) << text;
    EXPECT_EQ(operand.parts[0].kind, Kind::kRegister) << text;
    EXPECT_EQ(operand.parts[0].reg, 11u) << text;
    EXPECT_EQ(static_cast<int64_t>(operand.bits), offset) << text;
  }
}

TEST(ParseOperand, AddressOfVariableAndImmediate) {
  const Operand variable = only_operand("[buf+4]");
  ASSERT_EQ(variable.kind, Kind::kAddress);
  EXPECT_EQ(variable.parts[0].kind, Kind::kSymbol);
  EXPECT_EQ(variable.parts[0].symbol, 0u);
  EXPECT_EQ(variable.parts[0].bits, 0u);
  EXPECT_EQ(variable.bits, 4u);
  const Operand immediate = only_operand("[64]");
  ASSERT_EQ(immediate.kind, Kind::kAddress);
  EXPECT_EQ(immediate.parts[0].kind, Kind::kImmediate);
  EXPECT_EQ(immediate.parts[0].bits, 64u);
  EXPECT_EQ(immediate.bits, 0u);
}

TEST(ParseOperand, VariableWithOffset) {
  const Operand operand = only_operand("buf+12");
  EXPECT_EQ(operand.kind, Kind::kSymbol);
  EXPECT_EQ(operand.symbol, 0u);
  EXPECT_EQ(operand.bits, 12u);
}

TEST(ParseOperand, TensorCoordinates) {
  const Operand operand = only_operand("[%rd1, {%r1, 0, %r2}]");
  ASSERT_EQ(operand.kind, Kind::kAddress);
  ASSERT_EQ(operand.parts.size(), 2u);
  EXPECT_EQ(operand.parts[0].reg, 11u);
  ASSERT_EQ(operand.parts[1].kind, Kind::kVector);
  ASSERT_EQ(operand.parts[1].parts.size(), 3u);
  EXPECT_EQ(operand.parts[1].parts[0].reg, 1u);
  EXPECT_EQ(operand.parts[1].parts[1].bits, 0u);
  EXPECT_EQ(operand.parts[1].parts[2].reg, 2u);
}

TEST(ParseOperand, SpecialRegisters) {
  const Operand tid = only_operand("%tid.y");
  EXPECT_EQ(tid.kind, Kind::kSpecial);
  EXPECT_EQ(tid.special, SpecialKind::kTid);
  EXPECT_EQ(tid.axis, 1);
  const Operand rank = only_operand("%cluster_ctarank");
  EXPECT_EQ(rank.special, SpecialKind::kClusterCtarank);
  EXPECT_EQ(rank.axis, 0);
  EXPECT_EQ(only_operand("%nclusterid.z").special, SpecialKind::kNclusterid);
  EXPECT_EQ(only_operand("%globaltimer_lo").special, SpecialKind::kGlobaltimerLo);
}

TEST(ParseOperand, DeclaredRegisterHidesSpecial) {
  const Entry entry = parse_body(".reg .b32 %laneid; op %laneid;");
  ASSERT_FALSE(entry.statements.empty());
  EXPECT_EQ(entry.statements[0].operands[0].kind, Kind::kRegister);
}

TEST(ParseOperand, CallLists) {
  const Module module = parse_module(
      ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
      ".entry k() { .param .b32 ret; .param .b64 arg; call.uni (ret), vprintf, (arg, arg); }");
  ASSERT_EQ(module.functions.size(), 1u);
  EXPECT_EQ(module.functions[0].body.name, "vprintf");
  const Statement& call = module.entries.at(0).statements.at(0);
  ASSERT_EQ(call.operands.size(), 3u);
  EXPECT_EQ(call.operands[0].kind, Kind::kVector);
  EXPECT_EQ(call.operands[1].kind, Kind::kFunction);
  EXPECT_EQ(call.operands[1].symbol, 0u);
  ASSERT_EQ(call.operands[2].parts.size(), 2u);
  EXPECT_EQ(call.operands[2].parts[1].symbol, 1u);
}

TEST(ParseStatement, ModifiersOperandsAndText) {
  const Statement statement = parse_statement(
      "@!%p1\n  tcgen05.ld.sync.aligned.32x32b.x2.b32{%r0,\t%r1}, // comment\n [%r2]  /* more */ "
      ";");
  EXPECT_TRUE(statement.guarded);
  EXPECT_TRUE(statement.guard_negated);
  EXPECT_EQ(statement.guard, 21u);
  EXPECT_EQ(statement.root, "tcgen05");
  EXPECT_EQ(statement.modifiers,
            (std::vector<std::string>{"ld", "sync", "aligned", "32x32b", "x2", "b32"}));
  ASSERT_EQ(statement.operands.size(), 2u);
  EXPECT_EQ(statement.operands[0].parts.size(), 2u);
  EXPECT_EQ(statement.text, "@!%p1 tcgen05.ld.sync.aligned.32x32b.x2.b32{%r0, %r1}, [%r2] ;");
  EXPECT_EQ(statement.line, kHeaderLines + 4);
  EXPECT_EQ(statement.loc, -1);
}

TEST(ParseStatement, ScopedModifiers) {
  const Statement statement = parse_statement(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2"
      ".L2::cache_hint [%r1], [%rd1, {%r2, %r3}], [%r4], %rd2;");
  EXPECT_EQ(
      statement.modifiers,
      (std::vector<std::string>{"async", "bulk", "tensor", "2d", "shared::cluster", "global",
                                "mbarrier::complete_tx::bytes", "cta_group::2", "L2::cache_hint"}));
  EXPECT_EQ(statement.operands.size(), 4u);
}

TEST(ParseStatement, WithoutOperands) {
  const Statement statement = parse_statement("fence.mbarrier_init.release.cluster;");
  EXPECT_TRUE(statement.operands.empty());
  EXPECT_FALSE(statement.guarded);
  EXPECT_EQ(statement.text, "fence.mbarrier_init.release.cluster;");
}

}  // namespace
}  // namespace ptxsim::test
