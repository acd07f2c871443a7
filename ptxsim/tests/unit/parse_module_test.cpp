#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ptxsim/insn/decode.hpp"
#include "unit/parse_text.hpp"

namespace ptxsim::test {
namespace {

TEST(ParseModule, Header) {
  const Result<Module> result = parse(
      ".version 8.8\n.target sm_103f, texmode_independent, debug\n.address_size 64\n", "a.ptx");
  ASSERT_TRUE(result.ok()) << to_string(result.error());
  EXPECT_EQ(result.value().name, "a.ptx");
  EXPECT_EQ(result.value().version_major, 8);
  EXPECT_EQ(result.value().version_minor, 8);
  EXPECT_EQ(result.value().target, "sm_103f");
  EXPECT_EQ(result.value().address_size, 64);
  EXPECT_TRUE(result.value().entries.empty());
}

TEST(ParseModule, Targets) {
  for (const std::string target :
       {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_103a",
        "sm_110a", "sm_120a", "sm_120f", "sm_121", "sm_121a"}) {
    EXPECT_EQ(refusal(".version 9.0\n.target " + target + "\n"), "") << target;
  }
  for (const std::string target : {"sm_75", "sm_130", "sm_100b", "sm_80a", "compute_90", "SM_90"}) {
    EXPECT_EQ(refusal(".version 9.0\n.target " + target + "\n"),
              "2:9: target '" + target + "' is not supported: sm_80 to sm_121 are");
  }
}

TEST(ParseModule, Versions) {
  for (const std::string version : {"7.0", "7.8", "8.6", "9.0", "9.1"}) {
    EXPECT_EQ(refusal(".version " + version + "\n.target sm_90\n"), "") << version;
  }
  for (const std::string version : {"6.5", "10.0"}) {
    EXPECT_EQ(refusal(".version " + version + "\n.target sm_90\n"),
              "1:10: PTX version " + version + " is not supported: 7.0 to 9.x are");
  }
  for (const std::string version : {"9", "9.", "9.0.1", "9e0", "9.x"}) {
    EXPECT_EQ(refusal(".version " + version + "\n.target sm_90\n"),
              "1:10: '" + version + "' is no version: expected major.minor");
  }
}

TEST(ParseModule, EntryDirectives) {
  const Module module = parse_module(
      ".weak .entry a() .maxntid 384, 1 .minnctapersm 1 .maxnreg 168 .explicitcluster\n"
      ".reqnctapercluster 2, 1, 1 .maxclusterrank 8 .pragma \"nounroll\"; { ret; }\n"
      ".visible .entry b .reqntid 8, 4, 2 .blocksareclusters { ret; }");
  ASSERT_EQ(module.entries.size(), 2u);
  const Entry& a = module.entries[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.maxntid, (std::array<uint32_t, 3>{384, 1, 1}));
  EXPECT_EQ(a.reqntid, (std::array<uint32_t, 3>{0, 0, 0}));
  EXPECT_EQ(a.reqnctapercluster, (std::array<uint32_t, 3>{2, 1, 1}));
  EXPECT_TRUE(a.explicit_cluster);
  EXPECT_EQ(a.maxnreg, 168u);
  EXPECT_EQ(a.minnctapersm, 1u);
  const Entry& b = module.entries[1];
  EXPECT_EQ(b.reqntid, (std::array<uint32_t, 3>{8, 4, 2}));
  EXPECT_EQ(b.maxntid, (std::array<uint32_t, 3>{0, 0, 0}));
  EXPECT_FALSE(b.explicit_cluster);
}

TEST(ParseModule, EntryMayBeDeclaredBeforeItIsDefined) {
  EXPECT_EQ(parse_module(".entry k();\n.entry k() { ret; }").entries.size(), 1u);
}

// Braces in comments and strings are no scopes; what lies in a body that is passed over is not
// looked at.
TEST(ParseModule, OneEntryAlone) {
  const std::string text =
      ".version 9.0\n.target sm_90a\n.entry first(.param .u64 p) .maxntid 64 {\n"
      "{ /* } */ op \"}\"; } // }\n no PTX at all; }\n"
      ".global .u32 v;\n.entry second() {\nop v; ret; }\n.entry third() { also none }";
  const Result<Module> whole = parse(text, "x");
  ASSERT_FALSE(whole.ok());
  Result<Module> module = parse_entry(text, "x", "second");
  ASSERT_TRUE(module.ok()) << to_string(module.error());
  ASSERT_EQ(module->entries.size(), 3u);
  EXPECT_FALSE(module->entries[0].is_read());
  EXPECT_EQ(module->entries[0].num_params, 1u);
  EXPECT_EQ(module->entries[0].maxntid[0], 64u);
  EXPECT_TRUE(module->entries[1].is_read());
  EXPECT_EQ(module->entries[1].statements.at(0).line, 8);
  EXPECT_FALSE(module->entries[2].is_read());
  EXPECT_TRUE(module->has_variables);

  auto shared = std::make_shared<const Module>(*module);
  const auto program = decode(shared, "first");
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.error().message.find("'first' was passed over"), std::string::npos)
      << program.error().message;
  EXPECT_FALSE(parse_entry(text + "\n.entry fourth() { {", "x", "second").ok());
  Result<Module> none = parse_entry(text, "x", "");
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->entries[1].is_read());
}

// Which functions a pointer may reach is known from all bodies.
TEST(ParseModule, OneEntryOfATextWithFunctions) {
  const std::string text =
      ".version 9.0\n.target sm_90a\n.entry a() { ret; }\n.func f() { ret; }\n.entry b() { ret; }";
  Result<Module> module = parse_entry(text, "x", "b");
  ASSERT_TRUE(module.ok()) << to_string(module.error());
  EXPECT_TRUE(module->entries.at(0).is_read());
  EXPECT_FALSE(module->has_variables);
}

TEST(ParseModule, DebugSectionsAreSkipped) {
  const Module module = parse_module(
      ".section .debug_str\n{\n$L__info_string0:\n.b8 95, 90\n.b8 0 // end\n.b32 .debug_abbrev\n"
      ".b64 $L__end-$L__begin\n}\n.section .debug_loc { }\n.entry k() { ret; }");
  EXPECT_EQ(module.entries.size(), 1u);
}

TEST(ParseModule, SourceLocations) {
  const Module module = parse_module(
      ".entry k() {\nop0;\n.loc 1 30 3\nop1;\n"
      ".loc 2 378 9, function_name $L__info_string0, inlined_at 1 30 3\n"
      ".loc 3 373 9, function_name $L__info_string0+14, inlined_at 2 378 9\nop2;\nop3;\n"
      ".loc 4 1 1, function_name $L__info_string0, inlined_at 9 8 7\nret;\n}\n"
      ".entry l() {\nret;\n}\n.file 1 \"/a/k.cu\"\n.file 2 \"b.h\", 1700000000, 123\n");
  EXPECT_EQ(module.files, (std::map<int, std::string>{{1, "/a/k.cu"}, {2, "b.h"}}));
  const std::vector<Statement>& statements = module.entries.at(0).statements;
  ASSERT_EQ(statements.size(), 5u);
  EXPECT_EQ(statements[0].loc, -1);
  const Location& outer = module.locations.at(static_cast<size_t>(statements[1].loc));
  EXPECT_EQ(outer.file, 1);
  EXPECT_EQ(outer.line, 30);
  EXPECT_EQ(outer.column, 3);
  EXPECT_EQ(outer.inlined_at, -1);
  EXPECT_EQ(statements[2].loc, statements[3].loc);
  const Location& inner = module.locations.at(static_cast<size_t>(statements[2].loc));
  EXPECT_EQ(inner.line, 373);
  const Location& middle = module.locations.at(static_cast<size_t>(inner.inlined_at));
  EXPECT_EQ(middle.line, 378);
  EXPECT_EQ(middle.inlined_at, statements[1].loc);
  // A call that no .loc of its own has named before.
  const Location& last = module.locations.at(static_cast<size_t>(statements[4].loc));
  EXPECT_EQ(module.locations.at(static_cast<size_t>(last.inlined_at)).file, 9);
  EXPECT_EQ(module.entries.at(1).statements.at(0).loc, -1);
}

TEST(ParseModule, CommentsAndLineEnds) {
  const Result<Module> result = parse(
      "/* a * / \n */ .version 9.0\r\n.target sm_90a // x\r\n.entry k() { ret; } // end", "x");
  ASSERT_TRUE(result.ok()) << to_string(result.error());
  EXPECT_EQ(result.value().entries.at(0).statements.at(0).line, 4);
}

TEST(ParseModule, PlaceAsText) {
  EXPECT_EQ(to_string(Place{"k.ptx", 12, 3, "dual_gemm.cuh", 88}), "k.ptx:12:3 (dual_gemm.cuh:88)");
  EXPECT_EQ(to_string(Place{"k.ptx", 12, 0, "", 0}), "k.ptx:12");
  EXPECT_EQ(to_string(Place{"", 12, 3, "", 0}), "line 12:3");
  EXPECT_EQ(to_string(Error{ErrorKind::kInput, "bad", Place{"k.ptx", 1, 2, "", 0}}),
            "k.ptx:1:2: error: bad");
  EXPECT_EQ(to_string(Error{ErrorKind::kInput, "bad", {}}), "error: bad");
}

}  // namespace
}  // namespace ptxsim::test
