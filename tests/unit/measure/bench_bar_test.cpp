// The bars of bench_cpu on made-up figures.
#include "bench/cpu/bar.hpp"

#include <gtest/gtest.h>

namespace dualgemm::bench {
namespace {

measure::Estimate figure(double value, double low, double high) {
  return {value, {low, high, 0.96}};
}

TEST(BenchBar, IsMetOrNot) {
  EXPECT_EQ((Bar{"x", figure(0.8, 0.7, 0.9), 0.5, true}).verdict(), Verdict::kMet);
  EXPECT_EQ((Bar{"x", figure(0.4, 0.3, 0.45), 0.5, true}).verdict(), Verdict::kNotMet);
  EXPECT_EQ((Bar{"x", figure(1.04, 1.03, 1.05), 1.05, false}).verdict(), Verdict::kMet);
  EXPECT_EQ((Bar{"x", figure(1.06, 1.055, 1.07), 1.05, false}).verdict(), Verdict::kNotMet);
}

TEST(BenchBar, AnIntervalThatHoldsTheBoundIsNotJudged) {
  const Bar bar{.what = "x", .value = figure(0.52, 0.45, 0.6), .bound = 0.5, .at_least = true};
  EXPECT_EQ(bar.verdict(), Verdict::kNotJudged);
  EXPECT_EQ(bar.why(), "the interval holds the bound");
  const Bar once{.what = "x", .value = {0.8, {}}, .bound = 0.5, .at_least = true};
  EXPECT_EQ(once.verdict(), Verdict::kNotJudged);
  EXPECT_EQ(once.why(), "one round has no interval");
}

TEST(BenchBar, MoreThanAPeakIsADefectAndNotAnAchievement) {
  const Bar share{.what = "x",
                  .value = figure(1.2, 1.1, 1.3),
                  .bound = 0.5,
                  .at_least = true,
                  .is_share = true};
  EXPECT_EQ(share.verdict(), Verdict::kNotJudged);
  EXPECT_NE(share.why().find("defect"), std::string::npos);
  const Bar ratio{.what = "x", .value = figure(2.8, 2.7, 2.9), .bound = 2.5, .at_least = true};
  EXPECT_EQ(ratio.verdict(), Verdict::kMet);  // times another program: may exceed 1
}

}  // namespace
}  // namespace dualgemm::bench
