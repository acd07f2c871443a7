// The same bits on every processor: hashes of what the library computes, written here once, which
// every instruction set of x86-64 and of Arm must give, each in its own build
// (scripts/test_aarch64). Comparisons within a build, which say where a difference is, are in
// tests/unit/cpu/identity_test.cpp.
//
// No input comes from a library of mathematics, whose last bit is its own affair, and none gives a
// NaN, whose sign is the processor's. A new row's hash is what the failure of 0 prints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "dualgemm/dualgemm.hpp"
#include "dualgemm/experts.hpp"
#include "dualgemm/quantize.hpp"
#include "support/activation_rows.hpp"
#include "support/every_activation.hpp"
#include "support/factors.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {
namespace {

uint64_t hash_of(std::span<const uint8_t> bytes, uint64_t hash = 0xCBF29CE484222325u) {
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001B3u;
  return hash;
}

std::string hex(uint64_t hash) { return fmt::format("{:#018x}", hash); }

void fill_uniform(std::span<uint8_t> data, DataType type, int64_t begin, int64_t count, Rng& rng) {
  for (int64_t i = begin; i < begin + count; ++i)
    store_element(data.data(), type, i, rng.uniform(-2.0f, 2.0f));
}

// Replaces what RandomCase draws from a normal distribution, by way of log and cos.
void fill_numbers(RandomCase& c, Rng& rng) {
  const core::ResolvedMatrix& a = c.resolved.a;
  const int64_t batches = c.problem.grouping == Grouping::kContiguous ? 1 : c.problem.l;
  for (int64_t row = 0; a.type != DataType::kE2M1 && row < batches * a.rows; ++row)
    fill_uniform({c.a.data.data(), static_cast<size_t>(c.a.data.size())}, a.type,
                 row / a.rows * a.batch_stride + row % a.rows * a.ld, a.cols, rng);
  const DataType type = c.problem.bias == BiasType::kF32 ? DataType::kF32 : DataType::kBF16;
  for (Guarded<uint8_t>* bias : {&c.bias_gate, &c.bias_up})
    fill_uniform({bias->data(), static_cast<size_t>(bias->size())}, type, 0,
                 bias->size() / core::bytes_of(type, 1), rng);
}

struct HashedRow {
  uint64_t hash;
  Problem problem;
  Values values = Values::kRandom;
  StrategyId strategy = StrategyId::kAuto;
  uint64_t seed = 0;  // not of the test's name, nor of the environment
};

Problem shape(int64_t m, int64_t n, int64_t k, DataType a, DataType d) {
  Problem p{.m = m, .n = n, .k = k};
  p.a.type = a;
  p.d.type = d;
  return p;
}
Problem with(Problem p, const Activation& act) {
  p.act = act;
  return p;
}
Problem with(Problem p, BiasType bias) {
  p.bias = bias;
  return p;
}
Problem with(Problem p, Grouping grouping, int64_t l) {
  p.grouping = grouping;
  p.l = l;
  return p;
}
Problem with(Problem p, Combine combine) {
  p.combine = combine;
  return p;
}

constexpr DataType kE2M1 = DataType::kE2M1, kF16 = DataType::kF16, kBF16 = DataType::kBF16,
                   kF32 = DataType::kF32;

std::vector<HashedRow> hashed_rows() {
  const Problem small = shape(6, 48, 272, kE2M1, kF32);
  std::vector<HashedRow> all;
  for (const ActivationRow& row : activation_rows())
    all.push_back({row.hash, with(small, activation_of(row.tried.kind))});
  for (size_t i = 0; i < all.size(); ++i) all[i].seed = 1 + i;
  const std::vector<HashedRow> others = {
      // Every type of A and of D, from one row to several tiles of rows.
      {0x57f6847ff54e2fc2u, shape(1, 64, 7168, kE2M1, kF16)},
      {0x3a6ad2227724e08du, shape(2, 33, 208, kE2M1, kBF16)},
      {0x4f5a318d3cd0d6fdu, shape(3, 64, 1040, kE2M1, kE2M1)},
      {0xd556dace81b0abf5u, shape(4, 17, 528, kE2M1, kF32)},
      {0x73445f25539b1fd7u, shape(5, 80, 48, kE2M1, kF16)},
      {0x9f59e67e539d8df5u, shape(70, 96, 1552, kE2M1, kE2M1)},
      {0x62065fa8a1b84d19u, shape(1, 48, 400, kF16, kF16)},
      {0x6a4e40f0a3622e41u, shape(7, 81, 560, kF16, kF32)},
      {0x1338ad11e1671e7fu, shape(37, 32, 272, kF16, kE2M1)},
      {0xf280b6af495ba31au, shape(1, 50, 592, kBF16, kBF16)},
      {0xef7d7d526f5b9912u, shape(9, 64, 1040, kBF16, kE2M1)},
      {0x9c469208204ee5dbu, shape(66, 19, 96, kBF16, kF16)},
      {0x0f7faf7ec005a6f6u, shape(3, 40, 720, kF32, kF32)},
      {0xd93878f0355f8c07u, shape(35, 16, 16, kF32, kBF16)},
      // All block scales, zero, subnormal and large ones among them.
      {0x1bf69bf9fdd54ba8u, shape(13, 96, 1552, kE2M1, kF32), Values::kWide},
      {0x8a623eab5e23fd70u, shape(4, 96, 560, kE2M1, kF32), Values::kWide},
      {0x009dab355246182bu, shape(13, 48, 560, kF32, kF32), Values::kWide},
      // Swizzled scales, biases, groups, side by side, FP8.
      {0x5a1403fc6fc976bau, swizzled(shape(45, 64, 320, kE2M1, kF16))},
      {0xa0c1243d2bdd2d5fu, with(small, BiasType::kF32)},
      {0x88cfa46c7ff78e17u, with(small, BiasType::kBF16)},
      {0x8a97b608c509aec8u, with(shape(40, 48, 96, kE2M1, kF16), Grouping::kContiguous, 5)},
      {0x712c43af732a2f1au, with(shape(9, 48, 96, kF16, kE2M1), Grouping::kMasked, 4)},
      {0xab6e92d763c01b02u, with(small, Grouping::kNone, 3)},
      {0xc01c094788b988f8u, with(small, Combine::kSideBySide)},
      {0x158a6676e2948571u, with(small, Combine::kActivatedSideBySide)},
      {0xc2a0c456d84fd9f0u, small, Values::kRandom, StrategyId::kFp8},
      {0x4bf0d7dda2f09897u, shape(33, 64, 272, kBF16, kF16), Values::kRandom, StrategyId::kFp8},
  };
  for (size_t i = 0; i < others.size(); ++i) {
    all.push_back(others[i]);
    all.back().seed = 9 + i;
  }
  return all;
}

bool holds_nan(const RandomCase& c, std::span<const uint8_t> d) {
  const DataType type = c.problem.d.type;
  if (type == kE2M1) return false;  // checked by its scales: 0x7F
  for (int64_t i = 0; i < static_cast<int64_t>(d.size()) / core::bytes_of(type, 1); ++i)
    if (std::isnan(load_element(d.data(), type, i))) return true;
  return false;
}

class SameBitsEverywhere : public ::testing::TestWithParam<Isa> {};

TEST_P(SameBitsEverywhere, Products) {
  int number = 0, compared = 0;
  for (const HashedRow& row : hashed_rows()) {
    ++number;
    Rng rng(row.seed);
    RandomCase c(row.problem, rng, row.values);
    fill_numbers(c, rng);
    add_alphas_and_row_scales(c, rng);
    if (row.values == Values::kWide) c.alpha_gate_per_batch[0] = c.alpha_up_per_batch[0] = 0x1p-10f;
    if (row.strategy != StrategyId::kFp8 && !core::has_shared_order(row.problem, GetParam()))
      continue;
    c.d.data.fill(0);
    c.d.scales.fill(0);
    const Expected<Plan> plan =
        make_plan(row.problem, {.strategy = row.strategy, .isa = GetParam(), .threads = 2});
    ASSERT_TRUE(plan.ok()) << number << ": " << plan.status().message();
    Guarded<uint8_t> workspace(plan->workspace_bytes);
    const Status status = run(*plan, c.buffers(), workspace.data(), workspace.size_bytes());
    ASSERT_TRUE(status.ok()) << number << ": " << status.message();
    const std::span<const uint8_t> d(c.d.data.data(), static_cast<size_t>(c.d.data.size()));
    const std::span<const uint8_t> scales(c.d.scales.data(),
                                          static_cast<size_t>(c.d.scales.size()));
    EXPECT_FALSE(holds_nan(c, d)) << number;
    EXPECT_EQ(hex(hash_of(scales, hash_of(d))), hex(row.hash))
        << "row " << number << " of " << name_of(GetParam());
    ++compared;
  }
  EXPECT_GE(compared, GetParam() == Isa::kAmxBf16 ? 9 : 32);
}

INSTANTIATE_TEST_SUITE_P(AllIsas, SameBitsEverywhere, ::testing::ValuesIn(device_caps().isas),
                         [](const ::testing::TestParamInfo<Isa>& info) {
                           return std::string(name_of(info.param));
                         });

// A tensor of ordinary numbers, of ties and of tiny ones.
std::vector<float> numbers(int64_t count) {
  Rng rng(7);
  std::vector<float> x;
  for (int64_t i = 0; i < count; ++i) {
    const float value = rng.uniform(-4.0f, 4.0f);
    x.push_back(i % 5 == 0   ? std::round(4.0f * value) / 4.0f
                : i % 7 == 0 ? value * 0x1p-12f
                             : value);
  }
  return x;
}

TEST(SameBitsOfQuantizer, EveryScaling) {
  constexpr int64_t kRows = 37, kCols = 512;
  const std::vector<float> x = numbers(kRows * kCols);
  struct QuantizeRow {
    uint64_t hash;
    GlobalScaling scaling;
    int64_t hadamard;
    bool four_over_six;
  };
  for (const QuantizeRow& row :
       {QuantizeRow{0x87ff87af65e214beu, GlobalScaling::kTensor, 0, false},
        QuantizeRow{0xe2ced910f446b580u, GlobalScaling::kRow, 0, false},
        QuantizeRow{0xabd7d75f12affc65u, GlobalScaling::kTensor, 0, true},
        QuantizeRow{0x97a3925fcc728f95u, GlobalScaling::kTensor, 128, false}}) {
    QuantizeProblem p{.rows = kRows, .cols = kCols};
    p.x.type = DataType::kF32;
    p.scaling = row.scaling;
    p.transform.hadamard = row.hadamard;
    p.four_over_six = row.four_over_six;
    const Expected<QuantizeSizes> sizes = quantize_sizes(p);
    ASSERT_TRUE(sizes.ok()) << sizes.status().message();
    std::vector<uint8_t> codes(static_cast<size_t>(sizes->codes));
    std::vector<uint8_t> scales(static_cast<size_t>(sizes->scales));
    std::vector<float> found(static_cast<size_t>(kRows));
    QuantizeBuffers buffers;
    buffers.x = x.data();
    buffers.codes = codes.data();
    buffers.scales = scales.data();
    buffers.found_scale = found.data();
    const Status status = quantize(p, buffers, {});
    ASSERT_TRUE(status.ok()) << status.message();
    const std::span<const uint8_t> globals(reinterpret_cast<const uint8_t*>(found.data()),
                                           found.size() * sizeof(float));
    EXPECT_EQ(hex(hash_of(globals, hash_of(scales, hash_of(codes)))), hex(row.hash))
        << name_of(row.scaling) << " " << row.hadamard;
  }
}

}  // namespace
}  // namespace dualgemm::test
