// What a report says, and how equal ones are counted.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ptxsim/case/case.hpp"

namespace {

using ptxsim::Report;
using ptxsim::Reports;
using ptxsim::Severity;

ptxsim::CaseResult run_rule(const std::string& name, ptxsim::Schedule schedule) {
  const std::string path = std::string(PTXSIM_TEST_FOLDER) + "/rules/" + name + ".ptx";
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  auto description = ptxsim::parse_case(ptxsim::case_text(text.str()), "");
  EXPECT_TRUE(description.ok()) << path;
  description->strict = false;
  auto module = ptxsim::load(text.str(), name + ".ptx");
  EXPECT_TRUE(module.ok()) << path;
  auto program = ptxsim::decode(*module, description->entry);
  EXPECT_TRUE(program.ok()) << path;
  ptxsim::Options options;
  options.schedule = schedule;
  return ptxsim::run_case(*description, *program, options);
}

const Report* find(const Reports& reports, int rule) {
  for (const Report& report : reports.list)
    if (report.rule == rule) return &report;
  return nullptr;
}

TEST(SanitizerReport, NamesBothAccessesTheOrderingAndTheFix) {
  const ptxsim::CaseResult result = run_rule("R1_bad", ptxsim::Schedule::kEager);
  ASSERT_EQ(result.run.reports.list.size(), 1u);
  EXPECT_EQ(to_string(result.run.reports.list[0]),
            "R1_bad.ptx:25: error: 'cp.async.bulk.global.shared::cta.bulk_group [%out], [%tile], "
            "256;' reads shared memory 0x400 through the async proxy; ordinary stores wrote it, "
            "with no proxy fence between [R1]\n"
            "  by:      CTA (0,0,0), warp 0, lane 0\n"
            "  earlier: 'st.shared.u32 [%at], %t;' at R1_bad.ptx:20, by CTA (0,0,0), warp 0, lane "
            "1\n"
            "  missing: fence.proxy.async between the write and the synchronisation that hands it "
            "over\n"
            "  fix:     execute fence.proxy.async.shared::cta in each writing thread, before the "
            "barrier or the arrive\n"
            "  seen:    63 times\n");
}

TEST(SanitizerReport, EqualFindingsAreCountedAndDifferentOnesKept) {
  Reports reports;
  Report report;
  report.rule = 2;
  report.statement = 7;
  report.other_statement = 3;
  reports.add(report);
  reports.add(report);
  report.other_statement = 4;
  reports.add(report);
  ASSERT_EQ(reports.list.size(), 2u);
  EXPECT_EQ(reports.list[0].count, 2u);
  EXPECT_EQ(reports.count(Severity::kError), 2u);
  EXPECT_TRUE(reports.count_up(2, Severity::kError, 7, 4));
  EXPECT_FALSE(reports.count_up(3, Severity::kError, 7, 4));
  EXPECT_EQ(reports.list[1].count, 2u);
}

TEST(SanitizerReport, TheMoreSevereOfEqualFindingsStays) {
  Reports reports;
  Report report;
  report.rule = 4;
  report.severity = Severity::kWarning;
  report.statement = 7;
  report.message = "may be";
  reports.add(report);
  EXPECT_TRUE(reports.count_up(4, Severity::kAdvisory, 7, -1));
  EXPECT_FALSE(reports.count_up(4, Severity::kError, 7, -1));
  report.severity = Severity::kError;
  report.message = "is";
  reports.add(report);
  report.severity = Severity::kAdvisory;
  reports.add(report);
  ASSERT_EQ(reports.list.size(), 1u);
  EXPECT_EQ(reports.list[0].severity, Severity::kError);
  EXPECT_EQ(reports.list[0].message, "is");
  EXPECT_EQ(reports.list[0].count, 4u);
}

TEST(SanitizerReport, WarningsAndAdvisoriesAreErrorsOnlyWhenStrict) {
  for (const auto& [name, rule, severity] : {std::tuple{"R4_bad", 4, Severity::kWarning},
                                             std::tuple{"R7_bad", 7, Severity::kAdvisory}}) {
    const ptxsim::CaseResult result = run_rule(name, ptxsim::Schedule::kLazy);
    const Report* report = find(result.run.reports, rule);
    ASSERT_NE(report, nullptr) << name;
    EXPECT_EQ(report->severity, severity) << name;
    EXPECT_EQ(result.run.reports.count(Severity::kError), 0u) << name;
  }
}

TEST(SanitizerReport, GoodKernelsRaiseNothingAtAnyLevel) {
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(PTXSIM_TEST_FOLDER) + "/rules")) {
    const std::string name = file.path().stem().string();
    if (!name.ends_with("_good")) continue;
    for (const auto schedule :
         {ptxsim::Schedule::kEager, ptxsim::Schedule::kLazy, ptxsim::Schedule::kRandom}) {
      const ptxsim::CaseResult result = run_rule(name, schedule);
      for (const Report& report : result.run.reports.list) ADD_FAILURE() << to_string(report);
    }
  }
}

}  // namespace
