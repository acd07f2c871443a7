// The kernel against the oracle, every element within the bound of docs/numerics.md: shapes,
// layouts, strides, types, activations. Everything that must not be read for its value is poison,
// and the grid before is at work until the kernel has waited for it.
#include "kernels/simulation/tile_case.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"
#include "support/every_activation.hpp"

namespace dualgemm::test {
namespace {

void expect_right(const TileCase& c) { expect_right_in_tiles<SimulatedRun>(c); }

// The challenge's four benchmark shapes, a sixteenth of N, a fourteenth of K.
TEST(Sm100aPairShapes, TheChallengesFourScaled) {
  const int64_t shapes[][3] = {{256, 256, 512}, {512, 256, 512}, {256, 192, 256}, {512, 192, 512}};
  for (const auto& [m, n, k] : shapes) {
    expect_right({.problem = swizzled({.m = m, .n = n, .k = k}),
                  .values = Values::kChallenge,
                  .tile_n = m == 512 ? 128 : 64});
  }
}

// Rows that end in either CTA or at its edges; columns around tiles, their halves and the chunks of
// the epilogue.
TEST(Sm100aPairShapes, RaggedRowsAndColumns) {
  for (const int tile_n : {64, 128}) {
    for (const int64_t m : {1, 33, 127, 128, 129, 160, 255, 257}) {
      expect_right({.problem = swizzled({.m = m, .n = tile_n + 1, .k = 64}), .tile_n = tile_n});
    }
    for (const int64_t n : {1, 15, 16, 31, 33, 63, 65, 130, 200}) {
      expect_right({.problem = swizzled({.m = 133, .n = n, .k = 128}), .tile_n = tile_n});
    }
  }
}

// Rows of 8 bytes and of 16, scale tiles with one to four scales, ends inside a swizzle atom.
TEST(Sm100aPairShapes, EndsOfK) {
  for (int64_t k = 16; k <= 336; k += 80) {
    expect_right({.problem = swizzled({.m = 130, .n = 9, .k = k}), .tile_n = 64});
    expect_right({.problem = {.m = 130, .n = 9, .k = k + 16}, .tile_n = 128});
  }
}

// More tiles of k than stages, ring positions of both parities.
TEST(Sm100aPairShapes, LongK) {
  for (const int64_t k_tiles : {5, 6, 11})
    expect_right({.problem = swizzled({.m = 131, .n = 20, .k = 256 * k_tiles - 48})});
  for (const int64_t k_tiles : {7, 8, 15})
    expect_right({.problem = swizzled({.m = 131, .n = 20, .k = 256 * k_tiles - 48}), .tile_n = 64});
}

TEST(Sm100aPairShapes, BatchesStridesAndMisalignment) {
  Problem p = swizzled({.m = 130, .n = 70, .k = 96, .l = 3, .d = {.type = DataType::kF32}});
  p.gate.ld = 128;  // 64 bytes: in place
  p.up.ld = 104;    // 52 bytes: copied
  p.a.ld = 96 + 32;
  p.d.ld = 77;
  p.d.batch_stride = 77 * 131;
  p.gate.batch_stride = 128 * 71;
  p.up.scale_batch_stride = 1024 * 3 + 7;  // copied
  for (const int64_t misalign : {0, 9})
    expect_right({.problem = p, .tile_n = 64, .misalign = misalign, .per_batch = true});
  const Problem in_place = swizzled({.m = 130, .n = 70, .k = 128, .l = 2});
  expect_right({.problem = in_place, .misalign = 7, .per_batch = true});
  Problem linear{.m = 140, .n = 150, .k = 80, .l = 2, .d = {.type = DataType::kBF16}};
  linear.gate.scale_ld = 9;
  linear.a.scale_batch_stride = 5 * 140 + 3;
  expect_right({.problem = linear, .misalign = 5});
}

TEST(Sm100aPairShapes, EveryActivationOutputAndBias) {
  int next = 0;
  for (const Activation& act : test::every_activation()) {
    Problem p = swizzled({.m = 137, .n = 50, .k = 320});
    p.d.type = static_cast<DataType>(1 + next % 3);
    p.act = act;
    p.bias = static_cast<BiasType>(next / 3 % 3);
    expect_right({.problem = p, .tile_n = ++next % 2 == 0 ? 64 : 128});
  }
}

// Every finite scale byte, subnormal ones among them, with every code; fp32 output, as most
// products are beyond fp16.
TEST(Sm100aPairShapes, ScalesOfTheWholeRange) {
  Problem p = swizzled({.m = 256, .n = 128, .k = 512, .d = {.type = DataType::kF32}});
  expect_right({.problem = p, .values = Values::kWide});
}

}  // namespace
}  // namespace dualgemm::test
