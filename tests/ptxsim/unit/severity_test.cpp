// How severe the findings of rules/ are: an error is what goes wrong on hardware. Each kernel under
// every schedule, without "strict", which makes everything an error.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "ptxsim/case/case.hpp"

namespace {

using ptxsim::Schedule;
using ptxsim::Severity;

constexpr Severity kError = Severity::kError, kWarning = Severity::kWarning;

struct Expected {
  const char* kernel;
  int rule;
  Severity severity;
};

constexpr Expected kExpected[] = {
    {"R1_own_bad", 1, kError},
    {"R1_bystander_bad", 1, kError},
    {"R3_bad", 3, kError},
    {"R3_lane_bad", 3, kWarning},
    {"R3_copies_bad", 3, kWarning},
    {"R3_values_bad", 3, kError},
    {"R4_bad", 4, kWarning},
    {"R4_alloc_bad", 4, kWarning},
    {"R4_used_bad", 4, kWarning},
    {"R4_flight_bad", 4, kError},
    {"R5_half_bad", 5, kError},
    {"R6_bad", 6, kError},
    {"R6_read_bad", 6, kWarning},
    {"R6_partly_bad", 6, kError},
    {"R9_ld_bad", 9, kError},
    {"R9_read_bad", 9, kWarning},
    {"R9_relaxed_bad", 9, kError},
    {"R10_bad", 10, kWarning},
    {"R10_commit_bad", 10, kWarning},
    {"R10_relaxed_bad", 10, kError},
    {"R15_bad", 15, kError},
    {"R15_other_bad", 15, kError},
    {"R15_unused_bad", 15, kWarning},
    {"R16_bad", 16, kError},
    {"R16_same_bad", 16, kWarning},
    {"R16_values_bad", 16, kError},
    {"R16_over_bad", 16, kWarning},
    {"R16_relaxed_bad", 16, kError},
};

class SeverityOf : public testing::TestWithParam<Expected> {};

TEST_P(SeverityOf, Rule) {
  const Expected& expected = GetParam();
  std::ifstream file(std::string(PTXSIM_TEST_FOLDER) + "/rules/" + expected.kernel + ".ptx",
                     std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  auto description = ptxsim::parse_case(ptxsim::case_text(text.str()), "");
  ASSERT_TRUE(description.ok()) << to_string(description.error());
  description->strict = false;
  auto module = ptxsim::load(text.str(), expected.kernel);
  ASSERT_TRUE(module.ok()) << to_string(module.error());
  auto program = ptxsim::decode(*module, description->entry);
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  for (const Schedule schedule : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
    ptxsim::Options options;
    options.schedule = schedule;
    const ptxsim::RunResult run = ptxsim::run_case(*description, *program, options).run;
    bool seen = false;
    for (const ptxsim::Report& report : run.reports.list) {
      if (report.rule == expected.rule) {
        EXPECT_EQ(report.severity, expected.severity) << to_string(report);
        seen = true;
      } else {
        EXPECT_NE(report.severity, kError) << to_string(report);
      }
    }
    EXPECT_TRUE(seen) << "schedule " << static_cast<int>(schedule);
  }
}

std::string name_of(const testing::TestParamInfo<Expected>& info) { return info.param.kernel; }

INSTANTIATE_TEST_SUITE_P(Rules, SeverityOf, testing::ValuesIn(kExpected), name_of);

}  // namespace
