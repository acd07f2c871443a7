// The rules on made-up samples: what may be ranked, what is noise, what is a defect.
#include "tools/measure/judgement.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tools/measure/peaks.hpp"

namespace dualgemm::measure {
namespace {

QuietResult result(double median, double spread, int samples, int quiet) {
  QuietResult made;
  made.median_seconds = median;
  made.relative_spread = spread;
  made.samples = samples;
  made.quiet_samples = quiet;
  made.disturbed = quiet < samples;
  return made;
}

TEST(Judgement, SettledTakesThreeQuietSamples) {
  EXPECT_TRUE(is_settled(result(1.0, 0.01, 3, 3)));
  EXPECT_FALSE(is_settled(result(1.0, 0.01, 3, 2)));  // a disturbed one stands in
  EXPECT_FALSE(is_settled(result(1.0, 0.0, 1, 1)));
  EXPECT_FALSE(is_settled(result(0.0, 0.0, 3, 3)));  // no time
  EXPECT_EQ(why_unsettled(result(1.0, 0.0, 3, 1)), "1 quiet sample; 3 are needed");
  EXPECT_EQ(why_unsettled(result(1.0, 0.0, 9, 9)), "");
}

TEST(Judgement, OneSampleHasNoNoise) {
  EXPECT_EQ(noise_text(result(1.0, 0.0, 1, 1)), "n/a (1)");
  EXPECT_EQ(noise_text(result(1.0, 0.0, 2, 2)), "n/a (2)");
  EXPECT_EQ(noise_text(result(1.0, 0.0, 3, 3)), "0.0");
  EXPECT_EQ(noise_text(result(1.0, 0.0134, 5, 5)), "1.3");
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

TEST(Judgement, MediansWithinTheLargerSpreadAreATie) {
  EXPECT_TRUE(within_noise({1.00, 0.03}, {1.02, 0.0}));
  EXPECT_TRUE(within_noise({1.02, 0.0}, {1.00, 0.03}));
  EXPECT_FALSE(within_noise({1.00, 0.01}, {1.02, 0.01}));
}

TEST(Judgement, PeaksComeFromSettledCasesOnly) {
  const std::vector<PeakCase> cases = {
      {"dot", "", &Peaks::vnni_zmm_gops, 10.0, {}},
      {"read_a", "", &Peaks::read_gbps, 4.0, {}},
      {"read_b", "", &Peaks::read_gbps, 4.0, {}},
      {"fma", "", &Peaks::fma_zmm_gflops, 8.0, {}},
  };
  const std::vector<QuietResult> timings = {result(0.1, 0, 3, 3), result(0.4, 0, 3, 3),
                                            result(0.2, 0, 3, 3), result(0.1, 0, 3, 1)};
  const Peaks peaks = settled_peaks(cases, timings, 2);
  EXPECT_DOUBLE_EQ(peaks.vnni_zmm_gops, 100.0);
  EXPECT_DOUBLE_EQ(peaks.read_gbps, 20.0);  // the better of the two
  EXPECT_EQ(peaks.fma_zmm_gflops, 0.0);     // disturbed: unknown, not low
  EXPECT_EQ(peaks.threads, 2);
}

// A budget that ends after one sample leaves a time, which is no basis for a comparison.
TEST(Judgement, SpentBudgetIsNotSettled) {
  double now = 0;
  const QuietWorld world{.now = [&] { return now; },
                         .other_cpu = [] { return 0.0; },
                         .sleep = [&](double seconds) { now += seconds; },
                         .canary = {}};
  const QuietReport report =
      run_quietly({{"case", [&] { now += 10; }}}, QuietOptions{.budget_seconds = 5}, world);
  EXPECT_EQ(report.cases[0].samples, 1);
  EXPECT_FALSE(report.cases[0].disturbed);
  EXPECT_FALSE(is_settled(report.cases[0]));
}

}  // namespace
}  // namespace dualgemm::measure
