// Findings at copies of one statement are one; others stay apart.
#include <gtest/gtest.h>

#include <string>

#include "trace/folded_reports.hpp"
#include "unit/small_kernel.hpp"

namespace {

using ptxsim::Report;
using ptxsim::Severity;

struct Made {
  std::shared_ptr<const ptxsim::Program> program;
  ptxsim::Reports reports;
};

// A report of rule 16 at each ld.shared; the earlier access is the st.shared before it.
Made made(const std::string& body) {
  Made m;
  auto module = ptxsim::load(text_of(ptxsim_test::SmallKernel{body}), "small.ptx");
  EXPECT_TRUE(module.ok()) << to_string(module.error());
  auto program = ptxsim::decode(*module, "small");
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  m.program = *program;
  int earlier = -1;
  const auto& statements = m.program->entry->statements;
  for (size_t i = 0; i < statements.size(); ++i) {
    const bool shared = statements[i].text.find(".shared.u32") != std::string::npos;
    if (shared && statements[i].root == "st") earlier = static_cast<int>(i);
    if (!shared || statements[i].root != "ld") continue;
    Report report;
    report.rule = 16;
    report.message = "reads too early";
    report.place = ptxsim::place_of(*m.program, static_cast<uint32_t>(i));
    report.count = 32;
    report.statement = static_cast<int>(i);
    report.other_statement = earlier;
    m.reports.add(report);
  }
  return m;
}

size_t findings(const std::string& body) {
  const Made m = made(body);
  return fold(*m.program, m.reports).size();
}

const std::string kStore = "  mov.u32 %r1, tile;\n  st.shared.u32 [%r1], %r0;\n";

TEST(FoldedReports, UnrolledCopiesAreOne) {
  const Made m = made(kStore + R"(
  ld.shared.u32 %r2, [%r1];
  ld.shared.u32 %r3, [%r1+4];
  add.u32 %r5, %r2, %r3;
  ld.shared.u32 %r4, [%r1+8];)");
  const auto folded = fold(*m.program, m.reports);
  ASSERT_EQ(folded.size(), 1u);
  EXPECT_EQ(folded[0].members, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(folded[0].count, 96u);
  const std::string text = to_string(folded[0], m.reports);
  EXPECT_NE(text.find("seen:    96 times\n"), std::string::npos) << text;
  EXPECT_NE(text.find("3 findings at 3 lines from "), std::string::npos) << text;
  EXPECT_EQ(count(folded, m.reports, Severity::kError), 1u);
}

TEST(FoldedReports, CopiesWithAPollBetweenThemAreOne) {
  EXPECT_EQ(findings(kStore + R"(
  ld.shared.u32 %r2, [%r1];
again:
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra again;
  ld.shared.u32 %r3, [%r1+4];)"),
            1u);
}

TEST(FoldedReports, AnotherOpcodeIsAnother) {
  EXPECT_EQ(findings(kStore + R"(
  ld.shared.u32 %r2, [%r1];
  ld.volatile.shared.u32 %r3, [%r1+4];)"),
            2u);
}

TEST(FoldedReports, AnotherVariableIsAnother) {
  EXPECT_EQ(findings(kStore + R"(
  ld.shared.u32 %r2, [tile];
  ld.shared.u32 %r3, [full];)"),
            2u);
}

TEST(FoldedReports, AnEarlierStatementThatDiffersKeepsThemApart) {
  EXPECT_EQ(findings(kStore + R"(
  ld.shared.u32 %r2, [%r1];
  st.shared.u32 [tile], %r0;
  ld.shared.u32 %r3, [%r1+4];)"),
            2u);
}

TEST(FoldedReports, TwoLoopsAreTwo) {
  EXPECT_EQ(findings(kStore + R"(
one:
  ld.shared.u32 %r2, [%r1];
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra one;
two:
  ld.shared.u32 %r3, [%r1+4];
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra two;)"),
            2u);
}

TEST(FoldedReports, TheSidesOfABranchAreTwo) {
  EXPECT_EQ(findings(kStore + R"(
  setp.eq.u32 %p1, %r0, 0;
  @%p1 bra other;
  ld.shared.u32 %r2, [%r1];
  bra end;
other:
  ld.shared.u32 %r3, [%r1+4];
end:)"),
            2u);
}

TEST(FoldedReports, ASourceLineSaysWhatIsACopy) {
  const std::string file = "\n  ret;\n}\n.file 1 \"a.cu\"\n.visible .entry other()\n{";
  EXPECT_EQ(findings(kStore + R"(
  .loc 1 5 1
  ld.shared.u32 %r2, [%r1];
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra end;
  ld.shared.u32 %r3, [%r1+4];
end:)" + file),
            1u);
  EXPECT_EQ(findings(kStore + R"(
  .loc 1 5 1
  ld.shared.u32 %r2, [%r1];
  .loc 1 6 1
  ld.shared.u32 %r3, [%r1+4];)" +
                     file),
            2u);
}

}  // namespace
