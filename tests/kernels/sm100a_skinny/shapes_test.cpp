// The kernel against the oracle, every element within the bound of docs/numerics.md: rows, columns,
// ends of k, layouts, strides, types, activations. Everything that must not be read for its value
// is poison.
#include "kernels/sm100a_skinny/simulated_run.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/factors.hpp"

namespace dualgemm::test {
namespace {

using reference::Accumulation;

struct Case {
  Problem problem;
  SkinnyRun run{};
  Values values = Values::kRandom;
  bool per_batch = false;  // alphas for each batch, and row scales
};

void expect_right(Case c) {
  const Problem& p = c.problem;
  SCOPED_TRACE(describe(p, c.run));
  Rng rng;
  RandomCase data(p, rng, c.values);
  if (c.per_batch) add_alphas_and_row_scales(data, rng);
  ASSERT_TRUE(simulate(data, c.run));
  EXPECT_TRUE(within_bound(p, data.buffers(), Accumulation::kTensorCoreStep));
}

// Each instance, its rows full, one less, and the fewest that choose it.
TEST(Sm100aSkinnyShapes, RowsOfEveryInstance) {
  for (const auto& instance : cuda::sm100a_skinny::instances()) {
    const auto& [tile_m, tile_n, grouped, prepared] = instance.config;
    for (const int64_t m : {tile_m / 2 + 1, tile_m - 1, tile_m}) {
      expect_right({.problem = swizzled({.m = m, .n = tile_n + 3, .k = 320}),
                    .run = {.tile_n = tile_n, .tile_m = tile_m}});
    }
    // Far fewer rows than the instance has.
    expect_right({.problem = swizzled({.m = 1, .n = 40, .k = 64}),
                  .run = {.tile_n = tile_n, .tile_m = tile_m}});
  }
}

// Tiles in each group of 32 rows of a scale tile, in the first and in the second one.
TEST(Sm100aSkinnyShapes, RaggedColumns) {
  for (const int tile_n : {32, 64}) {
    for (const int64_t n : {1, 15, 16, 17, 31, 33, 63, 65, 96, 127, 130, 255}) {
      expect_right(
          {.problem = swizzled({.m = 5 + n % 7, .n = n, .k = 128}), .run = {.tile_n = tile_n}});
    }
  }
}

// 16 .. 336 in steps of 16: rows of 8 bytes and of 16, scale tiles with one to four scales, ends
// inside a swizzle atom.
TEST(Sm100aSkinnyShapes, EveryEndOfK) {
  for (int64_t k = 16; k <= 336; k += 16) {
    expect_right({.problem = swizzled({.m = 3, .n = 9, .k = k}), .run = {.tile_n = 32}});
    expect_right({.problem = {.m = 9, .n = 70, .k = k}, .run = {.tile_n = 64}});
  }
}

// More tiles of k than stages, ring positions of both parities.
TEST(Sm100aSkinnyShapes, LongK) {
  for (const auto& instance : cuda::sm100a_skinny::instances()) {
    const auto& [tile_m, tile_n, grouped, prepared] = instance.config;
    for (const int64_t k_tiles : {instance.stages + 1, 2 * instance.stages + 1}) {
      expect_right({.problem = swizzled({.m = tile_m - 3, .n = 20, .k = 256 * k_tiles - 48}),
                    .run = {.tile_n = tile_n, .tile_m = tile_m}});
    }
  }
}

TEST(Sm100aSkinnyShapes, BatchesStridesAndMisalignment) {
  Problem p = swizzled({.m = 11, .n = 70, .k = 96, .l = 3, .d = {.type = DataType::kF32}});
  p.gate.ld = 128;  // 64 bytes: in place
  p.up.ld = 104;    // 52 bytes: copied
  p.a.ld = 96 + 32;
  p.d.ld = 77;
  p.d.batch_stride = 77 * 131;
  p.gate.batch_stride = 128 * 71;
  p.up.scale_batch_stride = 1024 * 3 + 7;  // copied
  for (const int64_t misalign : {0, 1, 9}) {
    expect_right({.problem = p,
                  .run = {.tile_n = misalign == 1 ? 32 : 64, .misalign = misalign},
                  .per_batch = true});
  }
  const Problem in_place = swizzled({.m = 40, .n = 130, .k = 128, .l = 2});
  for (const int64_t misalign : {1, 7, 15}) {
    expect_right({.problem = in_place,
                  .run = {.tile_n = misalign == 7 ? 32 : 64, .misalign = misalign},
                  .per_batch = true});
  }
  Problem linear{.m = 20, .n = 150, .k = 80, .l = 2, .d = {.type = DataType::kBF16}};
  linear.gate.scale_ld = 9;
  linear.a.scale_batch_stride = 5 * 20 + 3;
  expect_right({.problem = linear, .run = {.misalign = 5}});
}

TEST(Sm100aSkinnyShapes, EveryActivationAndOutput) {
  int next = 0;
  for (const Activation& act : test::every_activation()) {
    for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
      Problem p = swizzled({.m = 1 + next * 5 % 37, .n = 50, .k = 320, .d = {.type = type}});
      p.act = act;
      p.bias = static_cast<BiasType>(next % 3);
      expect_right({.problem = p, .run = {.tile_n = ++next % 2 == 0 ? 64 : 32}});
    }
  }
}

// Read in columns that exist only.
TEST(Sm100aSkinnyShapes, Biases) {
  int next = 0;
  for (const BiasType bias : {BiasType::kF32, BiasType::kBF16}) {
    for (const int64_t n : {1, 17, 130}) {
      Problem p = swizzled({.m = 12, .n = n, .k = 80, .l = 2});
      p.d.type = static_cast<DataType>(1 + next++ % 3);
      p.bias = bias;
      expect_right({.problem = p,
                    .run = {.tile_n = next % 2 == 0 ? 64 : 32, .misalign = next % 3},
                    .per_batch = next % 2 == 0});
    }
  }
}

// Every finite scale byte, subnormal ones among them, with every code; fp32 output, as most
// products are beyond fp16.
TEST(Sm100aSkinnyShapes, ScalesOfTheWholeRange) {
  for (const int tile_n : {32, 64}) {
    Problem p = swizzled({.m = 64, .n = 128, .k = 512, .d = {.type = DataType::kF32}});
    p.act.kind = tile_n == 32 ? ActivationKind::kIdentity : ActivationKind::kSilu;
    expect_right({.problem = p, .run = {.tile_n = tile_n}, .values = Values::kWide});
  }
}

}  // namespace
}  // namespace dualgemm::test
