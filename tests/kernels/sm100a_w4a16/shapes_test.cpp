// The kernel against the oracle, every element within the bound of docs/numerics.md: rows, columns,
// ends of k, layouts, strides, types, activations, CTAs that share k. Everything that must not be
// read for its value is poison.
#include "kernels/sm100a_w4a16/simulated_run.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/factors.hpp"

namespace dualgemm::test {
namespace {

using reference::Accumulation;

struct Case {
  Problem problem;
  W4a16Run run{};
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
  EXPECT_TRUE(within_bound(p, data.buffers(), Accumulation::kAnyOrder));
}

// Each instance, its rows full, one less, and the fewest that choose it.
TEST(Sm100aW4a16Shapes, RowsOfEveryInstance) {
  for (const auto& instance : cuda::sm100a_w4a16::instances()) {
    const int tile_m = instance.config.tile_m;
    const DataType type = instance.config.bf16 ? DataType::kBF16 : DataType::kF16;
    for (const int64_t m : {tile_m / 2 + 1, tile_m - 1, tile_m}) {
      expect_right({.problem = with_rows({.m = m, .n = 67, .k = 320}, type),
                    .run = {.tile_m = tile_m, .split = static_cast<int>(m % 2) + 1}});
    }
    // Far fewer rows than the instance has.
    expect_right(
        {.problem = with_rows({.m = 1, .n = 40, .k = 64}, type), .run = {.tile_m = tile_m}});
  }
}

// More rows than any instance has: several tiles, the last one ragged.
TEST(Sm100aW4a16Shapes, ManyRows) {
  for (const int64_t m : {65, 128, 150}) {
    expect_right(
        {.problem = with_rows({.m = m, .n = 70, .k = 272, .l = m == 65 ? 2 : 1}, type_of_rows(m)),
         .run = {.split = m == 128 ? 2 : 1},
         .per_batch = m == 65});
  }
}

// Tiles in both halves of a scale tile, in the first and in the second one.
TEST(Sm100aW4a16Shapes, RaggedColumns) {
  for (const int64_t n : {1, 15, 16, 17, 31, 33, 63, 65, 127, 130, 255}) {
    expect_right({.problem = with_rows({.m = 5 + n % 7, .n = n, .k = 128}, type_of_rows(n / 2))});
  }
}

// 16 .. 336 in steps of 16: rows of codes of 8 bytes and of 16, scale tiles with one to four
// scales, ends inside a swizzle atom; linear scales are copied.
TEST(Sm100aW4a16Shapes, EveryEndOfK) {
  for (int64_t k = 16; k <= 336; k += 16) {
    expect_right({.problem = with_rows({.m = 3, .n = 9, .k = k}, DataType::kF16)});
    expect_right({.problem = {.m = 9, .n = 70, .k = k, .a = {.type = DataType::kBF16}}});
  }
}

// More tiles of k than stages and slots, ring positions of both parities.
TEST(Sm100aW4a16Shapes, LongK) {
  for (const auto& instance : cuda::sm100a_w4a16::instances()) {
    const int64_t k_tiles = 2 * instance.stages + (instance.config.bf16 ? 1 : 2);
    expect_right(
        {.problem = with_rows({.m = instance.config.tile_m - 3, .n = 20, .k = 256 * k_tiles - 48},
                              instance.config.bf16 ? DataType::kBF16 : DataType::kF16)});
  }
}

// Equal shares of k and others; turns of rows for all CTAs and for few.
TEST(Sm100aW4a16Shapes, CtasThatShareK) {
  for (int split = 2; split <= 8; ++split) {
    for (const int64_t m : {1, 23, 64}) {
      const int64_t k_tiles = m == 1 ? split : m == 23 ? 9 : 8;
      expect_right({.problem = with_rows({.m = m, .n = 66, .k = 256 * k_tiles - 96},
                                         type_of_rows(split + m)),
                    .run = {.split = split}});
    }
  }
}

TEST(Sm100aW4a16Shapes, BatchesStridesAndMisalignment) {
  Problem p =
      with_rows({.m = 11, .n = 70, .k = 96, .l = 3, .d = {.type = DataType::kF32}}, DataType::kF16);
  p.gate.ld = 128;  // 64 bytes: in place
  p.up.ld = 104;    // 52 bytes: copied
  p.a.ld = 96 + 4;  // 200 bytes: copied
  p.d.ld = 77;
  p.d.batch_stride = 77 * 131;
  p.gate.batch_stride = 128 * 71;
  p.up.scale_batch_stride = 1024 * 3 + 7;  // copied
  for (const int64_t misalign : {0, 1, 9}) {
    expect_right({.problem = p, .run = {.misalign = misalign}, .per_batch = true});
    p.a.ld = 96 + 8;  // in place where aligned
    p.a.batch_stride = (96 + 8) * 12;
  }
  const Problem in_place = with_rows({.m = 40, .n = 130, .k = 512, .l = 2}, DataType::kBF16);
  for (const int64_t misalign : {1, 7}) {
    expect_right(
        {.problem = in_place, .run = {.split = 2, .misalign = misalign}, .per_batch = true});
  }
  Problem linear{.m = 20,
                 .n = 150,
                 .k = 80,
                 .l = 2,
                 .a = {.type = DataType::kF16},
                 .d = {.type = DataType::kBF16}};
  linear.gate.scale_ld = 9;
  expect_right({.problem = linear, .run = {.misalign = 5}});
}

TEST(Sm100aW4a16Shapes, EveryActivationAndOutput) {
  int next = 0;
  for (const Activation& act : test::every_activation()) {
    for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
      Problem p = with_rows({.m = 1 + next * 5 % 37, .n = 50, .k = 320, .d = {.type = type}},
                            type_of_rows(next));
      p.act = act;
      p.bias = static_cast<BiasType>(next % 3);
      expect_right({.problem = p, .run = {.split = next++ % 2 + 1}});
    }
  }
}

// Read in columns that exist only.
TEST(Sm100aW4a16Shapes, Biases) {
  int next = 0;
  for (const BiasType bias : {BiasType::kF32, BiasType::kBF16}) {
    for (const int64_t n : {1, 17, 130}) {
      Problem p = with_rows({.m = 12, .n = n, .k = 80, .l = 2}, type_of_rows(next));
      p.d.type = static_cast<DataType>(1 + next++ % 3);
      p.bias = bias;
      expect_right({.problem = p, .run = {.misalign = next % 3}, .per_batch = next % 2 == 0});
    }
  }
}

// Every finite scale byte, subnormal ones among them, with every code; fp32 output, as most
// products are beyond fp16.
TEST(Sm100aW4a16Shapes, ScalesOfTheWholeRange) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    Problem p = with_rows({.m = 60, .n = 128, .k = 512, .d = {.type = DataType::kF32}}, type);
    p.act.kind = type == DataType::kF16 ? ActivationKind::kIdentity : ActivationKind::kSilu;
    expect_right({.problem = p, .values = Values::kWide});
  }
}

}  // namespace
}  // namespace dualgemm::test
