// How severe the findings of rules/ are: an error is what goes wrong on hardware. Each kernel under
// every schedule, without "strict", which makes everything an error.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

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
    {"R1_cp_async_bad", 1, kError},
    {"R1_product_bad", 1, kWarning},
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
    {"R9_arrival_bad", 9, kWarning},
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
    {"R16_answer_bad", 16, kWarning},
    {"R16_matrix_bad", 16, kWarning},
    {"R16_relaxed_bad", 16, kError},
    {"R16_tx_bad", 16, kWarning},
    {"R16_stages_bad", 16, kError},
};

std::string text_of(const std::string& kernel) {
  std::ifstream file(std::string(PTXSIM_TEST_FOLDER) + "/rules/" + kernel + ".ptx",
                     std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<ptxsim::Report> reports_of(const std::string& text, Schedule schedule) {
  auto description = ptxsim::parse_case(ptxsim::case_text(text), "");
  EXPECT_TRUE(description.ok()) << to_string(description.error());
  description->strict = false;
  auto module = ptxsim::load(text, "kernel.ptx");
  EXPECT_TRUE(module.ok()) << to_string(module.error());
  auto program = ptxsim::decode(*module, description->entry);
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  ptxsim::Options options;
  options.schedule = schedule;
  return ptxsim::run_case(*description, *program, options).run.reports.list;
}

class SeverityOf : public testing::TestWithParam<Expected> {};

TEST_P(SeverityOf, Rule) {
  const Expected& expected = GetParam();
  for (const Schedule schedule : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
    bool seen = false;
    for (const ptxsim::Report& report : reports_of(text_of(expected.kernel), schedule)) {
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

// Variants of a load whose register is used after the arrival that frees the memory.
struct Variant {
  const char* name;
  const char* from;  // in R4_flight_bad
  const char* to;
  std::vector<Severity> severities;  // of the reports
};

void expect_reports(const Variant& variant) {
  SCOPED_TRACE(variant.name);
  std::string text = text_of("R4_flight_bad");
  const size_t at = text.find(variant.from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, std::string(variant.from).size(), variant.to);
  for (const Schedule schedule : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
    std::vector<Severity> severities;
    for (const ptxsim::Report& report : reports_of(text, schedule)) {
      EXPECT_EQ(report.rule, 4) << to_string(report);
      severities.push_back(report.severity);
    }
    EXPECT_EQ(severities, variant.severities) << "schedule " << static_cast<int>(schedule);
  }
}

TEST(LoadsOnTheWay, AreErrorsWhereTheirResultIsUsedAfterTheArrival) {
  const char* load = "  ld.shared.u32 %a, [%at];\n";
  const char* use = "  add.s32 %a, %a, 1;\n";
  const std::string both = std::string(load) + use;
  const Variant variants[] = {
      {"as it is", load, load, {kError}},
      {"a mov is no use", load, "  ld.shared.u32 %b, [%at];\n  mov.b32 %a, %b;\n", {kError}},
      {"a use of one register is one of the load",
       load,
       "  ld.shared.v2.u16 {%a, %b}, [%at];\n  xor.b32 %b, %b, %t;\n",
       {kWarning}},
      {"used", load, both.c_str(), {kWarning}},
      {"used by the last store only", use, "", {kError}},
      {"fenced", load, "  ld.shared.u32 %a, [%at];\n  fence.proxy.async.shared::cta;\n", {}},
  };
  for (const Variant& variant : variants) expect_reports(variant);
  expect_reports({"never used", use, "  mov.b32 %a, 1;\n", {kWarning}});
}

}  // namespace
