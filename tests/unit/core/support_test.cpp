// The tests' own tools must fail when they should.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "support/compare.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"
#include "support/limits.hpp"
#include "support/rng.hpp"

namespace dualgemm::test {
namespace {

TEST(Support, SameBitsSeesOneBitAndSaysWhere) {
  std::vector<float> a(40 * 200, 1.0f), b = a;
  EXPECT_TRUE(same_bits(a.data(), 200, b.data(), 200, 40, 200));
  b[17 * 200 + 130] = std::nextafter(1.0f, 2.0f);
  const auto result = same_bits(a.data(), 200, b.data(), 200, 40, 200);
  ASSERT_FALSE(result);
  const std::string message = result.message();
  EXPECT_NE(message.find("1 of 8000 elements differ, first at (17, 130)"), std::string::npos)
      << message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '#'), 1) << message;
  a = {0.0f, 0.0f};
  b = {0.0f, -0.0f};
  EXPECT_FALSE(same_bits(a.data(), b.data(), 2));
}

TEST(Support, WithinHoldsEveryElementToItsBound) {
  const auto check = [](double got, double want, double bound) {
    return static_cast<bool>(within(
        2, 2, [&](int64_t i, int64_t j) { return i == 1 && j == 0 ? got : 0.0; },
        [&](int64_t i, int64_t j) { return i == 1 && j == 0 ? want : 0.0; },
        [&](int64_t, int64_t) { return bound; }));
  };
  EXPECT_TRUE(check(1.0, 1.5, 0.5));
  EXPECT_FALSE(check(1.0, 1.5, 0.49));
  EXPECT_FALSE(check(1.0, 1.5, 0.0));
  EXPECT_TRUE(check(1.0, 1.0, 0.0));
  EXPECT_TRUE(check(kNan, kNan, 0.0));
  EXPECT_FALSE(check(kNan, 1.0, 1e300));
  EXPECT_FALSE(check(1.0, kNan, 1e300));
  EXPECT_FALSE(check(1.0, 1.5, kNan));
  EXPECT_TRUE(check(HUGE_VAL, HUGE_VAL, 0.0));
  EXPECT_FALSE(check(HUGE_VAL, -HUGE_VAL, HUGE_VAL));
  EXPECT_FALSE(check(HUGE_VAL, 1.0, 1e300));
}

TEST(Support, CanariesSeeAWriteOnEitherSide) {
  Guarded<uint16_t> buffer(5, 2);
  EXPECT_TRUE(buffer.all_bytes(kPoison));
  EXPECT_TRUE(buffer.intact());
  for (const int64_t outside : {int64_t{-1}, int64_t{5}}) {
    uint16_t* at = buffer.data() + outside;
    const uint16_t before = *at;
    *at = static_cast<uint16_t>(~before);
    EXPECT_FALSE(buffer.intact()) << outside;
    *at = before;
  }
  EXPECT_TRUE(buffer.intact());
}

TEST(Support, RngRepeatsFromItsSeedAndCoversItsRange) {
  Rng a(1), b(1), c(2);
  std::set<int64_t> seen;
  bool differs = false;
  for (int i = 0; i < 1000; ++i) {
    const int64_t value = a.integer(-3, 4);
    ASSERT_EQ(value, b.integer(-3, 4));
    differs |= value != c.integer(-3, 4);
    ASSERT_GE(value, -3);
    ASSERT_LE(value, 4);
    seen.insert(value);
  }
  EXPECT_TRUE(differs);
  EXPECT_EQ(seen.size(), 8u);
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < 20000; ++i) {
    const double x = a.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 20000, 0.0, 0.05);  // 7 standard deviations
  EXPECT_NEAR(squares / 20000, 1.0, 0.07);
}

// Whatever the grouping: the operands hold the rows that exist, and poison elsewhere.
TEST(Support, RandomCaseFillsTheRowsThatExist) {
  Rng rng;
  Problem problem{.m = 150, .n = 16, .k = 48, .l = 3};
  problem.a.ld = 64;
  problem.a.scale_layout = ScaleLayout::kSwizzled128x4;
  problem.grouping = Grouping::kContiguous;
  RandomCase c(problem, rng, Values::kRandom, {0, 129, 129, 150});
  EXPECT_EQ(c.a.scales.size(), 3 * 512);  // 129 rows take two tiles of 128, none none, 21 one
  const ScaleMap map(ScaleLayout::kSwizzled128x4, 384, 3);
  for (int64_t row = 0; row < 384; ++row) {
    const bool exists = row < 129 || (row >= 256 && row < 256 + 21);
    for (int64_t col = 0; col < 3; ++col)
      ASSERT_EQ(c.a.scales[map(row, col)] == kPoison, !exists) << row;
    ASSERT_EQ(c.a.scales[map(row, 0) + 3],
              kPoison);  // the fourth column of the tile does not exist
  }
  for (int64_t row = 0; row + 1 < 150; ++row) {
    for (int64_t i = 24; i < 32; ++i) ASSERT_EQ(c.a.data[row * 32 + i], kPoison);
  }
  EXPECT_TRUE(c.d.data.all_bytes(kPoison));
  EXPECT_EQ(c.buffers().expert_offsets[3], 150);
}

}  // namespace
}  // namespace dualgemm::test
