// The rules on made-up samples: what is told apart, what is noise, what is a defect.
#include "tools/measure/judgement.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tools/measure/peaks.hpp"

namespace dualgemm::measure {
namespace {

CaseTimes times(std::vector<double> rounds) {
  CaseTimes made;
  made.rounds = std::move(rounds);
  summarise(made);
  return made;
}

TEST(Judgement, RatiosAreOfTheRoundsThatBothWereIn) {
  EXPECT_EQ(round_ratios(times({2, 0, 6, 8}), times({1, 1, 0, 2})), (std::vector<double>{2, 4}));
  EXPECT_TRUE(round_ratios(times({2}), times({0, 1})).empty());
}

TEST(Judgement, AnIntervalThatHoldsOneIsATie) {
  EXPECT_EQ(compare({0.98, 1.04, 0.96}), Comparison::kTied);
  EXPECT_EQ(compare({1.02, 1.04, 0.96}), Comparison::kSlower);
  EXPECT_EQ(compare({0.96, 0.98, 0.96}), Comparison::kFaster);
}

TEST(Judgement, LessThanTheResolutionIsATieHoweverSure) {
  EXPECT_EQ(compare({1.003, 1.004, 0.99}), Comparison::kTied);
  EXPECT_EQ(compare({0.996, 0.997, 0.99}), Comparison::kTied);
  EXPECT_EQ(compare({1.006, 1.007, 0.99}), Comparison::kSlower);
}

TEST(Judgement, OneRoundTellsNothingApart) {
  EXPECT_EQ(compare(median_interval({1.5})), Comparison::kTied);
  EXPECT_EQ(compare(median_interval({1.5, 1.6})), Comparison::kSlower);
}

TEST(Judgement, OneSampleHasNoNoise) {
  EXPECT_EQ(noise_text(times({1})), "n/a (1)");
  EXPECT_EQ(noise_text(times({1, 1, 0})), "n/a (2)");
  EXPECT_EQ(noise_text(times({1, 1, 1})), "0.0");
  EXPECT_EQ(noise_text(times({1.00, 0.98, 1.02, 1.04, 0.96})), "4.0");
  EXPECT_EQ(interval_text({1.934, 2.057, 0.96}), "1.93 .. 2.06");
  EXPECT_EQ(interval_text({}), "?");
}

TEST(Judgement, AShareAboveOneIsADefectOfTheMeasurement) {
  EXPECT_EQ(share_text(0.873), "87.3");
  EXPECT_EQ(share_text(1.0), "100.0");
  EXPECT_EQ(share_text(0.0), "-");
  for (const double share : {1.0004, 1.37, 40.0}) {
    EXPECT_TRUE(is_defect(share));
    EXPECT_EQ(share_text(share), "> 100 ?");
  }
}

// One sample is a peak, too: what is measured is known, however busy the machine was.
TEST(Judgement, PeaksAreThoseOfTheFastestLoop) {
  const std::vector<PeakCase> cases = {
      {"dot", "", &Peaks::vnni_zmm_gops, 10.0, {}},
      {"read_a", "", &Peaks::read_gbps, 4.0, {}},
      {"read_b", "", &Peaks::read_gbps, 4.0, {}},
      {"fma", "", &Peaks::fma_zmm_gflops, 8.0, {}},
  };
  const std::vector<CaseTimes> timings = {times({0.1, 0.1, 0.3}), times({0.4}), times({0.2}),
                                          times({})};
  const Peaks peaks = peaks_of(cases, timings, 2);
  EXPECT_DOUBLE_EQ(peaks.vnni_zmm_gops, 100.0);
  EXPECT_DOUBLE_EQ(peaks.read_gbps, 20.0);  // the better of the two
  EXPECT_EQ(peaks.fma_zmm_gflops, 0.0);     // not measured: unknown
  EXPECT_EQ(peaks.threads, 2);
}

}  // namespace
}  // namespace dualgemm::measure
