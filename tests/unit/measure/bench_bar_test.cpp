// The bars of bench_cpu on made-up figures.
#include "bench/cpu/bar.hpp"

#include <gtest/gtest.h>

namespace dualgemm::bench {
namespace {

TEST(BenchBar, IsMetOrNot) {
  EXPECT_EQ((Bar{"x", 0.8, 0.5, true}).verdict(), Verdict::kMet);
  EXPECT_EQ((Bar{"x", 0.4, 0.5, true}).verdict(), Verdict::kNotMet);
  EXPECT_EQ((Bar{"x", 1.04, 1.05, false}).verdict(), Verdict::kMet);
  EXPECT_EQ((Bar{"x", 1.06, 1.05, false}).verdict(), Verdict::kNotMet);
}

TEST(BenchBar, NoiseIsNotJudged) {
  const Bar bar{.what = "x", .value = 0.8, .bound = 0.5, .at_least = true, .settled = false};
  EXPECT_EQ(bar.verdict(), Verdict::kNotJudged);
  EXPECT_EQ(bar.why(), "too few quiet samples");
}

TEST(BenchBar, MoreThanAPeakIsADefectAndNotAnAchievement) {
  const Bar share{.what = "x", .value = 1.2, .bound = 0.5, .at_least = true, .is_share = true};
  EXPECT_EQ(share.verdict(), Verdict::kNotJudged);
  EXPECT_NE(share.why().find("defect"), std::string::npos);
  const Bar ratio{.what = "x", .value = 2.8, .bound = 2.5, .at_least = true};
  EXPECT_EQ(ratio.verdict(), Verdict::kMet);  // times another program: may exceed 1
}

}  // namespace
}  // namespace dualgemm::bench
