// Which of Blackwell's kernels a plan takes for up to 128 rows: the one that ptxsim's clock has as
// the fastest, or nearly. No GPU is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "dualgemm/dualgemm.hpp"
#include "support/inputs.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::cuda {
namespace {

// us of a launch of unpacked weights on 148 SMs, by `ptxsim time` of the kernels of 24 November
// 2026.
struct Clock {
  int64_t m, n, k;
  struct {
    double skinny_64, skinny_32, pair_64, pair_128, persistent, one_cta_64, one_cta_128,
        skinny_persistent;
  } us;

  double of(const std::string& kernel, int64_t tile_n) const {
    if (kernel == "skinny") return tile_n == 64 ? us.skinny_64 : us.skinny_32;
    if (kernel == "skinnypersistent") return us.skinny_persistent;
    if (kernel == "tcgen05pair") return tile_n == 64 ? us.pair_64 : us.pair_128;
    if (kernel == "tcgen05persistent") return us.persistent;
    return tile_n == 64 ? us.one_cta_64 : us.one_cta_128;
  }
  double least() const {
    return std::min({us.skinny_64, us.skinny_32, us.pair_64, us.pair_128, us.persistent,
                     us.one_cta_64, us.one_cta_128});
  }
};

// clang-format off
constexpr Clock kClock[] = {
    {33, 768, 2048, {7.71, 7.46, 6.91, 8.27, 9.33, 8.22, 10.48, 8}},
    {64, 768, 2048, {7.84, 7.58, 6.91, 8.27, 9.32, 8.22, 10.48, 8.08}},
    {65, 768, 2048, {8.97, 8.51, 6.91, 8.28, 9.34, 8.23, 10.49, 9.18}},
    {128, 768, 2048, {9.82, 9.36, 6.92, 8.3, 9.34, 8.24, 10.49, 10.01}},
    {1, 1024, 512, {5.63, 5.6, 5.88, 6.51, 7.4, 6.8, 8.46, 5.69}},
    {32, 1024, 512, {6.14, 6.08, 5.88, 6.51, 7.4, 6.8, 8.45, 6.22}},
    {64, 1024, 512, {6.81, 6.74, 5.89, 6.52, 7.4, 6.81, 8.46, 6.88}},
    {128, 1024, 512, {8.35, 8.28, 5.89, 6.55, 7.42, 6.82, 8.48, 8.49}},
    {1, 1024, 7168, {9.03, 8.46, 10.32, 14.66, 15.72, 12.99, 17.35, 9.38}},
    {32, 1024, 7168, {9.99, 9.2, 10.32, 14.66, 15.72, 12.99, 17.34, 10.41}},
    {64, 1024, 7168, {11.25, 10.38, 10.32, 14.67, 15.72, 13, 17.35, 12.02}},
    {128, 1024, 7168, {14.84, 12.96, 10.33, 14.7, 15.74, 13.02, 17.37, 15.21}},
    {33, 2048, 7168, {11.12, 10.26, 10.32, 14.67, 15.73, 13, 17.36, 11.94}},
    {64, 2048, 7168, {11.25, 10.38, 10.32, 14.67, 15.72, 13, 17.35, 12.02}},
    {65, 2048, 7168, {13.99, 12.11, 10.33, 14.68, 15.74, 13.01, 17.37, 14.37}},
    {128, 2048, 7168, {14.84, 12.96, 10.33, 14.7, 15.74, 13.02, 17.37, 15.21}},
    {33, 2880, 2880, {8.39, 8.02, 7.59, 9.55, 10.61, 9.2, 11.86, 8.68}},
    {64, 2880, 2880, {8.52, 8.14, 7.59, 9.55, 10.6, 9.2, 11.85, 8.76}},
    {65, 2880, 2880, {10.01, 9.23, 7.6, 9.56, 10.62, 9.21, 11.87, 10.26}},
    {128, 2880, 2880, {10.86, 10.08, 7.6, 9.58, 10.62, 9.21, 11.87, 11.09}},
    {33, 3072, 4096, {9.07, 8.69, 8.28, 10.83, 11.89, 10.18, 13.23, 9.54}},
    {64, 3072, 4096, {9.2, 8.82, 8.28, 10.83, 11.88, 10.18, 13.23, 9.62}},
    {65, 3072, 4096, {11.05, 9.95, 8.28, 10.84, 11.9, 10.19, 13.24, 11.34}},
    {128, 3072, 4096, {11.9, 10.8, 8.28, 10.86, 11.9, 10.19, 13.24, 12.18}},
    {33, 4096, 7168, {11.84, 11.83, 11.06, 14.67, 15.73, 13, 17.36, 12.01}},
    {64, 4096, 7168, {11.98, 11.97, 11.08, 14.67, 15.72, 13, 17.35, 12.09}},
    {65, 4096, 7168, {13.99, 12.57, 11.08, 14.68, 15.74, 13.01, 17.37, 14.37}},
    {128, 4096, 7168, {14.84, 13.45, 11.12, 14.7, 15.74, 13.02, 17.37, 15.21}},
    {1, 4736, 4096, {8.96, 8.96, 9.16, 10.83, 11.88, 10.17, 13.22, 9.01}},
    {32, 4736, 4096, {9.44, 9.44, 9.17, 10.83, 11.88, 10.17, 13.22, 9.52}},
    {64, 4736, 4096, {10.08, 10.06, 9.18, 10.84, 11.89, 10.18, 13.23, 10.15}},
    {128, 4736, 4096, {11.9, 11.54, 9.21, 10.88, 11.91, 10.19, 13.24, 12.18}},
    {1, 6144, 7168, {13.55, 17.22, 19.33, 14.78, 15.78, 14.55, 17.35, 13.6}},
    {32, 6144, 7168, {14.05, 18.44, 19.34, 14.78, 15.78, 14.57, 17.34, 14.13}},
    {64, 6144, 7168, {14.69, 20.25, 19.36, 14.79, 15.79, 14.59, 17.35, 14.76}},
    {128, 6144, 7168, {16.18, 24.31, 19.4, 14.82, 15.81, 14.65, 17.37, 16.32}},
    {33, 7168, 2048, {9, 12.63, 11.37, 8.81, 9.6, 9.03, 10.54, 9.11}},
    {64, 7168, 2048, {9.13, 12.88, 11.37, 8.82, 9.6, 9.03, 10.54, 9.2}},
    {65, 7168, 2048, {9.73, 14.41, 11.38, 8.84, 9.62, 9.04, 10.55, 9.9}},
    {128, 7168, 2048, {10.59, 16.15, 11.39, 8.86, 9.65, 9.06, 10.57, 10.73}},
    {1, 9472, 2048, {8.85, 11.34, 11.79, 9.66, 10.45, 9.85, 11.36, 8.91}},
    {32, 9472, 2048, {9.34, 12.28, 11.79, 9.66, 10.45, 9.86, 11.36, 9.41}},
    {64, 9472, 2048, {9.96, 13.52, 11.8, 9.68, 10.46, 9.87, 11.38, 10.03}},
    {128, 9472, 2048, {11.43, 16.51, 11.83, 9.72, 10.51, 9.9, 11.4, 11.56}},
    {1, 10240, 4096, {17.03, 19.19, 20.82, 21.23, 17.27, 20.74, 15.57, 13.23}},
    {32, 10240, 4096, {18.26, 20.76, 20.83, 21.24, 17.27, 20.74, 15.58, 13.74}},
    {64, 10240, 4096, {19.88, 22.94, 20.85, 21.27, 17.45, 20.77, 15.6, 14.37}},
    {128, 10240, 4096, {24.05, 27.98, 20.88, 21.35, 17.49, 20.82, 15.64, 17.42}},
    {1, 12288, 1024, {10, 12.48, 13.31, 11.89, 9.96, 12.34, 10.02, 7.7}},
    {32, 12288, 1024, {11.02, 13.89, 13.31, 11.89, 9.95, 12.34, 10.02, 8.2}},
    {64, 12288, 1024, {12.36, 15.78, 13.32, 11.91, 9.97, 12.36, 10.03, 9.16}},
    {128, 12288, 1024, {15.45, 20.42, 13.34, 11.98, 10, 12.39, 10.05, 12.17}},
    {1, 12288, 7168, {24.16, 26.65, 28.33, 30.53, 24.99, 29.02, 24.19, 21.86}},
    {32, 12288, 7168, {25.5, 28.07, 28.34, 30.54, 24.99, 29.03, 24.2, 22.38}},
    {64, 12288, 7168, {27.4, 30.09, 28.36, 30.58, 25.17, 29.06, 24.23, 23.02}},
    {128, 12288, 7168, {32.47, 35.59, 28.41, 30.67, 25.21, 29.12, 24.28, 24.66}},
    {1, 14336, 4096, {18.61, 25.21, 27.09, 21.25, 17.85, 20.73, 18.63, 16.33}},
    {32, 14336, 4096, {19.57, 27.25, 27.1, 21.26, 17.85, 20.74, 18.64, 16.84}},
    {33, 14336, 4096, {20.57, 29.55, 27.11, 21.28, 17.97, 20.76, 18.65, 17.37}},
    {64, 14336, 4096, {20.83, 30.05, 27.12, 21.28, 17.98, 20.76, 18.66, 17.47}},
    {65, 14336, 4096, {22.33, 33.11, 27.13, 21.32, 18, 20.78, 18.67, 18.17}},
    {128, 14336, 4096, {24.04, 36.57, 27.16, 21.37, 18.07, 20.81, 18.7, 19.01}},
    {1, 18944, 512, {9.32, 14.29, 15.23, 10.97, 9.58, 11.32, 9.34, 7.08}},
    {32, 18944, 512, {10.27, 16.16, 15.23, 10.97, 9.57, 11.31, 9.33, 7.67}},
    {64, 18944, 512, {11.52, 18.63, 15.24, 10.99, 9.58, 11.33, 9.34, 8.81}},
    {128, 18944, 512, {14.42, 24.69, 15.27, 11.06, 9.61, 11.37, 9.36, 11.8}},
    {1, 18944, 4096, {22.05, 27.02, 27.97, 23.71, 21.36, 24.05, 22.07, 19.82}},
    {32, 18944, 4096, {23.01, 28.9, 27.98, 23.71, 21.37, 24.06, 22.08, 20.33}},
    {64, 18944, 4096, {24.27, 31.38, 28, 23.74, 21.39, 24.09, 22.1, 20.96}},
    {128, 18944, 4096, {27.19, 37.29, 28.04, 23.83, 21.45, 24.14, 22.14, 22.5}},
    {1, 24576, 2048, {19.3, 27.28, 29.17, 21.88, 16.26, 22.31, 22.34, 14.73}},
    {32, 24576, 2048, {20.74, 30.16, 29.17, 21.88, 16.26, 22.3, 22.34, 15.24}},
    {64, 24576, 2048, {22.61, 34.03, 29.19, 21.91, 16.28, 22.33, 22.36, 15.85}},
    {128, 24576, 2048, {26.97, 43.31, 29.23, 22.02, 16.33, 22.4, 22.4, 17.4}},
    {33, 28672, 4096, {40.68, 50.51, 45.93, 42.09, 29.19, 41.9, 34.36, 28.38}},
    {64, 28672, 4096, {41.2, 51.36, 45.93, 42.1, 29.2, 41.9, 34.36, 28.48}},
    {65, 28672, 4096, {44.85, 56.24, 45.95, 42.17, 29.25, 41.95, 34.39, 29.18}},
    {128, 28672, 4096, {48.27, 62.34, 45.99, 42.25, 29.38, 41.99, 34.42, 30.04}},
};
// clang-format on

Plan plan_of(const Problem& problem, bool prepared = false, int max_pairs = -1) {
  DeviceCaps caps = test::made_up_gpu(100, 148);
  caps.max_pairs = max_pairs;
  const auto plan = plan::choose(
      test::swizzled(problem), {.isa = Isa::kSm100a, .prepared = prepared}, caps, strategies(), "");
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan ? *plan : Plan{};
}

TEST(Sm100aFewRowsChoice, IsTheFastestByTheClockOrWithinThreePercent) {
  for (const Clock& clock : kClock) {
    const Plan plan = plan_of({.m = clock.m, .n = clock.n, .k = clock.k});
    EXPECT_LE(clock.of(plan.kernel, plan.shape.tile_n), 1.03 * clock.least())
        << clock.m << " x " << clock.n << " x " << clock.k << ": " << plan.config();
  }
}

TEST(Sm100aFewRowsChoice, NamesOfWhatIsChosen) {
  const auto config = [](int64_t m, int64_t n, int64_t k, int64_t l = 1) {
    return plan_of({.m = m, .n = n, .k = k, .l = l}).config().substr(18);
  };
  EXPECT_EQ(config(1, 4096, 7168), "skinny_t8x64x256_s9_f16");
  EXPECT_EQ(config(32, 2048, 7168), "skinny_t32x32x256_s12_f16");
  EXPECT_EQ(config(32, 4096, 7168), "tcgen05pair_t256x64x256_s7_f16");
  EXPECT_EQ(config(33, 4096, 7168), "tcgen05pair_t256x64x256_s7_f16");
  EXPECT_EQ(config(128, 4096, 7168), "tcgen05pair_t256x64x256_s7_f16");
  EXPECT_EQ(config(64, 7168, 2048), "tcgen05pair_t256x128x256_s5_f16");  // one wave, not two
  EXPECT_EQ(config(1, 28672, 4096), "skinnypersistent_c148_t16x64x256_s8_f16");
  EXPECT_EQ(config(1, 2048, 4096, 14), "skinnypersistent_c148_t16x64x256_s8_f16");  // batches
  EXPECT_EQ(config(128, 28672, 4096), "tcgen05persistent_c148_t256x128x256_s5_f16");
  EXPECT_EQ(config(64, 10240, 4096), "skinnypersistent_c148_t64x64x256_s6_f16");
}

// The clock has 18.8 us and 17.9 for (14336, 4096), 10.9 and 11.1 for (4096, 7168).
TEST(Sm100aFewRowsChoice, PreparedWeights) {
  const auto kernel = [](int64_t m, int64_t n, int64_t k) {
    return plan_of({.m = m, .n = n, .k = k}, true).kernel;
  };
  EXPECT_EQ(kernel(1, 4096, 7168), "skinny");
  EXPECT_EQ(kernel(32, 7168, 2048), "skinny");
  EXPECT_EQ(kernel(1, 14336, 4096), "skinnypersistent");
  EXPECT_EQ(kernel(32, 28672, 4096), "skinnypersistent");
  EXPECT_EQ(kernel(128, 28672, 4096), "tcgen05persistent");
  const Plan narrow = plan_of({.m = 64, .n = 2048, .k = 7168}, true);
  EXPECT_EQ(narrow.shape.tile_n, 48);
}

// Scales in rows would be copied by a launch in front of the other kernels, 3.4 us by the model:
// persistent CTAs, which read them in place, take less, and so they do with prepared weights. For
// 128 rows they take 15.2 us by the clock, a pair 11.1.
TEST(Sm100aFewRowsChoice, ScalesInRows) {
  const auto kernel = [](const Problem& problem, bool prepared = false) {
    const auto plan = plan::choose(problem, {.isa = Isa::kSm100a, .prepared = prepared},
                                   test::made_up_gpu(100, 148), strategies(), "");
    EXPECT_EQ(plan->workspace_bytes == 0, plan->kernel == "skinnypersistent");
    return plan->kernel;
  };
  EXPECT_EQ(kernel({.m = 2, .n = 4096, .k = 7168}), "skinnypersistent");
  EXPECT_EQ(kernel({.m = 64, .n = 4096, .k = 7168}), "skinnypersistent");
  EXPECT_EQ(kernel({.m = 128, .n = 4096, .k = 7168}), "tcgen05pair");
  EXPECT_EQ(kernel({.m = 129, .n = 4096, .k = 7168}), "tcgen05pair");
  EXPECT_EQ(kernel({.m = 2, .n = 4096, .k = 7168}, true), "skinnypersistent");
  // Rows of 180 scales are copied before any of them.
  EXPECT_EQ(plan_of({.m = 2, .n = 2880, .k = 2880}).kernel, kernel({.m = 2, .n = 2880, .k = 2880}));
}

// With more rows pairs do, with prepared weights.
TEST(Sm100aFewRowsChoice, ScalesOfManyRowsInRows) {
  const auto bytes = [](const Problem& problem, bool prepared) {
    return plan::choose(problem, {.isa = Isa::kSm100a, .prepared = prepared},
                        test::made_up_gpu(100, 148), strategies(), "")
        ->workspace_bytes;
  };
  EXPECT_EQ(bytes({.m = 300, .n = 4096, .k = 7168}, true), 0);
  EXPECT_EQ(bytes({.m = 9000, .n = 4096, .k = 7168}, true), 0);  // persistent
  EXPECT_GT(bytes({.m = 300, .n = 2880, .k = 2880}, true), 0);   // 180 scales a row
  EXPECT_GT(bytes({.m = 300, .n = 4096, .k = 7168}, false), 0);
}

TEST(Sm100aFewRowsChoice, WithoutPairsOneCtaIsTheOther) {
  EXPECT_EQ(plan_of({.m = 64, .n = 4096, .k = 7168}, false, 0).kernel, "skinny");
  EXPECT_EQ(plan_of({.m = 128, .n = 28672, .k = 4096}, false, 0).kernel, "skinnypersistent");
  EXPECT_EQ(plan_of({.m = 128, .n = 768, .k = 2048}, false, 0).kernel, "tcgen05");
  EXPECT_EQ(plan_of({.m = 32, .n = 28672, .k = 4096}, true, 0).kernel, "skinnypersistent");
}

}  // namespace
}  // namespace dualgemm::cuda
