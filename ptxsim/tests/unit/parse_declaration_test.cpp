#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "unit/parse_text.hpp"

namespace ptxsim::test {
namespace {

using Bytes = std::vector<uint8_t>;

// The variable v of the module, as an entry that names it has it.
Variable module_variable(const std::string& declaration) {
  const Module module = parse_module(declaration + "\n.entry k() { op v; }");
  if (module.entries.empty()) return {};
  return module.entries[0].variables.at(0);
}

TEST(ParseVariables, EveryLinkageIsKnown) {
  for (const std::string linkage : {"", ".visible ", ".weak ", ".common "})
    EXPECT_EQ(module_variable(linkage + ".global .b32 v;").bytes, 4u) << linkage;
}

TEST(ParseRegisters, RangesNamesAndTypes) {
  const Entry entry = parse_body(".reg .pred %p<2>, q; .reg .b128 %rq; .reg .f32 %f<1>;");
  std::vector<std::pair<std::string, Type>> found;
  for (const Register& reg : entry.registers) found.emplace_back(reg.name, reg.type);
  EXPECT_EQ(found, (std::vector<std::pair<std::string, Type>>{{"%p0", Type::kPred},
                                                              {"%p1", Type::kPred},
                                                              {"q", Type::kPred},
                                                              {"%rq", Type::kB128},
                                                              {"%f0", Type::kF32}}));
}

// A warp's register file: 32 lanes of each, at multiples of 64 bytes; a predicate is one 32-bit
// mask.
TEST(ParseRegisters, OffsetsDoNotOverlap) {
  const Entry entry = parse_body(
      ".reg .pred p; .reg .b8 a; .reg .b16 b; .reg .u32 c; .reg .s64 d; .reg .b128 e; .reg .f16x2 "
      "f;");
  const std::vector<uint32_t> expected = {0, 64, 128, 192, 320, 576, 1088};
  ASSERT_EQ(entry.registers.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(entry.registers[i].offset, expected[i]) << entry.registers[i].name;
    EXPECT_EQ(entry.registers[i].offset % 64, 0u);
  }
  EXPECT_EQ(entry.register_bytes, 1216u);
}

TEST(ParseRegisters, EmptyRange) { EXPECT_TRUE(parse_body(".reg .b32 %r<0>;").registers.empty()); }

TEST(ParseParameters, OffsetsFollowAlignment) {
  const Module module = parse_module(
      ".visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .u16 c,\n"
      " .param .align 64 .b8 map[128], .param .f32 d, .param .b64 .ptr .align 1 e) { ret; }");
  const Entry& entry = module.entries.at(0);
  ASSERT_EQ(entry.num_params, 6u);
  const std::vector<uint64_t> offsets = {0, 8, 16, 64, 192, 200};
  const std::vector<uint64_t> bytes = {1, 8, 2, 128, 4, 8};
  const std::vector<uint32_t> alignments = {1, 8, 2, 64, 4, 8};
  for (size_t i = 0; i < offsets.size(); ++i) {
    EXPECT_EQ(entry.variables[i].offset, offsets[i]) << i;
    EXPECT_EQ(entry.variables[i].bytes, bytes[i]) << i;
    EXPECT_EQ(entry.variables[i].alignment, alignments[i]) << i;
    EXPECT_EQ(entry.variables[i].space, Space::kParam) << i;
  }
  EXPECT_EQ(entry.param_bytes, 208u);
}

TEST(ParseVariables, LocalsLieInTheThreadsFrame) {
  const Entry entry =
      parse_body(".local .align 1 .b8 a[3]; .local .align 16 .b8 b[20]; .local .f64 c;");
  ASSERT_EQ(entry.variables.size(), 3u);
  EXPECT_EQ(entry.variables[0].offset, 0u);
  EXPECT_EQ(entry.variables[1].offset, 16u);
  EXPECT_EQ(entry.variables[2].offset, 40u);
  EXPECT_EQ(entry.local_bytes, 48u);
}

TEST(ParseVariables, DynamicSharedArray) {
  const Variable array = module_variable(".extern .shared .align 1024 .b8 v[];");
  EXPECT_EQ(array.space, Space::kShared);
  EXPECT_TRUE(array.is_extern);
  EXPECT_EQ(array.bytes, 0u);
  EXPECT_EQ(array.alignment, 1024u);
}

TEST(ParseVariables, NaturalAlignment) {
  EXPECT_EQ(module_variable(".shared .u64 v[2];").alignment, 8u);
  const Variable vector = module_variable(".global .v4 .f32 v[3];");
  EXPECT_EQ(vector.alignment, 16u);
  EXPECT_EQ(vector.bytes, 48u);
  EXPECT_FALSE(vector.has_initializer);
  EXPECT_EQ(module_variable(".visible .global .attribute(.managed) .align 4 .b8 v[8];").bytes, 8u);
}

TEST(ParseVariables, OnlyNamedModuleVariablesBelongToAnEntry) {
  const Module module = parse_module(
      ".shared .b8 big[1000];\n.global .u32 a, v;\n.entry k(.param .u32 p) { op [v]; op v; op p; "
      "}");
  const Entry& entry = module.entries.at(0);
  ASSERT_EQ(entry.variables.size(), 2u);
  EXPECT_EQ(entry.variables[0].name, "p");
  EXPECT_EQ(entry.variables[1].name, "v");
  EXPECT_EQ(entry.num_params, 1u);
  EXPECT_EQ(entry.statements[0].operands[0].parts[0].symbol, 1u);
  EXPECT_EQ(entry.statements[1].operands[0].symbol, 1u);
}

TEST(ParseInitializer, BytesAndPadding) {
  const Variable variable = module_variable(".global .align 1 .b8 v[6] = {104, -1, 0xff, 0b11};");
  EXPECT_TRUE(variable.has_initializer);
  EXPECT_EQ(variable.initial, (Bytes{104, 255, 255, 3, 0, 0}));
}

TEST(ParseInitializer, Scalars) {
  EXPECT_EQ(module_variable(".const .u16 v = 0x1234;").initial, (Bytes{0x34, 0x12}));
  EXPECT_EQ(module_variable(".global .s32 v = -2;").initial, (Bytes{0xfe, 0xff, 0xff, 0xff}));
  EXPECT_EQ(module_variable(".global .f32 v = 0f3F800000;").initial, (Bytes{0, 0, 0x80, 0x3f}));
  EXPECT_EQ(module_variable(".global .f32 v = 1.0;").initial, (Bytes{0, 0, 0x80, 0x3f}));
  EXPECT_EQ(module_variable(".global .f64 v = 0f3F800000;").initial,
            (Bytes{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}));
  EXPECT_EQ(module_variable(".global .b32 v = 0f3F800000;").initial, (Bytes{0, 0, 0x80, 0x3f}));
  EXPECT_EQ(module_variable(".global .u64 v = 0xffffffffffffffff;").initial, Bytes(8, 0xff));
}

TEST(ParseInitializer, NestedBracesPadEachRow) {
  EXPECT_EQ(module_variable(".global .b8 v[2][3] = {{1, 2}, {3}};").initial,
            (Bytes{1, 2, 0, 3, 0, 0}));
  EXPECT_EQ(module_variable(".global .b8 v[2][3] = {1, 2, 3, 4};").initial,
            (Bytes{1, 2, 3, 4, 0, 0}));
  EXPECT_EQ(module_variable(".global .b8 v[2][2][2] = {{{1}, {2}}, {3, 4, {5}}};").initial,
            (Bytes{1, 0, 2, 0, 3, 4, 5, 0}));
  EXPECT_EQ(module_variable(".global .v2 .b8 v[2] = {{1}, {2}};").initial, (Bytes{1, 0, 2, 0}));
}

TEST(ParseInitializer, UnknownAddressIsRefusedOnlyWhereItIsUsed) {
  const std::string globals = ".shared .u32 a;\n.global .u64 v[2] = {generic(a)+4, a};\n";
  EXPECT_EQ(parse_module(globals + ".entry k() { op [a]; }").entries.size(), 1u);
  EXPECT_EQ(refusal(std::string(kHeader) + globals + ".entry k() { op [v]; }"),
            "6:18: 'v': its initial value in line 5 is the address of 'a', which is not supported");
  EXPECT_EQ(refusal(std::string(kHeader) + ".global .u32 v = v;"),
            "4:18: the address of 'v' as the initial value of .u32; needs 64 bits");
}

TEST(ParseInitializer, ExternGlobalIsRefusedOnlyWhereItIsUsed) {
  const std::string globals = ".extern .global .u32 v;\n";
  EXPECT_EQ(parse_module(globals + ".entry k() { ret; }").entries.size(), 1u);
  EXPECT_EQ(refusal(std::string(kHeader) + globals + ".entry k() { op [v]; }"),
            "5:18: 'v': it is .extern, and modules are not linked");
  EXPECT_EQ(module_variable(globals + ".visible .global .u32 v = 3;").initial, (Bytes{3, 0, 0, 0}));
}

}  // namespace
}  // namespace ptxsim::test
