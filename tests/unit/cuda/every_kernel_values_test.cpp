// The numbers that kernels must get right whatever the shape: every code with every scale, exactly;
// the largest and the smallest; what NaN and infinity reach and what they do not. Hand-made
// expectations, which the oracle is held to as well: that needs no GPU.
#include <gtest/gtest.h>

#include <limits>

#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/hand_made.hpp"
#include "unit/cuda/tested_kernel.hpp"

namespace dualgemm::test {
namespace {

constexpr ScaleLayout kLayouts[] = {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4};
constexpr DataType kATypes[] = {DataType::kE2M1, DataType::kF16, DataType::kBF16};
constexpr DataType kDTypes[] = {DataType::kF16, DataType::kBF16, DataType::kF32};

std::vector<uint8_t> oracle(RandomCase& data) {
  data.poison_d();
  const Status status = reference::dual_gemm(data.problem, data.buffers());
  EXPECT_TRUE(status.ok()) << status.message();
  return {data.d.data.begin(), data.d.data.end()};
}

TEST(HandMade, TheOracleAgrees) {
  Rng rng;
  for (const ScaleLayout layout : kLayouts) {
    for (const DataType type : kATypes) {
      for (const bool in_gate : {true, false}) {
        HandMade made = every_weight(type, in_gate, layout, rng);
        EXPECT_TRUE(made.is(oracle(made.data))) << name_of(type);
      }
    }
    HandMade made = every_activation(layout, rng);
    EXPECT_TRUE(made.is(oracle(made.data)));
  }
  for (const DataType type : kDTypes) {
    for (const bool largest : {true, false}) {
      HandMade made = extreme_scales(largest, type, rng);
      EXPECT_TRUE(made.is(oracle(made.data))) << name_of(type);
    }
  }
}

TEST(HandMade, AWrongElementIsSeen) {
  Rng rng;
  HandMade made = every_weight(DataType::kF16, true, ScaleLayout::kLinear, rng);
  std::vector<uint8_t> d = oracle(made.data);
  d[4 * (256 * 17 + 200) + 1] ^= 1;  // less than one code or scale away
  EXPECT_FALSE(made.is(d));
}

TEST_P(EveryKernelOnGpu, EveryCodeTimesEveryScaleIsExact) {
  Rng rng;
  Rows rows{.first = 0, .count = rows_for(GetParam(), 256)};
  for (; rows.first < 256; rows.first += rows.count) {
    for (const ScaleLayout layout : kLayouts) {
      for (const DataType type : GetParam().a_types) {
        for (const bool in_gate : {true, false}) {
          HandMade made = every_weight(type, in_gate, layout, rng, rows);
          EXPECT_TRUE(made.is(KernelRun(GetParam(), made.data).run()))
              << (in_gate ? "gate" : "up") << ", a " << name_of(type) << ", " << name_of(layout);
        }
        if (type != DataType::kE2M1) continue;
        HandMade made = every_activation(layout, rng, rows);
        EXPECT_TRUE(made.is(KernelRun(GetParam(), made.data).run())) << "a, " << name_of(layout);
      }
    }
  }
}

TEST_P(EveryKernelOnGpu, ExtremeScales) {
  Rng rng;
  if (GetParam().a_types.front() == DataType::kE2M1) {
    for (const DataType type : kDTypes) {
      for (const bool largest : {true, false}) {
        HandMade made = extreme_scales(largest, type, rng, rows_for(GetParam(), 9));
        EXPECT_TRUE(made.is(KernelRun(GetParam(), made.data, 3).run()))
            << name_of(type) << (largest ? ", largest" : ", smallest");
      }
    }
  }
  // Zero, subnormal, smallest normal and largest scales side by side; A from 2^-24 to 65504.
  constexpr uint8_t kScales[] = {0x00, 0x01, 0x07, 0x08, 0x7E};
  constexpr float kActivations[] = {0.0f, 0x1p-24f, -0x1p-14f, 1.0f, 65504.0f};
  for (const DataType type : GetParam().a_types) {
    const int64_t rows = rows_for(GetParam(), 35), k = k_for(GetParam(), 528);
    HandMade made(hand_made_problem(rows, 70, k, type, ScaleLayout::kLinear), rng);
    RandomCase& data = made.data;
    for (Operand* operand : {&data.a, &data.gate, &data.up}) {
      for (uint8_t& scale : operand->scales) scale = rng.pick(kScales);
    }
    for (int64_t i = 0; type != DataType::kE2M1 && i < rows * k; ++i) {
      store_element(data.a.data.data(), type, i, rng.pick(kActivations));
    }
    KernelRun(GetParam(), data, 3).run(data);
    EXPECT_TRUE(within_bound(data.problem, data.buffers(), GetParam().isa)) << name_of(type);
  }
}

// A NaN scale reaches the row or the column that it belongs to, and nothing else.
TEST_P(EveryKernelOnGpu, NanScalesReachTheirRowOrColumn) {
  Rng rng;
  const DataType type = GetParam().a_types.front();
  const int64_t rows = rows_for(GetParam(), 14), lost_row = rows - 3;
  for (const ScaleLayout layout : kLayouts) {
    HandMade made(hand_made_problem(rows, 70, k_for(GetParam(), 144), type, layout), rng);
    RandomCase& data = made.data;
    HandMade::set_scale(data.gate, data.resolved.gate, 2, 0, 0xFF);
    HandMade::set_scale(data.up, data.resolved.up, 69, 8, 0x7F);
    if (type == DataType::kE2M1) HandMade::set_scale(data.a, data.resolved.a, lost_row, 5, 0x7F);
    if (type != DataType::kE2M1) made.set_a(lost_row, 80, std::numeric_limits<float>::quiet_NaN());
    KernelRun(GetParam(), data, 3).run(data);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < 70; ++col) {
        const bool lost = row == lost_row || col == 2 || col == 69;
        ASSERT_EQ(std::isnan(load_element(data.d.data.data(), DataType::kF32, row * 70 + col)),
                  lost)
            << "row " << row << " col " << col << ", " << name_of(layout);
      }
    }
    EXPECT_TRUE(within_bound(data.problem, data.buffers(), GetParam().isa));
  }
}

// Infinite elements of A, and factors that are infinite or NaN.
HandMade with_infinities(DataType type, int64_t rows, int64_t k, Rng& rng) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  HandMade made(hand_made_problem(rows, 66, k, type, ScaleLayout::kLinear), rng);
  made.data.a_row_scale.assign(static_cast<size_t>(rows), 1.0f);
  made.data.a_row_scale[3] = kInfinity;
  made.data.a_row_scale[4] = std::numeric_limits<float>::quiet_NaN();
  if (type == DataType::kE2M1) return made;
  made.set_a(5, 200, kInfinity);
  made.set_a(6, 17, -kInfinity);
  made.set_a(7, 0, kInfinity);
  made.set_a(7, k - 1, -kInfinity);
  return made;
}

TEST(HandMade, InfinitiesArriveAndTheOracleIsWithinItsBound) {
  Rng rng;
  for (const DataType type : kATypes) {
    HandMade made = with_infinities(type, 12, 272, rng);
    const std::vector<uint8_t> d = oracle(made.data);
    EXPECT_TRUE(within_bound(made.data.problem, made.data.buffers(), Isa::kSm90a));
    int64_t infinite[12] = {}, nan[12] = {};
    for (int64_t i = 0; i < 12 * 66; ++i) {
      const float value = load_element(d.data(), DataType::kF32, i);
      infinite[i / 66] += std::isinf(value);
      nan[i / 66] += std::isnan(value);
    }
    EXPECT_GT(infinite[3], 50) << name_of(type);
    EXPECT_EQ(nan[4], 66) << name_of(type);
    if (type == DataType::kE2M1) continue;
    EXPECT_GT(infinite[5], 30);  // 0 * infinity is NaN
    EXPECT_GT(infinite[6], 30);
    EXPECT_GT(nan[7], 10);  // infinity - infinity
  }
}

TEST_P(EveryKernelOnGpu, InfinityAndNanFollowIeee754) {
  Rng rng;
  for (const DataType type : GetParam().a_types) {
    HandMade made = with_infinities(type, rows_for(GetParam(), 12), k_for(GetParam(), 272), rng);
    KernelRun(GetParam(), made.data, 3).run(made.data);
    EXPECT_TRUE(within_bound(made.data.problem, made.data.buffers(), GetParam().isa))
        << name_of(type);
  }
}

}  // namespace
}  // namespace dualgemm::test
