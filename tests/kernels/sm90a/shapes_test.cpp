// The kernel against the oracle, every element within the bound of docs/numerics.md: shapes,
// layouts, strides, types, activations. Everything that must not be read for its value is poison.
#include "kernels/sm90a/simulated_run.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/factors.hpp"

namespace dualgemm::test {
namespace {

using reference::Accumulation;

struct Case {
  Problem problem;
  SimulatedRun run{};
  Values values = Values::kRandom;
  bool per_batch = false;  // alphas for each batch, and row scales
};

// `sharing`: one more if tiles were shared out.
void expect_right(Case c, int* sharing = nullptr) {
  const Problem& p = c.problem;
  SCOPED_TRACE(::testing::Message()
               << "m " << p.m << " n " << p.n << " k " << p.k << " l " << p.l << ", a "
               << name_of(p.a.type) << ", d " << name_of(p.d.type) << ", " << name_of(p.act.kind)
               << ", bias " << name_of(p.bias) << ", tile_m " << c.run.tile_m << ", misalign "
               << c.run.misalign << (c.run.prepared ? ", prepared" : ""));
  Rng rng;
  RandomCase data(p, rng, c.values);
  if (c.per_batch) add_alphas_and_row_scales(data, rng);
  ASSERT_TRUE(simulate(data, c.run));
  EXPECT_TRUE(within_bound(p, data.buffers(), Accumulation::kAnyOrder));
  if (sharing != nullptr) *sharing += c.run.shares_tiles;
}

TEST(Sm90aShapes, RaggedRowsAndColumns) {
  int next = 0;
  for (const int64_t m : {1, 7, 8, 9, 17, 33, 65, 129, 300}) {
    for (const int64_t n : {1, 31, 33, 65, 130}) {
      const Problem p{.m = m, .n = n, .k = 64, .a = {.type = kTypesOfA[next++ % 3]}};
      expect_right({.problem = next % 2 == 0 ? p : swizzled(p)});
    }
  }
}

// 16 .. 336 in steps of 16: rows of 8 bytes and of 16, scale tiles with one to four scales,
// ends inside a chunk and inside a k-tile.
TEST(Sm90aShapes, EveryEndOfK) {
  for (int64_t k = 16; k <= 336; k += 16) {
    expect_right({.problem = swizzled({.m = 3, .n = 9, .k = k})});
    expect_right({.problem = {.m = 10, .n = 9, .k = k, .a = {.type = DataType::kF16}}});
  }
}

// Rings that go around more than once, tiles whose k-tiles are shared out.
TEST(Sm90aShapes, LongKAndSharedTiles) {
  int shared = 0;
  for (const int64_t m : {5, 16, 40, 100, 200}) {
    for (const int max_ctas : {1, 5}) {
      Case c{.problem = {.m = m, .n = 130, .k = 256 * 14 - 48}, .run = {.max_ctas = max_ctas}};
      c.problem.gate.scale_layout = ScaleLayout::kSwizzled128x4;  // Up stays linear: one copy
      expect_right(c, &shared);
    }
  }
  EXPECT_GE(shared, 4);
}

TEST(Sm90aShapes, LinearScalesInPlace) {
  expect_right({.problem = {.m = 20, .n = 150, .k = 512, .l = 2}});
  expect_right({.problem = {.m = 3, .n = 1, .k = 256}});
  Problem p{.m = 5, .n = 33, .k = 272};
  p.gate.scale_ld = p.up.scale_ld = 32;
  expect_right({.problem = p});
}

TEST(Sm90aShapes, BatchesStridesAndMisalignment) {
  Problem p = swizzled({.m = 13, .n = 70, .k = 96, .l = 3, .d = {.type = DataType::kF32}});
  p.gate.ld = 128;  // 64 bytes: in place
  p.up.ld = 104;    // 52 bytes: copied
  p.a.ld = 96 + 32;
  p.d.ld = 77;
  p.d.batch_stride = 77 * 14;
  p.gate.batch_stride = 128 * 71;
  p.up.scale_batch_stride = 1024 * 3 + 7;  // copied
  for (const int64_t misalign : {0, 1, 9})
    expect_right({.problem = p, .run = {.misalign = misalign}, .per_batch = true});
  for (const DataType type : kTypesOfA) {
    Problem in_place = swizzled({.m = 13, .n = 70, .k = 128, .l = 2, .a = {.type = type}});
    for (const int64_t misalign : {1, 7, 15})
      expect_right({.problem = in_place, .run = {.misalign = misalign}, .per_batch = true});
  }
  Problem linear{.m = 20, .n = 150, .k = 80, .l = 2, .d = {.type = DataType::kBF16}};
  linear.gate.scale_ld = 9;
  linear.a.scale_batch_stride = 5 * 20 + 3;
  expect_right({.problem = linear, .run = {.misalign = 5}});
}

TEST(Sm90aShapes, EveryActivationAndOutput) {
  int next = 0;
  for (const Activation& act : test::every_activation()) {
    for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
      Problem p{.m = 13, .n = 50, .k = 320, .a = {.type = kTypesOfA[next++ % 3]}};
      p.d.type = type;
      p.act = act;
      p.bias = next % 2 == 0 ? BiasType::kF32 : BiasType::kBF16;
      expect_right({.problem = p});
    }
  }
}

// Added once where k-tiles are shared out, too, and read in columns that exist only.
TEST(Sm90aShapes, Biases) {
  int next = 0, shared = 0;
  for (const BiasType bias : {BiasType::kF32, BiasType::kBF16}) {
    for (const int64_t n : {1, 33, 130}) {
      for (const bool prepared : {false, true}) {
        Problem p{.m = 5, .n = n, .k = 256, .l = 2, .a = {.type = kTypesOfA[next++ % 3]}};
        p.d.type = static_cast<DataType>(1 + next % 3);
        p.bias = bias;
        expect_right({.problem = p,
                      .run = {.prepared = prepared, .misalign = next % 3},
                      .per_batch = next % 2 == 0});
      }
    }
    for (const bool prepared : {false, true}) {
      Case c{.problem = {.m = 40, .n = 130, .k = 256 * 14 - 48},
             .run = {.max_ctas = 5, .prepared = prepared}};
      c.problem.bias = bias;
      expect_right(c, &shared);
    }
  }
  EXPECT_GE(shared, 2);
}

// Prepared weights: units that n does not fill, ends of k in all of a k-tile's four parts, sources
// of any stride and alignment, tiles that are shared out.
TEST(Sm90aPrepared, RaggedRowsAndColumns) {
  int next = 0;
  for (const int64_t m : {1, 9, 17, 40, 65, 129, 300}) {
    for (const int64_t n : {1, 9, 33, 130}) {
      const Problem p{.m = m, .n = n, .k = 64, .a = {.type = kTypesOfA[next++ % 3]}};
      expect_right({.problem = next % 2 == 0 ? p : swizzled(p), .run = {.prepared = true}});
    }
  }
}

TEST(Sm90aPrepared, EveryEndOfK) {
  for (int64_t k = 16; k <= 336; k += 16) {
    const Problem p{.m = 3, .n = 9, .k = k, .a = {.type = kTypesOfA[k / 16 % 3]}};
    expect_right({.problem = k % 32 == 0 ? p : swizzled(p), .run = {.prepared = true}});
  }
}

TEST(Sm90aPrepared, BatchesStridesAndMisalignment) {
  for (const DataType type : kTypesOfA) {
    Problem p{.m = 13, .n = 150, .k = 272, .l = 3, .a = {.type = type}};
    p.d.type = DataType::kF32;
    p.gate.ld = 274;
    p.gate.batch_stride = 274 * 151 + 6;
    p.gate.scale_ld = 19;
    p.up.scale_layout = ScaleLayout::kSwizzled128x4;
    p.up.scale_batch_stride = 1024 * 5 + 7;
    p.a.ld = 272 + 16;
    for (const int64_t misalign : {0, 1, 9}) {
      expect_right(
          {.problem = p, .run = {.prepared = true, .misalign = misalign}, .per_batch = true});
    }
  }
}

TEST(Sm90aPrepared, LongKAndSharedTiles) {
  for (const int64_t m : {5, 16, 40, 100, 200}) {
    for (const int max_ctas : {1, 5}) {
      expect_right({.problem = {.m = m, .n = 130, .k = 256 * 14 - 48},
                    .run = {.max_ctas = max_ctas, .prepared = true}});
    }
  }
}

// Every finite scale byte, subnormal ones among them, with every code; fp32 output, as most
// products are beyond fp16.
TEST(Sm90aShapes, ScalesOfTheWholeRange) {
  for (const DataType type : kTypesOfA) {
    for (const ActivationKind kind : {ActivationKind::kIdentity, ActivationKind::kSilu}) {
      Problem p{.m = 24, .n = 64, .k = 512, .a = {.type = type}, .d = {.type = DataType::kF32}};
      p.act.kind = kind;
      expect_right({.problem = p, .values = Values::kWide});
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
