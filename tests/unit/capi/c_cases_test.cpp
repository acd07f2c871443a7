#include "c_cases.h"

#include <gtest/gtest.h>

#include <vector>

#include "dualgemm/dualgemm.h"

namespace {

void report(const char* file, int line, const char* text) { ADD_FAILURE_AT(file, line) << text; }

std::vector<c_case> all_cases() {
  std::vector<c_case> cases;
  for (const c_case* table : {c_struct_cases, c_format_cases, c_quantize_cases, c_linear_cases,
                              c_mlp_cases, c_experts_cases, c_run_cases, c_activation_cases}) {
    for (; table->name != nullptr; ++table) cases.push_back(*table);
  }
  return cases;
}

class CCase : public ::testing::TestWithParam<c_case> {};

TEST_P(CCase, Passes) { GetParam().run(report); }

INSTANTIATE_TEST_SUITE_P(Capi, CCase, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
