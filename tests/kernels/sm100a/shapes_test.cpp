// The kernel against the oracle, every element within the bound of docs/numerics.md: shapes,
// layouts, strides, types, activations. Everything that must not be read for its value is poison.
#include "kernels/simulation/tile_case.hpp"
#include "kernels/sm100a/simulated_run.hpp"
#include "support/every_activation.hpp"

namespace dualgemm::test {
namespace {

void expect_right(const TileCase& c) { expect_right_in_tiles<SimulatedRun>(c); }

// The challenge's ten test shapes, a sixth to a fortieth of their size: the same remainders and the
// same relations of M, N and K, some rings of stages gone around more than once.
TEST(Sm100aShapes, TheChallengesTenScaled) {
  const int64_t shapes[][3] = {{192, 64, 1792}, {32, 64, 256},   {192, 64, 1792}, {256, 128, 384},
                               {384, 128, 256}, {384, 192, 512}, {256, 48, 1792}, {384, 48, 576},
                               {64, 96, 1792},  {320, 96, 256}};
  for (const auto& [m, n, k] : shapes) {
    const int tile_n = n > 64 ? 128 : 64;
    expect_right({.problem = swizzled({.m = m, .n = n, .k = k}),
                  .values = Values::kChallenge,
                  .tile_n = tile_n});
  }
}

TEST(Sm100aShapes, RaggedRowsAndColumns) {
  for (const int tile_n : {64, 128}) {
    for (const int64_t m : {1, 33, 127, 129}) {
      expect_right({.problem = swizzled({.m = m, .n = tile_n + 1, .k = 64}), .tile_n = tile_n});
    }
    for (const int64_t n : {1, 15, 16, 17, 63, 65, 127, 130, 200}) {
      expect_right({.problem = swizzled({.m = 5, .n = n, .k = 128}), .tile_n = tile_n});
    }
  }
}

// 16 .. 512 in steps of 16 around one and two stages: rows of 8 bytes and of 16, scale tiles
// with one to four scales, ends inside a swizzle atom.
TEST(Sm100aShapes, EveryEndOfK) {
  for (int64_t k = 16; k <= 336; k += 16) {
    expect_right({.problem = swizzled({.m = 3, .n = 9, .k = k}), .tile_n = 64});
    expect_right({.problem = {.m = 3, .n = 9, .k = k}, .tile_n = 128});
  }
}

// More tiles of k than stages, ring positions of both parities.
TEST(Sm100aShapes, LongK) {
  for (const int tile_n : {64, 128}) {
    for (const int64_t k_tiles : {4, 5, 6, 9, 11}) {
      expect_right(
          {.problem = swizzled({.m = 7, .n = 20, .k = 256 * k_tiles - 48}), .tile_n = tile_n});
    }
  }
}

TEST(Sm100aShapes, BatchesStridesAndMisalignment) {
  Problem p = swizzled({.m = 130, .n = 70, .k = 96, .l = 3, .d = {.type = DataType::kF32}});
  p.gate.ld = 128;  // 64 bytes: in place
  p.up.ld = 104;    // 52 bytes: copied
  p.a.ld = 96 + 32;
  p.d.ld = 77;
  p.d.batch_stride = 77 * 131;
  p.gate.batch_stride = 128 * 71;
  p.up.scale_batch_stride = 1024 * 3 + 7;  // copied
  for (const int64_t misalign : {0, 1, 9}) {
    expect_right({.problem = p, .tile_n = 64, .misalign = misalign, .per_batch = true});
  }
  Problem in_place = swizzled({.m = 130, .n = 70, .k = 128, .l = 2});
  for (const int64_t misalign : {1, 7, 15}) {
    expect_right({.problem = in_place, .misalign = misalign, .per_batch = true});
  }
  Problem linear{.m = 20, .n = 150, .k = 80, .l = 2, .d = {.type = DataType::kBF16}};
  linear.gate.scale_ld = 9;
  linear.a.scale_batch_stride = 5 * 20 + 3;
  expect_right({.problem = linear, .misalign = 5});
}

TEST(Sm100aShapes, EveryActivationAndOutput) {
  int next = 0;
  for (const Activation& act : test::every_activation()) {
    for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
      Problem p = swizzled({.m = 37, .n = 50, .k = 320, .d = {.type = type}});
      p.act = act;
      p.bias = static_cast<BiasType>(next % 3);
      expect_right({.problem = p, .tile_n = ++next % 2 == 0 ? 64 : 128});
    }
  }
}

// Read in columns that exist only.
TEST(Sm100aShapes, Biases) {
  int next = 0;
  for (const BiasType bias : {BiasType::kF32, BiasType::kBF16}) {
    for (const int64_t n : {1, 17, 130}) {
      Problem p = swizzled({.m = 37, .n = n, .k = 80, .l = 2});
      p.d.type = static_cast<DataType>(1 + next++ % 3);
      p.bias = bias;
      expect_right({.problem = p,
                    .tile_n = next % 2 == 0 ? 64 : 128,
                    .misalign = next % 3,
                    .per_batch = next % 2 == 0});
    }
  }
}

// Every finite scale byte, subnormal ones among them, with every code; fp32 output, as most
// products are beyond fp16.
TEST(Sm100aShapes, ScalesOfTheWholeRange) {
  for (const ActivationKind kind : {ActivationKind::kIdentity, ActivationKind::kSilu}) {
    Problem p = swizzled({.m = 128, .n = 128, .k = 512, .d = {.type = DataType::kF32}});
    p.act.kind = kind;
    expect_right({.problem = p, .values = Values::kWide});
  }
}

}  // namespace
}  // namespace dualgemm::test
