#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "unit/parse_text.hpp"

namespace ptxsim::test {
namespace {

struct Bad {
  std::string text;
  std::string refusal;
};

TEST(ParseError, OutsideBodies) {
  const std::vector<Bad> cases = {
      {"", "1:1: expected '.version' at the start of the text, found the end of the text"},
      {".target sm_90\n", "1:1: expected '.version' at the start of the text, found '.target'"},
      {".version 9.0\n.entry k() {}", "2:1: expected '.target' after '.version', found '.entry'"},
      {".version 9.0\n.target sm_90, map_f64_to_f32",
       "2:16: target option 'map_f64_to_f32' is not supported"},
      {".version 9.0\n.target sm_90\n.address_size 32",
       "3:15: address size 32 is not supported: 64 is"},
      {"\x01", "1:1: byte 0x01 has no place in PTX"},
      {".version 9.0 \xc3\xa4", "1:14: byte 0xc3 has no place in PTX"},
      {"/* open", "1:1: comment without an end: expected '*/'"},
      {"/*/", "1:1: comment without an end: expected '*/'"},
  };
  for (const Bad& bad : cases) EXPECT_EQ(refusal(bad.text), bad.refusal) << bad.text;
}

TEST(ParseError, Declarations) {
  const std::vector<Bad> cases = {
      {".foo x;", "4:1: unknown directive '.foo' outside a body"},
      {".visible .reg .b32 x;", "4:10: unknown directive '.reg' outside a body"},
      {"entry k() {}", "4:1: expected a directive, found 'entry'"},
      {".global .b32 a, a;", "4:17: 'a' is already declared"},
      {".entry k() {}\n.entry k() {}", "5:8: 'k' is already declared"},
      {".global .u32 k;\n.entry k() {}", "5:8: 'k' is already declared"},
      {".func f();\n.global .u32 f;", "5:14: 'f' is already declared"},
      {".global .pred p;", "4:9: .pred is a type of registers only"},
      {".global .e2m1 v;", "4:9: '.e2m1' is no type of a variable"},
      {".global .align 3 .b8 v[4];", "4:16: alignment 3 is not a power of two up to 1048576"},
      {".global .align 0 .b8 v[4];", "4:16: alignment 0 is not a power of two up to 1048576"},
      {".global .b8 v[];", "4:13: 'v': only an .extern array may have no size"},
      {".global .b8 v[0];", "4:13: 'v': an array of no elements"},
      {".global .b8 v[0x4000000001];", "4:14: array of more than 274877906944 elements"},
      {".global .b8 v[0x40000][0x40000][0x40000][0x40000];",
       "4:32: array of more than 274877906944 elements"},
      {".global .b64 v[0x4000000000];", "4:14: 'v': more than 274877906944 bytes"},
      {".global .b8 v[2] = {1, 2, 3};", "4:27: more than 2 initial values"},
      {".global .b8 v[2] = {{1}, 2};", "4:21: braces that match no dimension of the array"},
      {".global .b8 v[2][2] = {1, {2}};", "4:27: braces that match no dimension of the array"},
      {".global .b8 v[2] = 1;", "4:20: the initial value of an array is a list in braces"},
      {".global .b8 v = 256;", "4:17: initial value 256 does not fit .b8"},
      {".global .s16 v = -32769;", "4:18: initial value -32769 does not fit .s16"},
      {".global .f32 v = 1;", "4:18: an integer as the initial value of .f32"},
      {".global .b16 v = 1.5;", "4:18: a floating-point value for .b16: write its bits"},
      {".global .b8 v[2] = {1 2};", "4:23: expected ',' or '}', found '2'"},
      {".shared .b8 v = 1;",
       "4:15: 'v': only .global and .const variables of this module have initial values"},
      {".entry k(.param .b8 a[]) {}", "4:21: parameter 'a' has no size"},
      {".entry k(.param .b8 a, .param .b8 a) {}", "4:35: 'a' is already declared in this scope"},
      {".entry k(.param .b8 a[32765]) {}",
       "4:21: parameters of 32765 bytes up to 'a'; at most 32764"},
      {".entry k(.reg .b32 a) {}", "4:10: expected '.param' or ')', found '.reg'"},
      {".entry k() .maxfoo 3 {}", "4:12: unknown directive '.maxfoo' of an entry"},
      {".entry k() .maxntid 1, 2, 3, 4 {}", "4:30: more than three sizes"},
      {".entry k() .reqntid 0 {}", "4:21: size 0 is not positive"},
      {".entry k() ret;",
       "4:12: expected ';' or a body after the declaration of an entry, found 'ret'"},
      {".file 1 path", "4:9: expected a path, found 'path'"},
      {".file 1 \"path", "4:9: string without an end"},
      {".section .debug_str { {", "4:21: '{' without its '}'"},
      {".func f(.param .b32 x", "4:22: expected ',' or ')', found the end of the text"},
      {".alias a, b;", "4:8: 'a' is not declared"},
  };
  for (const Bad& bad : cases) {
    EXPECT_EQ(refusal(std::string(kHeader) + bad.text), bad.refusal) << bad.text;
  }
}

// Line 6 holds the statement, after kNames in line 5.
TEST(ParseError, Statements) {
  const std::vector<Bad> cases = {
      {"op %r10;", "6:4: '%r10' is neither declared nor a special register that is supported"},
      {"op %r01;", "6:4: '%r01' is neither declared nor a special register that is supported"},
      {"op foo;", "6:4: 'foo' is not declared, and no label of this scope or one around it"},
      {"op {foo};", "6:5: 'foo' is not declared"},
      {"op [foo];", "6:5: 'foo' is not declared"},
      {"bra NOWHERE;",
       "6:5: 'NOWHERE' is not declared, and no label of this scope or one around it"},
      {"bra IN; { IN: op; }",
       "6:5: 'IN' is not declared, and no label of this scope or one around it"},
      {"{ .reg .b32 x; } op x;",
       "6:21: 'x' is not declared, and no label of this scope or one around it"},
      {"L: L: op;", "6:4: 'L' is already declared in this scope"},
      {"buf: op;", "6:1: 'buf' is already declared in this scope"},
      {"L: .reg .b32 L;", "6:14: 'L' is already declared in this scope"},
      {".reg .b32 %r1;", "6:11: '%r1' is already declared in this scope"},
      {".reg .b32 %r<3>;", "6:11: '%r0' is already declared in this scope"},
      {".reg .v4 .b32 x;", "6:6: vector registers are not supported: declare their elements"},
      {".reg .e4m3 x;", "6:6: '.e4m3' is no type of a register"},
      {".reg .b32 x<1.5>;", "6:13: expected an integer, found a floating-point number"},
      {".maxntid 3;", "6:1: unknown directive '.maxntid' among statements"},
      {".loc 1 2", "7:1: expected a number, found '}'"},
      {".loc 1 2 3, foo bar", "6:13: unknown attribute 'foo' of .loc"},
      {"@%r1 op;", "6:2: guard '%r1' is not declared as a predicate register"},
      {"@q op;", "6:2: guard 'q' is not declared as a predicate register"},
      {"@%p1 .reg .b32 x;", "6:6: expected an instruction after the guard, found '.reg'"},
      {"op %r1", "7:1: expected ';' after an instruction, found '}'"},
      {"op %r1 %r2;", "6:8: expected ';' after an instruction, found '%r2'"},
      {"op %r1,;", "6:8: expected an operand, found ';'"},
      {"op {%r1 %r2};", "6:9: expected ',' or '}', found '%r2'"},
      {"op [%r1;", "6:8: expected ']' after an address, found ';'"},
      {"op [{%r1}];", "6:5: an address starts with a register, a variable or an integer"},
      {"op [1.5];", "6:5: an address starts with a register, a variable or an integer"},
      {"op [!%p1];", "6:5: an address starts with a register, a variable or an integer"},
      {"op [%r1+1.5];", "6:9: a floating-point number cannot be added here"},
      {"op [%r1+%r2];", "6:9: expected a number, found '%r2'"},
      {"op [[%r1]];", "6:5: an address starts with a register, a variable or an integer"},
      {"op {{{{{{%r1}}}}}};", "6:9: operands nested more than 4 deep"},
      {"op -%r1;", "6:5: expected a number, found '%r1'"},
      {"op !buf;", "6:4: '!' is for predicates"},
      {"op %tid;", "6:4: '%tid' is used with .x, .y or .z"},
      {"op %tid.w;", "6:8: '%tid' is used with .x, .y or .z"},
      {"op %laneid.x;", "6:11: '%laneid' has no component '.x'"},
      {"op %r1.x;", "6:7: '%r1' is no vector: component '.x'"},
      {"op %envreg3;", "6:4: special register '%envreg3' is not modelled"},
      {"op 08;", "6:4: '08' is no integer of at most 64 bits"},
      {"op 0x;", "6:4: '0x' is no integer of at most 64 bits"},
      {"op 0b2;", "6:4: '0b2' is no integer of at most 64 bits"},
      {"op 12ab;", "6:4: '12ab' is no integer of at most 64 bits"},
      {"op 18446744073709551616;", "6:4: '18446744073709551616' is no integer of at most 64 bits"},
      {"op 0f3F80000;", "6:4: '0f3F80000': expected 8 hexadecimal digits after '0f'"},
      {"op 0d3F800000;", "6:4: '0d3F800000': expected 16 hexadecimal digits after '0d'"},
      {"op 1e999;", "6:4: '1e999' is no number that a double can hold"},
      {"op 1.2.3;", "6:4: '1.2.3' is no number that a double can hold"},
      {"op ~1.5;", "6:4: '~' cannot be applied to a floating-point number"},
      {"op ---------1;", "6:12: more than 8 signs before a number"},
      {"op k;", "6:4: 'k' is an entry, which cannot be an operand"},
      {"op. x;", "6:3: expected a word after '.'"},
      {"= 3;", "6:1: expected a statement, found '='"},
      {"T: .branchtargets T;", "6:19: 'T' is a list of targets, not a label"},
      {"T: .branchtargets;", "6:18: expected a label, found ';'"},
  };
  for (const Bad& bad : cases) {
    const std::string text = ".entry k();\n" + std::string(".entry k() {") + std::string(kNames) +
                             "\n" + bad.text + "\n}\n";
    EXPECT_EQ(refusal(std::string(kHeader) + text), bad.refusal) << bad.text;
  }
}

TEST(ParseError, LongNamesAreCut) {
  std::string text(kHeader);  // appended to: GCC 12 sees a false overflow in a chain of + at -O3
  text.append(".").append(1000, 'x');
  std::string message("4:1: unknown directive '.");
  message.append(59, 'x').append("...' outside a body");
  EXPECT_EQ(refusal(text), message);
}

TEST(ParseLimit, Text) {
  EXPECT_EQ(refusal(kHeader, {.text_bytes = 10}), "0:0: 46 bytes of PTX; at most 10");
}

TEST(ParseLimit, RegistersOfAllEntries) {
  const std::string text =
      std::string(kHeader) + ".entry a() { .reg .b32 %r<6>; }\n.entry b() { .reg .b32 %q<5>; }";
  EXPECT_EQ(refusal(text, {.registers = 11}), "");
  EXPECT_EQ(refusal(text, {.registers = 10}),
            "5:24: '%q': more registers than the 4 that are left to this module");
  EXPECT_EQ(refusal(std::string(kHeader) + ".entry a() { .reg .b32 %r<99999999999>; }"),
            "4:24: '%r': more registers than the 1048576 that are left to this module");
}

TEST(ParseLimit, InitialValues) {
  const std::string global = std::string(kHeader) + ".global .b8 v[100] = {1};\n";
  const std::string entry = ".entry a() { op v; op v; }\n";
  EXPECT_EQ(refusal(global + entry, {.initial_bytes = 200}), "");
  EXPECT_EQ(refusal(global, {.initial_bytes = 99}),
            "4:13: 'v': 100 bytes of initial values; 99 are left to this module");
  EXPECT_EQ(refusal(global + entry, {.initial_bytes = 199}),
            "5:17: 'v': 100 bytes of initial values for this entry; 99 are left to this module");
}

TEST(ParseLimit, Nesting) {
  const auto nested = [](size_t depth) {
    return std::string(kHeader) + ".entry k() " + std::string(depth, '{') + std::string(depth, '}');
  };
  EXPECT_EQ(refusal(nested(64)), "");
  EXPECT_EQ(refusal(nested(65)), "4:76: scopes nested more than 64 deep");
  EXPECT_EQ(refusal(std::string(kHeader) + ".section x " + std::string(100000, '{')),
            "4:12: '{' without its '}'");
}

std::string sample() {
  return std::string(kHeader) +
         ".global .align 4 .b8 g[2][2] = {{1, 2}, {3}};\n.extern .shared .align 16 .b8 dyn[];\n"
         ".visible .entry k(.param .u64 .ptr .align 1 p, .param .align 64 .b8 m[128])\n.maxntid "
         "32\n"
         "{ .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<3>;\n.loc 1 2 3, function_name $L, "
         "inlined_at 1 1 1\n"
         "ld.param.u64 %rd0, [p+8]; mov.u32 %r0, %tid.x; setp.eq.s32 %p1, %r0, -0x1f;\n"
         "@!%p1 bra DONE; cp.async.bulk.tensor.2d.shared::cluster.global [%r1], [%rd1, {%r2, 4}], "
         "[%r3];\n"
         "{ .reg .pred P; W: elect.sync _|P, 0f3F800000; @P bra W; }\nDONE: mov.b64 {%r1, %r2}, "
         "%rd0; ret; }\n";
}

// Every beginning of a good text is refused with a place inside it, or is a whole text itself.
TEST(ParseProperty, BeginningsOfAText) {
  const std::string text = sample();
  ASSERT_EQ(refusal(text), "");
  for (size_t length = 0; length < text.size(); ++length) {
    const Result<Module> result = parse(std::string_view(text).substr(0, length), "cut");
    if (result.ok()) continue;
    EXPECT_GE(result.error().place.ptx_line, 1) << length;
    EXPECT_GE(result.error().place.ptx_column, 1) << length;
    EXPECT_FALSE(result.error().message.empty()) << length;
  }
}

// Texts with some bytes changed: parsed or refused, with all indices inside their tables.
TEST(ParseProperty, ChangedBytes) {
  constexpr uint32_t kSeed = 20260101;
  std::mt19937 random(kSeed);
  const std::string good = sample();
  size_t accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (uint32_t i = 0, n = 1 + random() % 3; i < n; ++i) {
      const size_t at = kHeader.size() + random() % (text.size() - kHeader.size());
      text[at] = random() % 2 == 0 ? good[random() % good.size()] : static_cast<char>(random());
    }
    const Result<Module> result = parse(text, "changed");
    if (!result.ok()) {
      ASSERT_GE(result.error().place.ptx_line, 1) << "seed " << kSeed << " round " << round;
      continue;
    }
    ++accepted;
    for (const Entry& entry : result.value().entries) {
      ASSERT_FALSE(entry.statements.empty());
      for (const Statement& statement : entry.statements) {
        for (const Operand& operand : statement.operands) {
          ASSERT_LT(operand.label, entry.statements.size())
              << "seed " << kSeed << " round " << round;
          ASSERT_TRUE(operand.reg == 0 || operand.reg < entry.registers.size());
          ASSERT_TRUE(operand.symbol == 0 || operand.symbol < entry.variables.size());
        }
      }
    }
  }
  EXPECT_GT(accepted, 100u);  // the changes are small enough that some texts are still PTX
}

}  // namespace
}  // namespace ptxsim::test
