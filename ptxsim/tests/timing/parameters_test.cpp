// The files of parameters: those built in are whole, bad ones are refused; draws stay within what
// is known.
#include "timing/parameters.hpp"

#include <gtest/gtest.h>

#include <string>

#include "timing/description.hpp"
#include "timing/estimate.hpp"

namespace {

using namespace ptxsim::timing;

GpuParameters built_in(const char* gpu) {
  auto parameters = parse_parameters(built_in_parameters(gpu), gpu);
  EXPECT_TRUE(parameters.ok()) << to_string(parameters.error());
  return *parameters;
}

std::string refusal(const std::string& from, const std::string& to) {
  std::string text(built_in_parameters("b200"));
  const size_t found = text.find(from);
  EXPECT_NE(found, std::string::npos) << from;
  const auto parameters = parse_parameters(text.replace(found, from.size(), to), "gpu.json");
  return parameters.ok() ? "taken" : to_string(parameters.error());
}

TEST(Parameters, EveryGpuThatIsBuiltInHasAll) {
  for (const char* gpu :
       {"a100", "b200", "gb10", "gb300", "h100", "h200", "l40s", "rtx3090", "rtx4090", "rtx5090"}) {
    EXPECT_FALSE(built_in(gpu).name.empty()) << gpu;
    EXPECT_NE(built_in_gpus().find(gpu), std::string::npos) << gpu;
  }
  EXPECT_EQ(built_in("b200").name, "NVIDIA B200");
  EXPECT_EQ(built_in("h200").name, "NVIDIA H200");
  EXPECT_EQ(at(built_in("b200").values(), Parameter::kNumSms), 148);
  EXPECT_EQ(at(built_in("h200").values(), Parameter::kNumSms), 132);
  EXPECT_TRUE(built_in_parameters("b100").empty());
}

TEST(Parameters, WhatIsNotValidIsRefused) {
  EXPECT_NE(refusal("\"setup_us\"", "\"set_up_us\"").find("setup_us"), std::string::npos);
  EXPECT_NE(refusal("\"kind\": \"fitted\"", "\"kind\": \"guessed\"")
                .find("'guessed'; must be one of measured, published, derived, fitted, assumed"),
            std::string::npos);
  EXPECT_NE(refusal("\"value\": 1.6", "\"value\": 2.6")
                .find("2.6; must lie from low, 1.45, to high, 1.95"),
            std::string::npos);
  EXPECT_NE(refusal("\"low\": 1.45", "\"low\": 0").find("0; must be above 0"), std::string::npos);
  EXPECT_NE(refusal("{\"gpu\"", "{\"cpu\"").find("cpu"), std::string::npos);
  EXPECT_NE(refusal("\"exit_us\"", "\"more_us\": 1, \"exit_us\"").find("no parameter 'more_us'"),
            std::string::npos);
}

TEST(Parameters, AnIntervalIsThatOfItsSeed) {
  auto launch = parse_descriptions(R"({"name": "x",
    "pipeline": {"stage_bytes": 32768, "unique_bytes": 32768}, "mma": {}, "epilogue": {}})",
                                   "x");
  ASSERT_TRUE(launch.ok()) << to_string(launch.error());
  const LaunchWork work = work_of(launch->at(0));
  GpuParameters gpu = built_in("b200");
  const Interval one = interval_of(work, gpu, 50, 7), same = interval_of(work, gpu, 50, 7);
  EXPECT_EQ(one.low, same.low);
  EXPECT_LT(one.low, one.median);
  EXPECT_LT(one.median, one.high);
  EXPECT_NE(one.median, interval_of(work, gpu, 50, 8).median);
  for (Known& known : gpu.known) known.low = known.high = known.value;
  const Interval exact = interval_of(work, gpu, 5, 7);
  EXPECT_NEAR(exact.low, time_of(work, gpu.values()).total, 1e-9);
  EXPECT_NEAR(exact.high, exact.low, 1e-9);
}

}  // namespace
