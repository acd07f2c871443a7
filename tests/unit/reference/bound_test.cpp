// The error bound must hold for plain FP32 code and must break for small mistakes.
#include "reference/bound.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "core/activation.hpp"
#include "core/quantize_block.hpp"
#include "dualgemm/dualgemm.hpp"
#include "support/activation_rows.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/inputs.hpp"

namespace dualgemm {
namespace {

using reference::Accumulation;
using test::RandomCase;
using test::Rng;
using test::Values;

// The obvious FP32 epilogue, with the C library's functions.
float epilogue32(const core::ResolvedActivation& act, float g, float u) {
  static const auto rows = test::activation_rows();
  return rows.at(static_cast<size_t>(act.kind)).plain(act, g, u);
}

// What a plain FP32 program does with one problem (grouping none, tight, linear scales), and knobs
// to make it wrong.
struct Fp32 {
  const RandomCase& data;
  Accumulation order;
  int64_t skip_block = -1;  // a mistake: this 16-block is left out

  static float value(const core::ResolvedMatrix& matrix, const test::Operand& operand, int64_t row,
                     int64_t k) {
    const int64_t index = row * matrix.ld + k;
    if (matrix.type != DataType::kE2M1) {
      return test::load_element(operand.data.data(), matrix.type, index);
    }
    return code(matrix, operand, row, k) * block_scale(matrix, operand, row, k / 16);
  }
  static float code(const core::ResolvedMatrix& matrix, const test::Operand& operand, int64_t row,
                    int64_t k) {
    const int64_t index = row * matrix.ld + k;
    return decode_e2m1(static_cast<uint8_t>(operand.data[index / 2] >> (index % 2 * 4)));
  }
  static float block_scale(const core::ResolvedMatrix& matrix, const test::Operand& operand,
                           int64_t row, int64_t block) {
    return decode_scale(operand.scales[matrix.scale_map()(row, block)]);
  }

  float product(const core::ResolvedMatrix& w, const test::Operand& weight, int64_t row,
                int64_t col) const {
    const core::ResolvedMatrix& a = data.resolved.a;
    float sum = 0.0f;
    const auto term = [&](int64_t k) {
      return double{value(a, data.a, row, k)} * value(w, weight, col, k);
    };
    if (order == Accumulation::kAnyOrder) {  // backwards, product and sum rounded apart
      for (int64_t k = a.cols - 1; k >= 0; --k) {
        if (k / 16 != skip_block) sum += static_cast<float>(term(k));
      }
      return sum;
    }
    for (int64_t block = 0; block < a.cols / 16; ++block) {
      if (block == skip_block) continue;
      double exact = 0.0;
      float partial = 0.0f;
      for (int64_t k = 16 * block; k < 16 * block + 16; ++k) {
        exact += term(k);
        partial = std::fma(value(a, data.a, row, k), code(w, weight, col, k), partial);
      }
      sum = order == Accumulation::kBlockOrder
                ? sum + static_cast<float>(exact)
                : std::fma(partial, block_scale(w, weight, col, block), sum);
    }
    return sum;
  }

  float element(int64_t row, int64_t col) const {
    const float scale = data.a_row_scale.empty() ? 1.0f : data.a_row_scale[row];
    float g = product(data.resolved.gate, data.gate, row, col) * data.alpha_gate * scale;
    float u = product(data.resolved.up, data.up, row, col) * data.alpha_up * scale;
    if (data.problem.bias != BiasType::kNone) {
      const auto type = data.problem.bias == BiasType::kF32 ? DataType::kF32 : DataType::kBF16;
      g += test::load_element(data.bias_gate.data(), type, col);
      u += test::load_element(data.bias_up.data(), type, col);
    }
    return epilogue32(data.problem.act, g, u);
  }
};

void fill(RandomCase& data, const Fp32& program) {
  const core::ResolvedMatrix& d = data.resolved.d;
  for (int64_t row = 0; row < d.rows; ++row) {
    std::vector<float> values;
    for (int64_t col = 0; col < d.cols; ++col) values.push_back(program.element(row, col));
    for (int64_t col = 0; col < d.cols; ++col) {
      if (d.type == DataType::kE2M1 && col % 16 == 0) {
        data.d.scales[d.scale_map()(row, col / 16)] = core::quantize_block(
            &values[col], 1.0f / data.d_global_scale, &data.d.data[(row * d.ld + col) / 2]);
      } else if (d.type != DataType::kE2M1) {
        test::store_element(data.d.data.data(), d.type, row * d.ld + col, values[col]);
      }
    }
  }
}

RandomCase random_case(const Problem& p, Rng& rng, Values values) {
  RandomCase data(p, rng, values);
  const double size = p.a.type == DataType::kE2M1 ? 0.3 : 0.6;
  data.alpha_gate = rng.uniform(0.5f, 2.0f) * static_cast<float>(size / std::sqrt(p.k));
  data.alpha_up = -rng.uniform(0.5f, 2.0f) * static_cast<float>(size / std::sqrt(p.k));
  data.d_global_scale = 0.01f;
  if (rng.chance(0.5)) {
    for (int64_t i = 0; i < p.m; ++i) data.a_row_scale.push_back(rng.uniform(0.5f, 2.0f));
  }
  return data;
}

TEST(Bound, HoldsForPlainFp32Programs) {
  Rng rng;
  for (const Activation& act : test::every_activation()) {
    for (int type = 0; type < 16; ++type) {
      Problem p{.m = rng.integer(1, 12), .n = 16 * rng.integer(1, 2), .k = 16 * rng.integer(1, 40)};
      p.a.type = static_cast<DataType>(type / 4);
      p.d.type = static_cast<DataType>(type % 4);
      p.act = act;
      p.bias = test::any_bias(rng);
      RandomCase data = random_case(p, rng, rng.chance(0.2) ? Values::kWide : Values::kRandom);
      const Accumulation order = reference::accumulation_of(p, Isa::kAvx2);
      fill(data, {data, order});
      EXPECT_TRUE(test::within_bound(p, data.buffers(), Isa::kAvx2))
          << name_of(act.kind) << " a " << name_of(p.a.type) << " d " << name_of(p.d.type);
      fill(data, {data, Accumulation::kAnyOrder});
      EXPECT_TRUE(test::within_bound(p, data.buffers(), Accumulation::kAnyOrder))
          << name_of(act.kind) << " a " << name_of(p.a.type) << " d " << name_of(p.d.type);
    }
  }
}

// One accumulator alone, with terms of very different sizes and much cancellation: never outside,
// and not so far inside that the bound would mean nothing.
TEST(Bound, HoldsForAccumulatorsOfBlockPartials) {
  Rng rng;
  double worst_share = 0.0;
  for (int round = 0; round < 3000; ++round) {
    const int64_t k = 16 * rng.integer(1, 30);
    const int spread = static_cast<int>(rng.integer(0, 12));
    reference::Accumulator exact;
    float sum = 0.0f;
    for (int64_t block = 0; block < k / 16; ++block) {
      const float scale = decode_e4m3(static_cast<uint8_t>(rng.integer(1, 0x7E)));
      float partial = 0.0f;
      for (int i = 0; i < 16; ++i) {
        const float a = std::ldexp(rng.normal(), static_cast<int>(rng.integer(-spread, spread)));
        const float code = decode_e2m1(rng.byte());
        partial = std::fma(a, code, partial);
        exact.value += double{a} * code * scale;
        exact.abs_sum += std::abs(double{a} * code * scale);
      }
      sum = std::fma(partial, scale, sum);
      exact.running_sum += std::abs(exact.value);
    }
    const double bound = reference::accumulator_error(exact, k, Accumulation::kBlockPartial);
    ASSERT_LE(std::abs(sum - exact.value), bound) << "round " << round;
    worst_share = std::max(worst_share, std::abs(sum - exact.value) / bound);
  }
  EXPECT_GT(worst_share, 0.1);
}

// One K = 64 step of a tensor core as docs/numerics.md describes it, in doubles, which hold all of
// it exactly: terms and sum are cut at 2^-35 of the largest exponent, added, and cut to FP32.
float tensor_core_step(float sum, const double* dots, const uint8_t* sf_a, const uint8_t* sf_w) {
  const auto exponent = [](uint8_t scale) { return std::max((scale >> 3) & 15, 1) - 7; };
  int largest = sum == 0.0f ? -200 : std::ilogb(sum);
  for (int j = 0; j < 4; ++j) largest = std::max(largest, exponent(sf_a[j]) + exponent(sf_w[j]));
  const auto cut = [&](double x) {
    return std::ldexp(std::trunc(std::ldexp(x, 35 - largest)), largest - 35);
  };
  double total = cut(sum);
  for (int j = 0; j < 4; ++j) {
    total += cut(dots[j] * decode_scale(sf_a[j]) * decode_scale(sf_w[j]));
  }
  const auto nearest = static_cast<float>(total);
  return std::abs(static_cast<double>(nearest)) > std::abs(total) ? std::nextafterf(nearest, 0.0f)
                                                                  : nearest;
}

// Scales over their whole range and much cancellation: never outside, and not so far inside that
// the bound would mean nothing.
TEST(Bound, HoldsForTensorCoreSteps) {
  Rng rng;
  double worst_share = 0.0;
  for (int round = 0; round < 3000; ++round) {
    const int64_t steps = rng.integer(1, 30);
    const int64_t range = rng.chance(0.5) ? 0x7E : 8;  // bytes: all magnitudes, or a few neighbours
    reference::Accumulator exact;
    float sum = 0.0f;
    double largest[2] = {0x1p-6, 0x1p-6};
    for (int64_t step = 0; step < steps; ++step) {
      double dots[4] = {};
      uint8_t scales[2][4];
      for (int j = 0; j < 4; ++j) {
        for (int side = 0; side < 2; ++side) {
          scales[side][j] = static_cast<uint8_t>(0x7E - rng.integer(0, range));
          largest[side] = std::max<double>(largest[side], decode_scale(scales[side][j]));
        }
        const bool silent = rng.chance(0.3);  // only its scale counts
        for (int i = 0; i < 16 && !silent; ++i) {
          dots[j] += decode_e2m1(rng.byte() & 15) * decode_e2m1(rng.byte() & 15);
        }
        const double term = dots[j] * decode_scale(scales[0][j]) * decode_scale(scales[1][j]);
        exact.value += term;
        exact.abs_sum += std::abs(term);
        exact.running_sum += std::abs(exact.value);
      }
      sum = tensor_core_step(sum, dots, scales[0], scales[1]);
    }
    exact.scale_product = largest[0] * largest[1];
    const double bound =
        reference::accumulator_error(exact, 64 * steps, Accumulation::kTensorCoreStep);
    ASSERT_LE(std::abs(sum - exact.value), bound) << "round " << round;
    worst_share = std::max(worst_share, std::abs(sum - exact.value) / bound);
  }
  EXPECT_GT(worst_share, 0.1);
}

// Partials that are subnormal in FP32.
TEST(Bound, HoldsForSubnormalPartials) {
  Rng rng;
  for (int round = 0; round < 1000; ++round) {
    reference::Accumulator exact;
    float sum = 0.0f;
    for (int block = 0; block < 4; ++block) {
      float partial = 0.0f;
      for (int i = 0; i < 16; ++i) {
        const float a = std::ldexp(static_cast<float>(rng.integer(-9, 9)), -149);
        const float code = decode_e2m1(rng.byte());
        partial = std::fma(a, code, partial);
        exact.value += double{a} * code * 448.0;
        exact.abs_sum += std::abs(double{a} * code * 448.0);
      }
      sum = std::fma(partial, 448.0f, sum);
      exact.running_sum += std::abs(exact.value);
    }
    ASSERT_LE(std::abs(sum - exact.value),
              reference::accumulator_error(exact, 64, Accumulation::kBlockPartial));
  }
}

TEST(Bound, OrderOfEveryIsa) {
  Problem p{.m = 1, .n = 1, .k = 16};
  EXPECT_EQ(reference::accumulation_of(p, Isa::kScalar), Accumulation::kBlockOrder);
  EXPECT_EQ(reference::accumulation_of(p, Isa::kAvx512Vnni), Accumulation::kBlockOrder);
  EXPECT_EQ(reference::accumulation_of(p, Isa::kNeon), Accumulation::kBlockOrder);
  EXPECT_EQ(reference::accumulation_of(p, Isa::kNeonI8mm), Accumulation::kBlockOrder);
  EXPECT_EQ(reference::accumulation_of(p, Isa::kAmxBf16), Accumulation::kAnyOrder);
  EXPECT_EQ(reference::accumulation_of(p, Isa::kAvx512Bf16), Accumulation::kBlockOrder);
  EXPECT_EQ(reference::accumulation_of(p, Isa::kSm100a), Accumulation::kTensorCoreStep);
  p.a.type = DataType::kF32;
  EXPECT_EQ(reference::accumulation_of(p, Isa::kAvx2), Accumulation::kBlockPartial);
  EXPECT_EQ(reference::accumulation_of(p, Isa::kAmxBf16), Accumulation::kBlockPartial);
  EXPECT_EQ(reference::accumulation_of(p, Isa::kAvx512Bf16), Accumulation::kBlockPartial);
  p.a.type = DataType::kBF16;
  EXPECT_EQ(reference::accumulation_of(p, Isa::kAvx512Vnni), Accumulation::kBlockPartial);
  EXPECT_EQ(reference::accumulation_of(p, Isa::kNeonI8mm), Accumulation::kBlockPartial);
  EXPECT_EQ(reference::accumulation_of(p, Isa::kAvx512Bf16), Accumulation::kBlockPairs);
  EXPECT_EQ(reference::accumulation_of(p, Isa::kAmxBf16), Accumulation::kBlockPairs);
  for (const DataType a : {DataType::kE2M1, DataType::kF16}) {
    p.a.type = a;
    EXPECT_EQ(reference::accumulation_of(p, Isa::kSm90a), Accumulation::kAnyOrder);
    EXPECT_EQ(reference::accumulation_of(p, Isa::kSm80), Accumulation::kAnyOrder);
  }
  EXPECT_EQ(reference::accumulation_of(p, Isa::kSm100a), Accumulation::kAnyOrder);  // kF16
}

// The largest k of the challenge. One lost 16-block of 448 must show in nearly every element, not
// only somewhere in the tile.
TEST(Bound, OneLostBlockShows) {
  for (const DataType type : {DataType::kE2M1, DataType::kBF16}) {
    Rng rng;
    Problem p{.m = 8, .n = 16, .k = 7168, .d = {.type = DataType::kF32}};
    p.a.type = type;
    RandomCase data = random_case(p, rng, Values::kRandom);
    const Accumulation order = reference::accumulation_of(p, Isa::kAvx2);
    fill(data, {data, order, 200});
    const auto tiles = reference::check_output(p, data.buffers(), order);
    ASSERT_EQ(tiles.size(), 1u);
    EXPECT_GE(tiles[0].failed, 8 * 16 * 9 / 10) << name_of(type);
    EXPECT_GT(tiles[0].worst_share, 100.0);
  }
}

// A bias that is forgotten, added twice, or added before alpha.
TEST(Bound, AWrongBiasShows) {
  Rng rng;
  Problem p{.m = 8, .n = 16, .k = 512, .d = {.type = DataType::kF32}};
  p.act.kind = ActivationKind::kIdentity;
  p.bias = BiasType::kF32;
  for (const float times : {-1.0f, 1.0f, -0.875f}) {
    RandomCase data = random_case(p, rng, Values::kRandom);
    fill(data, {data, Accumulation::kBlockOrder});
    EXPECT_TRUE(test::within_bound(p, data.buffers(), Accumulation::kBlockOrder));
    auto* bias = reinterpret_cast<float*>(data.bias_gate.data());
    std::vector<float> right(bias, bias + p.n);
    for (int64_t i = 0; i < p.n; ++i) bias[i] += times * bias[i];
    fill(data, {data, Accumulation::kBlockOrder});
    std::copy(right.begin(), right.end(), bias);
    const auto tiles = reference::check_output(p, data.buffers(), Accumulation::kBlockOrder);
    ASSERT_EQ(tiles.size(), 1u);
    EXPECT_GE(tiles[0].failed, 8 * 16 * 9 / 10) << times;
  }
}

TEST(Bound, IsTight) {
  Rng rng;
  Problem p{.m = 8, .n = 16, .k = 7168, .d = {.type = DataType::kF32}};
  RandomCase data = random_case(p, rng, Values::kRandom);
  const auto tile =
      reference::exact_tile(data.resolved, data.buffers(), {0, 0, 8, 0, 0, 0}, 0, 8, 0, 16);
  double bound = 0.0, size = 0.0;
  for (const reference::Element& element : tile) {
    const auto interval =
        reference::output_interval(element, p.act, p.k, Accumulation::kBlockOrder);
    EXPECT_LE(interval.lo, element.d);
    EXPECT_GE(interval.hi, element.d);
    bound += double{interval.hi} - interval.lo;
    size += std::abs(element.d);
  }
  EXPECT_LT(bound, 2e-4 * size) << "both sides together, on average";
}

TEST(Bound, AlterationsFail) {
  Rng rng;
  for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16}) {
    Problem p{.m = 70, .n = 96, .k = 64};
    p.d.type = type;
    RandomCase data = random_case(p, rng, Values::kRandom);
    fill(data, {data, Accumulation::kBlockOrder});
    const Buffers b = data.buffers();
    for (const float wrong : {std::nanf(""), 1e30f, -INFINITY}) {
      const int64_t row = rng.integer(64, 69), col = rng.integer(64, 95);
      const float right = test::load_element(b.d, type, row * 96 + col);
      test::store_element(b.d, type, row * 96 + col, wrong);
      const auto tiles = reference::check_output(p, b, Accumulation::kBlockOrder);
      ASSERT_EQ(tiles.size(), 4u);
      for (const auto& tile : tiles) EXPECT_EQ(tile.failed, tile.row == 64 && tile.col == 64);
      EXPECT_EQ(tiles[3].worst_row, row);
      EXPECT_EQ(tiles[3].worst_col, col);
      EXPECT_GT(tiles[3].worst_share, 1.0);
      EXPECT_FALSE(test::within_bound(p, b, Accumulation::kBlockOrder));
      test::store_element(b.d, type, row * 96 + col, right);
    }
    EXPECT_TRUE(test::within_bound(p, b, Accumulation::kBlockOrder));
  }
}

// In 16-bit types a neighbouring value is accepted only if rounding could have gone that way.
TEST(Bound, ExactResultsHaveNoRoom) {
  Rng rng;
  Problem p{.m = 4, .n = 16, .k = 32, .act = {.kind = ActivationKind::kIdentity}};
  p.d.type = DataType::kF16;
  RandomCase data(p, rng, Values::kExact);
  data.alpha_gate = data.alpha_up = 0.0625f;
  fill(data, {data, Accumulation::kBlockOrder});
  const Buffers b = data.buffers();
  ASSERT_TRUE(test::within_bound(p, b, Accumulation::kBlockOrder));
  auto* d = static_cast<uint16_t*>(b.d);
  int refused = 0;
  for (int i = 0; i < 64; ++i) {
    d[i] ^= 2;  // two units in the last place
    refused += !test::within_bound(p, b, Accumulation::kBlockOrder);
    d[i] ^= 2;
  }
  EXPECT_EQ(refused, 64);
}

TEST(Bound, QuantisedOutputs) {
  Rng rng;
  Problem p{.m = 3, .n = 32, .k = 64};
  p.d.type = DataType::kE2M1;
  RandomCase data = random_case(p, rng, Values::kRandom);
  fill(data, {data, Accumulation::kBlockOrder});
  const Buffers b = data.buffers();
  ASSERT_TRUE(test::within_bound(p, b, Accumulation::kBlockOrder));
  for (int64_t i = 0; i < data.d.scales.size(); ++i) {
    for (const int change : {0x01, 0x10, 0x7F ^ data.d.scales[i]}) {
      data.d.scales[i] ^= static_cast<uint8_t>(change);
      EXPECT_FALSE(test::within_bound(p, b, Accumulation::kBlockOrder)) << "scale " << i;
      data.d.scales[i] ^= static_cast<uint8_t>(change);
    }
  }
  int refused = 0;
  for (int64_t i = 0; i < data.d.data.size(); ++i) {
    for (const int change : {0x02, 0x20}) {  // two codes further, or back
      data.d.data[i] ^= static_cast<uint8_t>(change);
      refused += !test::within_bound(p, b, Accumulation::kBlockOrder);
      data.d.data[i] ^= static_cast<uint8_t>(change);
    }
  }
  EXPECT_EQ(refused, 2 * data.d.data.size());
}

TEST(Bound, NaNIsExpectedWhereAScaleIsNaN) {
  Rng rng;
  for (const DataType type : {DataType::kF16, DataType::kE2M1}) {
    Problem p{.m = 3, .n = 32, .k = 64};
    p.d.type = type;
    RandomCase data = random_case(p, rng, Values::kRandom);
    fill(data, {data, Accumulation::kBlockOrder});
    const uint8_t right = data.gate.scales[5];
    data.gate.scales[5] = 0x7F;  // column 1
    EXPECT_FALSE(test::within_bound(p, data.buffers(), Accumulation::kBlockOrder));
    fill(data, {data, Accumulation::kBlockOrder});
    EXPECT_TRUE(test::within_bound(p, data.buffers(), Accumulation::kBlockOrder));
    data.gate.scales[5] = right;
    EXPECT_FALSE(test::within_bound(p, data.buffers(), Accumulation::kBlockOrder));
  }
}

// Whatever finite numbers come in, the bound is a number.
TEST(Bound, IsFinite) {
  Rng rng;
  for (int round = 0; round < 20000; ++round) {
    reference::Element e;
    for (reference::Accumulator* acc : {&e.gate, &e.up}) {
      acc->abs_sum = std::abs(std::ldexp(rng.normal(), static_cast<int>(rng.integer(-40, 40))));
      acc->value = acc->abs_sum * (2.0 * rng.uniform() - 1.0);
      acc->running_sum = acc->abs_sum * rng.uniform(1.0f, 500.0f);
    }
    e.alpha_gate = std::ldexp(rng.normal(), static_cast<int>(rng.integer(-100, 60)));
    e.alpha_up = std::ldexp(rng.normal(), static_cast<int>(rng.integer(-100, 60)));
    e.g = e.alpha_gate * e.gate.value;
    e.u = e.alpha_up * e.up.value;
    for (const Activation& act : test::every_activation()) {
      e.d = core::activate(act, e.g, e.u);
      for (const auto order :
           {Accumulation::kBlockOrder, Accumulation::kBlockPartial, Accumulation::kAnyOrder}) {
        const auto interval =
            reference::output_interval(e, act, 16 * rng.integer(1, 1 << 20), order);
        ASSERT_LE(interval.lo, interval.hi);
        ASSERT_LE(interval.lo, static_cast<float>(e.d));
        ASSERT_GE(interval.hi, static_cast<float>(e.d));
      }
    }
  }
}

// Side by side: alpha, row scale, bias and residual in FP32 lie inside, and the residual's rounding
// has a term of its own.
TEST(Bound, SideBySideHoldsTheAdditionOfAResidual) {
  Rng rng;
  int beyond_without = 0;
  for (int round = 0; round < 20000; ++round) {
    reference::Element e;
    const float sum = rng.normal(), alpha = rng.normal(), row_scale = rng.uniform(0.5f, 2.0f);
    const float bias = rng.normal(), residual = 64.0f * rng.normal();
    e.gate.value = e.gate.abs_sum = sum;  // an accumulator that is exact: running_sum 0
    e.alpha_gate = alpha;
    e.row_scale = row_scale;
    e.bias_gate = bias;
    e.residual = residual;
    e.g = double{row_scale} * alpha * sum + bias;
    e.d = e.g + residual;
    const float computed = (sum * alpha * row_scale + bias) + residual;
    const auto interval =
        reference::side_by_side_interval(e, nullptr, 16, Accumulation::kBlockOrder);
    ASSERT_LE(interval.lo, computed);
    ASSERT_GE(interval.hi, computed);
    ASSERT_LE(double{interval.hi} - interval.lo, 0x1p-20 * (std::abs(e.d) + std::abs(e.g) + 4.0));
    e.residual = -0.0;
    const auto before = reference::side_by_side_interval(e, nullptr, 16, Accumulation::kBlockOrder);
    const double room = double{before.hi} - before.lo;
    beyond_without += std::abs(double{computed} - e.d) > room ? 1 : 0;
  }
  EXPECT_GT(beyond_without, 100);
}

// Results beyond the range of D's type become infinities, in the library as in the oracle.
TEST(Bound, OverflowOfTheOutputTypeIsInfinity) {
  Rng rng;
  Problem p{.m = 2, .n = 16, .k = 64, .act = {.kind = ActivationKind::kIdentity}};
  RandomCase data(p, rng, Values::kRandom);
  data.alpha_gate = data.alpha_up = 1e4f;
  fill(data, {data, Accumulation::kBlockOrder});
  EXPECT_TRUE(test::within_bound(p, data.buffers(), Accumulation::kBlockOrder));
  int infinite = 0;
  for (int i = 0; i < 32; ++i) {
    infinite += std::isinf(test::load_element(data.buffers().d, DataType::kF16, i));
  }
  EXPECT_GT(infinite, 16);
}

}  // namespace
}  // namespace dualgemm
