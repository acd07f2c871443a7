// The same bits whatever runs: instruction sets, strategies, thread counts, repeats, row splits,
// batches, layouts, prepared or not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/problem.hpp"
#include "dualgemm/formats.hpp"
#include "support/bound.hpp"
#include "support/inputs.hpp"
#include "unit/cpu/run.hpp"

namespace dualgemm::test {
namespace {

constexpr StrategyId kExactStrategies[] = {
    StrategyId::kTwoPass, StrategyId::kCached,        StrategyId::kGraph,
    StrategyId::kStreams, StrategyId::kFusedEpilogue, StrategyId::kFusedSequential,
    StrategyId::kFused,
};

std::vector<uint8_t> bits_of_run(RandomCase& c, const RunOptions& options) {
  c.poison_d();
  const RunResult result = run_cpu(c.problem, c.buffers(), options);
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  EXPECT_EQ(result.info.isa, options.isa);
  return output_bytes(c);
}

std::vector<Isa> canonical_isas(const Problem& problem) {
  std::vector<Isa> list = isas();
  std::erase_if(list, [&](Isa isa) { return !core::has_shared_order(problem, isa); });
  return list;
}

TEST(SameBits, InstructionSetsStrategiesThreadsAndPreparation) {
  Rng rng;
  struct Shape {
    int64_t m, n, k;
    DataType a, d;
  };
  for (const Shape& s : {Shape{1, 33, 208, DataType::kE2M1, DataType::kF16},
                         Shape{3, 64, 528, DataType::kE2M1, DataType::kE2M1},
                         Shape{4, 17, 1040, DataType::kF16, DataType::kBF16},
                         Shape{13, 96, 1552, DataType::kE2M1, DataType::kF32},
                         Shape{67, 48, 400, DataType::kBF16, DataType::kE2M1},
                         Shape{70, 81, 560, DataType::kE2M1, DataType::kF16}}) {
    Problem p{.m = s.m, .n = s.n, .k = s.k};
    p.a.type = s.a;
    p.d.type = s.d;
    p.bias = any_bias(rng);
    RandomCase c(p, rng, Values::kWide);
    c.alpha_gate = 1e-3f;
    c.alpha_up = 1e-3f;
    const auto expected = bits_of_run(c, {.isa = Isa::kScalar, .threads = 1});
    ASSERT_TRUE(within_bound(p, c.buffers(), Isa::kScalar));
    for (const Isa isa : canonical_isas(p)) {
      for (const StrategyId strategy : kExactStrategies) {
        for (const int threads : {1, 2, 5}) {
          ASSERT_EQ(bits_of_run(c, {.isa = isa, .strategy = strategy, .threads = threads}),
                    expected)
              << name_of(isa) << " " << name_of(strategy) << " " << threads;
        }
        if (strategy == StrategyId::kTwoPass) continue;  // converts on every call
        ASSERT_EQ(bits_of_run(c, {.isa = isa, .strategy = strategy, .prepared = true}), expected)
            << name_of(isa) << " " << name_of(strategy) << " prepared";
      }
    }
  }
}

TEST(SameBits, AnOrderOfItsOwnIsOneForAnyStrategyAndThreadCount) {
  Rng rng;
  for (const Isa isa : machine().isas) {
    for (const DataType type : {DataType::kE2M1, DataType::kBF16}) {
      for (const int64_t m : {1, 3, 16, 33, 70}) {
        Problem p{.m = m, .n = 80, .k = 720};
        p.a.type = type;
        if (core::has_shared_order(p, isa)) continue;
        RandomCase c(p, rng, Values::kRandom);
        const auto expected = bits_of_run(c, {.isa = isa, .threads = 1});
        ASSERT_TRUE(within_bound(p, c.buffers(), isa)) << name_of(isa) << " " << m;
        for (const StrategyId strategy : kExactStrategies) {
          for (const int threads : {2, 5})
            ASSERT_EQ(bits_of_run(c, {.isa = isa, .strategy = strategy, .threads = threads}),
                      expected);
          if (strategy == StrategyId::kTwoPass) continue;  // converts on every call
          ASSERT_EQ(bits_of_run(c, {.isa = isa, .strategy = strategy, .prepared = true}), expected);
        }
      }
    }
  }
}

class SameBitsOn : public ::testing::TestWithParam<Isa> {};

TEST_P(SameBitsOn, RepeatedRuns) {
  Rng rng;
  Problem p{.m = 37, .n = 160, .k = 592};
  RandomCase c(p, rng, Values::kRandom);
  const auto expected = bits_of_run(c, {.isa = GetParam(), .threads = 4});
  for (int repeat = 0; repeat < 30; ++repeat)
    ASSERT_EQ(bits_of_run(c, {.isa = GetParam(), .threads = 4}), expected) << repeat;
}

// Row i alone, and in every split of m, has the bits that it has among all rows: batch_invariant.
TEST_P(SameBitsOn, RowsDoNotDependOnM) {
  Rng rng;
  Problem all{.m = 45, .n = 48, .k = 560};
  all.batch_invariant = GetParam() != Isa::kAmxBf16;
  RandomCase c(all, rng, Values::kRandom);
  const auto expected = bits_of_run(c, {.isa = GetParam()});
  const auto row_bytes = static_cast<int64_t>(all.n * 2);
  for (const auto& [begin, rows] :
       {std::pair<int64_t, int64_t>{0, 1}, {44, 1}, {3, 2}, {1, 4}, {10, 5}, {7, 33}, {0, 44}}) {
    Problem part = all;
    part.m = rows;
    Buffers b = c.buffers();
    b.a = c.a.data.data() + begin * all.k / 2;
    b.a_scales = c.a.scales.data() + begin * all.k / 16;
    Guarded<uint8_t> d(rows * row_bytes);
    b.d = d.data();
    ASSERT_TRUE(run_cpu(part, b, {.isa = GetParam()}).status.ok());
    ASSERT_EQ(std::memcmp(d.data(), expected.data() + begin * row_bytes,
                          static_cast<size_t>(rows * row_bytes)),
              0)
        << "rows " << begin << " to " << begin + rows - 1;
  }
}

// Few rows go through kernels of their own, by their number: each gives the bits of many rows. k
// ends within eight blocks, n within a panel.
TEST_P(SameBitsOn, EveryNumberOfFewRows) {
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    Problem all{.m = 45, .n = 72, .k = 560};
    all.a.type = type;
    all.batch_invariant = true;
    if (!core::has_shared_order(all, GetParam())) continue;
    RandomCase c(all, rng, Values::kRandom);
    const auto expected = bits_of_run(c, {.isa = GetParam()});
    const int64_t row_bytes = all.n * 2, a_bytes = type == DataType::kE2M1 ? all.k / 2 : all.k * 2;
    for (int64_t rows = 1; rows <= 35; ++rows) {
      const int64_t begin = rows % 11;
      Problem part = all;
      part.m = rows;
      Buffers b = c.buffers();
      b.a = c.a.data.data() + begin * a_bytes;
      if (type == DataType::kE2M1) b.a_scales = c.a.scales.data() + begin * all.k / 16;
      for (const bool prepared : {false, true}) {
        Guarded<uint8_t> d(rows * row_bytes);
        b.d = d.data();
        ASSERT_TRUE(run_cpu(part, b, {.isa = GetParam(), .prepared = prepared}).status.ok());
        ASSERT_EQ(std::memcmp(d.data(), expected.data() + begin * row_bytes,
                              static_cast<size_t>(rows * row_bytes)),
                  0)
            << name_of(type) << ", " << rows << " rows, prepared " << prepared;
      }
    }
  }
}

// A caller may edit a plan: fewer rows at a time give the same bits or are refused.
TEST_P(SameBitsOn, AnyNumberOfRowsAtATimeOrNone) {
  Rng rng;
  RandomCase c({.m = 16, .n = 48, .k = 208}, rng, Values::kRandom);
  const auto expected = bits_of_run(c, {.isa = GetParam()});
  const RunResult whole = run_cpu(c.problem, c.buffers(), {.isa = GetParam()});
  const Strategy* strategy =
      plan::find_strategy(cpu::strategies(), StrategyId::kFused, DeviceKind::kCpu);
  int refused = 0;
  for (int64_t rows = -1; rows <= 48; ++rows) {
    Plan plan = whole.plan;
    plan.shape.l2_rows = rows;
    plan.workspace_bytes = rows > 0 ? strategy->workspace_bytes(plan) : whole.plan.workspace_bytes;
    Guarded<uint8_t> workspace(plan.workspace_bytes);
    c.poison_d();
    const Status status =
        strategy->run(plan, checked(plan.problem), c.buffers(), workspace.data(), nullptr);
    if (status.ok()) {
      ASSERT_EQ(output_bytes(c), expected) << rows;
    } else {
      ASSERT_EQ(status.code(), StatusCode::kInvalidArgument) << rows;
      ++refused;
    }
  }
  EXPECT_GE(refused, 2);  // -1 and 0
  EXPECT_LT(refused, 50);
}

TEST_P(SameBitsOn, RowPermutationPermutesTheOutput) {
  Rng rng;
  Problem p{.m = 23, .n = 32, .k = 272};
  RandomCase c(p, rng, Values::kRandom);
  const auto expected = bits_of_run(c, {.isa = GetParam()});
  const std::vector<uint8_t> codes(c.a.data.begin(), c.a.data.end());
  const std::vector<uint8_t> scales(c.a.scales.begin(), c.a.scales.end());
  const int64_t code_row = p.k / 2, scale_row = p.k / 16, d_row = p.n * 2;
  const auto source = [&](int64_t row) { return (row * 7 + 5) % p.m; };
  for (int64_t row = 0; row < p.m; ++row) {
    std::memcpy(c.a.data.data() + row * code_row, codes.data() + source(row) * code_row,
                static_cast<size_t>(code_row));
    std::memcpy(c.a.scales.data() + row * scale_row, scales.data() + source(row) * scale_row,
                static_cast<size_t>(scale_row));
  }
  const auto permuted = bits_of_run(c, {.isa = GetParam()});
  for (int64_t row = 0; row < p.m; ++row)
    ASSERT_EQ(std::memcmp(permuted.data() + row * d_row, expected.data() + source(row) * d_row,
                          static_cast<size_t>(d_row)),
              0)
        << row;
}

// One problem as a batch, as separate problems, and as experts of both groupings.
TEST_P(SameBitsOn, BatchContiguousMaskedAndSeparate) {
  Rng rng;
  Problem batch{.m = 6, .n = 32, .k = 144, .l = 3};
  for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
    batch.a.scale_layout = batch.gate.scale_layout = layout;
    RandomCase c(batch, rng, Values::kRandom);
    const auto expected = bits_of_run(c, {.isa = GetParam()});

    Problem masked = batch;
    masked.grouping = Grouping::kMasked;
    const int32_t rows[] = {6, 6, 6};
    Buffers b = c.buffers();
    b.expert_rows = rows;
    c.poison_d();
    ASSERT_TRUE(run_cpu(masked, b, {.isa = GetParam()}).status.ok());
    EXPECT_EQ(output_bytes(c), expected);

    // Tight batches of a are one tall matrix; swizzled scales restart at 128 rows for each expert,
    // which is exactly one batch's span.
    Problem contiguous = batch;
    contiguous.grouping = Grouping::kContiguous;
    contiguous.m = 18;
    const int32_t offsets[] = {0, 6, 12, 18};
    b.expert_rows = nullptr;
    b.expert_offsets = offsets;
    c.poison_d();
    ASSERT_TRUE(run_cpu(contiguous, b, {.isa = GetParam()}).status.ok());
    EXPECT_EQ(output_bytes(c), expected);
  }
}

TEST_P(SameBitsOn, LinearAndSwizzledScales) {
  Rng rng;
  for (const int64_t m : {4, 150}) {
    Problem linear{.m = m, .n = 140, .k = 208};
    RandomCase c(linear, rng, Values::kWide);
    c.alpha_gate = c.alpha_up = 1e-3f;
    const auto expected = bits_of_run(c, {.isa = GetParam()});
    Problem swizzled = linear;
    swizzled.a.scale_layout = swizzled.gate.scale_layout = swizzled.up.scale_layout =
        ScaleLayout::kSwizzled128x4;
    const auto resolved = core::resolve(swizzled);
    Buffers b = c.buffers();
    std::vector<Guarded<uint8_t>> moved;
    const auto swizzle = [&](const core::ResolvedMatrix& matrix, const uint8_t*& scales) {
      const ScaleMap map = matrix.scale_map();
      moved.emplace_back(map.required_span_size());  // padding stays poison
      for (int64_t row = 0; row < matrix.rows; ++row)
        for (int64_t col = 0; col < matrix.sf_cols; ++col)
          moved.back()[map(row, col)] = scales[row * matrix.sf_cols + col];
      scales = moved.back().data();
    };
    swizzle(resolved.a, b.a_scales);
    swizzle(resolved.gate, b.gate_scales);
    swizzle(resolved.up, b.up_scales);
    c.poison_d();
    ASSERT_TRUE(run_cpu(swizzled, b, {.isa = GetParam()}).status.ok());
    EXPECT_EQ(output_bytes(c), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(AllIsas, SameBitsOn, ::testing::ValuesIn(isas()), isa_name);

}  // namespace
}  // namespace dualgemm::test
