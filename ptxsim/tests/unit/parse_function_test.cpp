// Functions, prototypes, aliases and addresses in initial values as the parser takes them.
#include "parse_text.hpp"

namespace ptxsim::test {
namespace {

using Kind = Operand::Kind;

TEST(ParseFunction, ParametersResultsAndBody) {
  const Module module = parse_module(
      ".extern .func __assertfail\n(\n.param .b64 a\n)\n;\n"
      ".func (.param .align 8 .b8 r[12]) f(.param .b8 x, .reg .f32 y) .noreturn .abi_preserve 8\n"
      "{ .reg .b32 %r<2>; .param .b64 z; op; ret; }\n"
      ".weak .func g;\n.entry k() { ret; }");
  ASSERT_EQ(module.functions.size(), 3u);
  EXPECT_FALSE(module.functions[0].is_defined());
  const Function& f = module.functions[1];
  EXPECT_EQ(f.body.name, "f");
  EXPECT_TRUE(f.is_defined());
  EXPECT_TRUE(f.is_noreturn);
  ASSERT_EQ(f.results.size(), 1u);
  ASSERT_EQ(f.params.size(), 2u);
  EXPECT_EQ(f.body.variables[f.results[0].index].bytes, 12u);
  EXPECT_EQ(f.body.variables[f.params[0].index].offset, 12u);
  EXPECT_TRUE(f.params[1].is_register);
  EXPECT_EQ(f.body.registers[f.params[1].index].type, Type::kF32);
  EXPECT_EQ(f.body.local_bytes, 24u);
  EXPECT_TRUE(f.body.variables.back().in_frame);
  EXPECT_EQ(f.body.param_bytes, 0u);
}

TEST(ParseFunction, DeclarationsGoTogether) {
  const Module module = parse_module(
      ".func (.param .b32 r) f(.param .b64 x);\n.func (.param .b32 r) f(.param .b64 x) { ret; }\n"
      ".func (.param .b32 r) f(.param .b64 x);\n.func g(.param .b32 x);\n.func h(.param .b32 x)"
      " { ret; }\n.alias g, h;\n");
  ASSERT_EQ(module.functions.size(), 3u);
  EXPECT_TRUE(module.functions[0].is_defined());
  EXPECT_EQ(module.functions[1].alias_of, 2);
}

TEST(ParseFunction, Refusals) {
  const auto refused = [](std::string_view text) {
    return refusal(std::string(kHeader) + std::string(text));
  };
  EXPECT_EQ(refused(".func f(.param .b32 x);\n.func f(.param .b64 x) { ret; }"),
            "5:7: 'f' was declared in line 4 with other parameters or results");
  EXPECT_EQ(refused(".func f { ret; }\n.func f { ret; }"), "5:7: 'f' is already declared");
  EXPECT_EQ(refused(".entry f() { ret; }\n.func f;"), "5:7: 'f' is already declared");
  EXPECT_EQ(refused(".func f(.param .b32 x"),
            "4:22: expected ',' or ')', found the end of the text");
  EXPECT_EQ(refused(".func f(.shared .b32 x);"),
            "4:9: expected '.param', '.reg' or ')', found '.shared'");
  EXPECT_EQ(refused(".func f(.reg .pred x);"), "4:14: a parameter cannot be a predicate");
  EXPECT_EQ(refused(".func f { op x; }"),
            "4:14: 'x' is not declared, and no label of this scope or one around it");
  EXPECT_EQ(refused(".func f;\n.alias g, f;"), "5:8: 'g' is not declared");
  EXPECT_EQ(refused(".func f;\n.func g;\n.alias f, g;\n.alias g, f;"),
            "7:8: 'g' cannot be another name of 'f'");
  EXPECT_EQ(refused(".entry k() { L: .calltargets f; }"), "4:30: 'f' is no function");
  EXPECT_EQ(refused(".entry k() { P: .callprototype (.param .b32 _); }"),
            "4:47: expected '_' or a name, found ';'");
  EXPECT_EQ(refused(".entry k() { P: .callprototype _; T: .branchtargets P; ret; }"),
            "4:53: 'P' is a prototype, not a label");
}

TEST(ParseFunction, PrototypesAndTargets) {
  const Module module = parse_module(
      ".func f;\n.func g;\n.entry k() { .reg .b64 p;\n"
      "{ P: .callprototype (.param .align 4 .b8 _[12]) _ (.param .b64 _, .reg .b32 _) .noreturn;\n"
      "  call p, P; }\nT: .calltargets f, g;\ncall p, T; }");
  const Entry& entry = module.entries.at(0);
  ASSERT_EQ(entry.prototypes.size(), 2u);
  EXPECT_EQ(entry.prototypes[0].result_bytes, std::vector<uint64_t>{12});
  EXPECT_EQ(entry.prototypes[0].param_bytes, (std::vector<uint64_t>{8, 4}));
  EXPECT_TRUE(entry.prototypes[1].is_target_list);
  EXPECT_EQ(entry.prototypes[1].targets, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(entry.statements[0].operands.at(1).kind, Kind::kPrototype);
  EXPECT_EQ(entry.statements[1].operands.at(1).symbol, 1u);
}

TEST(ParseFunction, AddressesInInitialValues) {
  const Module module = parse_module(
      ".func f;\n.global .b8 text[4];\n.global .u64 unused[1] = {later};\n"
      ".global .u64 table[4] = {f, 7, generic(text)+2, table+8};\n"
      ".entry k() { op [table]; }");
  const Entry& entry = module.entries.at(0);
  ASSERT_EQ(entry.variables.size(), 2u);
  const std::vector<InitialAddress>& addresses = entry.variables[0].addresses;
  ASSERT_EQ(addresses.size(), 3u);
  EXPECT_TRUE(addresses[0].is_function);
  EXPECT_EQ(addresses[1].at, 16u);
  EXPECT_EQ(addresses[1].symbol, 1u);
  EXPECT_EQ(addresses[1].offset, 2u);
  EXPECT_EQ(addresses[2].symbol, 0u);
}

}  // namespace
}  // namespace ptxsim::test
