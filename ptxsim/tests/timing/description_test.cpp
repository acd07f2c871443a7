// Launches described by their structure: what they become, computed by hand, and what is refused.
#include "timing/description.hpp"

#include <gtest/gtest.h>

#include <string>

#include "timing/round_values.hpp"
#include "timing/timeline_svg.hpp"

namespace {

using namespace ptxsim::timing;
using ptxsim_test::kExact;
using ptxsim_test::round_values;

// 65 536 multiply-adds, which take the tensor cores 1 us with kRate.
const std::string kLaunch = R"({"name": "small", "clusters": 2,
 "pipeline": {"stages": 2, "stages_per_tile": 3, "stage_bytes": 500, "l2_bytes": 0},
 "mma": {"per_stage": 1, "m": 128, "n": 8, "k": 64, "bits": 16},
 "epilogue": {"warps": 1, "steps": 1}})";
constexpr double kRate = 65.536;

Values values() {
  Values v = round_values();
  at(v, Parameter::kTensorRate) = kRate;
  at(v, Parameter::kSharedBandwidth) = 1e6;
  return v;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t found = text.find(from);
  EXPECT_NE(found, std::string::npos) << from;
  return text.replace(found, from.size(), to);
}

Description description(const std::string& text) {
  auto list = parse_descriptions(text, "launch.json");
  EXPECT_TRUE(list.ok()) << to_string(list.error());
  return list->at(0);
}

// Setup until 0.3; loads arrive at 1.8 (the first) and 2.3 (0.5 of transfer later). Products: 1.9
// to 2.9, then until 3.9. The third load begins at 3.2, when the first commit is known, and comes
// at 4.2; its product ends at 5.3, is visible at 5.5, and the epilogue knows at 5.6: TMEM 0.04,
// last stores 0.05.
TEST(Description, APipelineTakesWhatTheHandComputes) {
  const LaunchTime time = time_of(work_of(description(kLaunch)), values());
  EXPECT_EQ(time.waves, 1u);
  EXPECT_NEAR(time.first_wave, 5.69, kExact);
  EXPECT_NEAR(time.total, 2 + 5.69 + 0.15, kExact);
}

TEST(Description, AThirdStageHidesTheLatency) {
  const std::string three = replaced(kLaunch, "\"stages\": 2", "\"stages\": 3");
  // Loads at 1.8, 2.3, 2.8; products one after the other until 4.9.
  EXPECT_NEAR(time_of(work_of(description(three)), values()).first_wave, 4.9 + 0.2 + 0.1 + 0.09,
              kExact);
}

// Three clusters on two SMs: the second wave has neither a setup nor a cold first load, and a
// switch before it.
TEST(Description, WavesFollowEachOther) {
  const std::string three = replaced(kLaunch, "\"clusters\": 2", "\"clusters\": 3");
  const LaunchTime time = time_of(work_of(description(three)), values());
  EXPECT_EQ(time.waves, 2u);
  EXPECT_NEAR(time.later_waves, 5.69 - 0.3 - 0.5 + 0.6, kExact);
}

TEST(Description, ADependentLaunchHasASmallerGap) {
  const std::string dependent =
      replaced(kLaunch, "\"clusters\": 2", "\"clusters\": 2, \"dependent_launch\": true");
  EXPECT_NEAR(time_of(work_of(description(dependent)), values()).total, 0.5 + 5.69 + 0.15, kExact);
}

// A warpgroup decodes for 1.5 us while its products take 1, then waits 0.2 for them: 1.9 to 3.6,
// until 5.3, until 7.0. Two take turns and share the schedulers: instructions until 3.4, 4.9 and
// 6.4, so that only the last wait counts.
TEST(Description, ConsumersDecodeAndMultiply) {
  for (const int count : {1, 2}) {
    const std::string text = replaced(kLaunch, "\"mma\":",
                                      "\"consumers\": {\"count\": " + std::to_string(count) +
                                          ", \"slots_per_stage\": 1500}, \"mma\":");
    EXPECT_NEAR(time_of(work_of(description(text)), values()).first_wave,
                (count == 1 ? 7.0 : 6.6) + 0.1 + 0.09, kExact)
        << count;
  }
}

// Two warps of mma.sync have half of every stage each, at half of the tensor cores' rate: 1 us for
// the first of them, 2 for both. Loads arrive at 1.8 and 2.3; products from 1.9 to 3.9, until 5.9.
// The third load begins 0.1 after 3.9 and is there 0.1 after 5.0, before the second stage ends; its
// products end at 7.9, and one warp's, which comes first, at 6.9. Each has an epilogue in its
// registers: 1 MUFU instruction for 32 elements, 0.008 us, and last stores.
TEST(Description, WarpsOfMmaSyncShareAStageAndTheEpilogue) {
  std::string text =
      replaced(kLaunch, "\"mma\": {", "\"consumers\": {\"count\": 2}, \"mma\": {\"sync\": true, ");
  text = replaced(text, "\"warps\": 1, \"steps\": 1",
                  "\"steps\": 1, \"elements\": 64, \"mufu_per_element\": 1");
  const LaunchWork work = work_of(description(text));
  EXPECT_NEAR(time_of(work, values()).first_wave, 7.9 + 0.008 + 0.05, kExact);
  for (const Demand& d : work.classes.at(0).work.demands)
    EXPECT_TRUE(d.server != Server::kTensor && d.server != Server::kTmem);
}

// 400,000 bytes of fragments take 4 us of a bandwidth of 100 bytes a clk where products take 2.
TEST(Description, FragmentsOfMmaSyncComeFromSharedMemory) {
  Values slow = values();
  at(slow, Parameter::kSharedBandwidth) = 100;
  const std::string text = replaced(
      kLaunch, "\"mma\": {",
      "\"consumers\": {\"count\": 4, \"fragment_bytes\": 400000}, \"mma\": {\"sync\": true, ");
  const std::string rest = replaced(text, "\"warps\": 1, ", "");
  EXPECT_NEAR(time_of(work_of(description(rest)), slow).first_wave, 1.9 + 3 * 4 + 0.05, kExact);
}

// Two operands share A: 64 + 64 columns, 4096 bytes of A once and 2048 of B twice; in a pair 1536
// of B.
TEST(Description, TheCollectorReadsAOnce) {
  for (const bool shares : {false, true}) {
    const std::string text = replaced(
        kLaunch, R"("per_stage": 1, "m": 128, "n": 8, "k": 64, "bits": 16)",
        std::string(R"("per_stage": 2, "n": 64, "shares_a": )") + (shares ? "true" : "false"));
    const Work work = work_of(description(text)).classes.at(0).work;
    double bytes = 0;
    for (const Demand& d : work.demands) bytes += d.server == Server::kShared ? d.amount : 0;
    EXPECT_EQ(bytes, 3 * ((shares ? 1 : 2) * 4096.0 + 2 * 2048.0));
  }
}

// 98,304 multiply-adds, counted as of 16 bits, take 0.098304 us of all power, 3 MB of memory 30:
// both add up; L2 that holds them leaves the first. Faster than a rate that was seen it is never.
TEST(Description, MultiplicationsAndMemoryShareThePower) {
  std::string text = replaced(kLaunch, "\"bits\": 16", "\"bits\": 4");
  text = replaced(text, "\"l2_bytes\": 0", "\"l2_bytes\": 0, \"unique_bytes\": 3000000");
  Values v = values();
  at(v, Parameter::kHbm) = at(v, Parameter::kSustainedNarrow) = 1e6;
  at(v, Parameter::kPowerMemory) = 0.1;
  at(v, Parameter::kL2Bytes) = 100;
  LaunchWork work = work_of(description(text));
  const auto least = [&] {
    const LaunchTime time = time_of(work, v);
    return time.power + time.first_wave;
  };
  EXPECT_NEAR(least(), 30.098304, kExact);
  at(v, Parameter::kSustainedNarrow) = 0.001;
  EXPECT_NEAR(least(), 98.304, kExact);
  at(v, Parameter::kPowerNarrow) = 0.0005;
  EXPECT_NEAR(least(), 196.608 + 30, kExact);
  work.is_warm = true;
  EXPECT_NEAR(least(), 196.608, kExact);
}

TEST(Description, TheTimelineShowsEveryRole) {
  const LaunchWork work = work_of(description(kLaunch));
  const std::string svg =
      timeline_svg(work.classes.at(0).work, time_of(work, values()).timeline, "a < b");
  for (const char* part : {"<svg ", "a &lt; b", "CTA 0 load", "CTA 0 TMA", "tensor cores",
                           "CTA 0 epilogue 0", "mma, stage 1: 2.900 to 3.900", "</svg>"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
}

struct Bad {
  const char *from, *to, *message;
};

TEST(Description, WhatIsNotValidIsRefusedWithItsPlace) {
  const Bad bad[] = {
      {"\"clusters\": 2", "\"clusters\": 0",
       "launch.json:1:31: error: case: clusters: 0; must be at least 1"},
      {"\"clusters\": 2", "\"clusters\": 2, \"tile\": 3", "tile"},
      {"\"stage_bytes\": 500", "\"stage_bytes\": -1",
       "pipeline.stage_bytes: -1; must be at least 0"},
      {"\"bits\": 16", "\"bits\": 5", "mma.bits: 5; must be 4, 8 or 16"},
      {"\"stages_per_tile\": 3", "\"stages_per_tile\": 1000000", "pieces of work; at most 1000000"},
      {"\"mma\": {", "\"mna\": {", "mna"},
      {"\"mma\": {", "\"mma\": {\"sync\": true, ", "mma.sync needs consumers"},
      {"\"mma\": {", "\"consumers\": {}, \"mma\": {\"sync\": true, ",
       "epilogue.warps: with mma.sync"},
      {"\"mma\": {", "\"consumers\": {\"fragment_bytes\": 1}, \"mma\": {", "only of mma.sync"},
  };
  for (const Bad& b : bad) {
    const auto list = parse_descriptions(replaced(kLaunch, b.from, b.to), "launch.json");
    ASSERT_FALSE(list.ok()) << b.to;
    EXPECT_NE(to_string(list.error()).find(b.message), std::string::npos)
        << to_string(list.error());
  }
}

}  // namespace
