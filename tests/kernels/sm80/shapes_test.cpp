// The kernels of fused, fused_sequential and fused_epilogue against the oracle, every element
// within the bound of docs/numerics.md: shapes, layouts, strides, types, activations.
// Everything that must not be read for its value is poison.
#include "kernels/sm80/simulated_run.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/factors.hpp"

namespace dualgemm::test {
namespace {

using reference::Accumulation;

void expect_right(const Problem& p, const SimulatedRun& run = {}, Values values = Values::kRandom,
                  bool per_batch = false) {
  SCOPED_TRACE(::testing::Message()
               << "m " << p.m << " n " << p.n << " k " << p.k << " l " << p.l << ", a "
               << name_of(p.a.type) << ", d " << name_of(p.d.type) << ", " << name_of(p.act.kind)
               << ", bias " << name_of(p.bias) << ", tile_m " << run.tile_m << ", misalign "
               << run.misalign << ", " << name_of(run.passes));
  Rng rng;
  RandomCase data(p, rng, values);
  if (per_batch) add_alphas_and_row_scales(data, rng);
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), Accumulation::kAnyOrder));
}

TEST(Sm80Shapes, RaggedRowsAndColumns) {
  int next = 0;
  for (const int64_t m : {1, 7, 8, 9, 63, 64, 65, 130}) {
    for (const int64_t n : {1, 7, 8, 9, 17, 40}) {
      const Problem p{.m = m, .n = n, .k = 144, .a = {.type = kTypesOfA[next++ % 3]}};
      expect_right(next % 2 == 0 ? p : swizzled(p), {.passes = kPasses[next / 2 % 3]});
    }
  }
}

// K-tiles of 128 that end after each of their 16-blocks; fewer of them than warps that share them.
TEST(Sm80Shapes, EveryEndOfK) {
  for (int64_t k = 16; k <= 272; k += 16) {
    for (const DataType type : kTypesOfA) {
      const Passes& passes = kPasses[(k / 16 + static_cast<int>(type)) % 3];
      expect_right(swizzled({.m = 3, .n = 9, .k = k, .a = {.type = type}}), {.passes = passes});
      expect_right({.m = 10, .n = 9, .k = k, .a = {.type = type}}, {.passes = passes});
    }
  }
}

TEST(Sm80Shapes, BatchesStridesAndMisalignment) {
  int next = 0;
  for (const DataType type : kTypesOfA) {
    Problem p{.m = 70, .n = 20, .k = 2048 + 96, .l = 2, .a = {.type = type}};
    p.d.type = DataType::kF32;
    p.gate.ld = p.k + 34;  // rows at odd addresses
    p.gate.scale_ld = p.k / 16 + 3;
    p.up.scale_layout = ScaleLayout::kSwizzled128x4;
    p.d.ld = 23;
    p.d.batch_stride = 23 * 71;
    for (const int64_t misalign : {0, 1, 8, 9}) {
      expect_right(p, {.misalign = misalign, .passes = kPasses[next++ % 3]}, Values::kRandom, true);
    }
  }
}

TEST(Sm80Shapes, EveryActivationAndOutput) {
  int next = 0;
  for (const Activation& act : test::every_activation()) {
    for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
      Problem p{.m = 9, .n = 17, .k = 160, .a = {.type = kTypesOfA[next++ % 3]}};
      p.d.type = type;
      p.act = act;
      p.bias = next % 2 == 0 ? BiasType::kF32 : BiasType::kBF16;
      expect_right(p, {.passes = kPasses[next % 3]});
    }
  }
}

// Added once by every pass, and read in columns that exist only.
TEST(Sm80Shapes, Biases) {
  int next = 0;
  for (const Passes& passes : kPasses) {
    for (const BiasType bias : {BiasType::kF32, BiasType::kBF16}) {
      for (const int64_t n : {1, 33, 70}) {
        for (const int64_t m : {5, 70}) {
          Problem p{.m = m, .n = n, .k = 144, .l = 2, .a = {.type = kTypesOfA[next++ % 3]}};
          p.d.type = static_cast<DataType>(1 + next % 3);
          p.bias = bias;
          expect_right(p, {.misalign = next % 3, .passes = passes}, Values::kRandom, next % 2 == 0);
        }
      }
    }
  }
}

// Every finite scale byte with every code, by both tiles; fp32 output, as most products are beyond
// fp16.
TEST(Sm80Shapes, ScalesOfTheWholeRange) {
  for (const DataType type : kTypesOfA) {
    for (const int tile_m : {8, 64}) {
      Problem p = swizzled({.m = 64, .n = 64, .k = 512, .a = {.type = type}});
      p.d.type = DataType::kF32;
      p.act.kind = ActivationKind::kIdentity;
      expect_right(p, {.tile_m = tile_m}, Values::kWide);
    }
  }
}

// Columns of several tiles of 32, the last one ragged, and rows of several of 64.
TEST(Sm80Shapes, EveryPassOverSeveralTiles) {
  int next = 0;
  for (const Passes& passes : kPasses) {
    for (const int64_t n : {31, 33, 70}) {
      Problem p{.m = 129, .n = n, .k = 208, .l = 2, .a = {.type = kTypesOfA[next++ % 3]}};
      p.d.ld = n + 3;
      expect_right(next % 2 == 0 ? p : swizzled(p), {.passes = passes}, Values::kRandom, true);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
