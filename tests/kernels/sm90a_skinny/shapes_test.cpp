// The kernel for few rows against the oracle, every element within the bound of docs/numerics.md:
// shapes, layouts, strides, types, activations. Everything that must not be read for its value is poison.
#include "kernels/sm90a_skinny/simulated_run.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/factors.hpp"

namespace dualgemm::test {
namespace {

constexpr int64_t kCols[] = {8, 16, 24, 32};

void expect_right_once(const Problem& p, const SimulatedRun& run, bool factors) {
  SCOPED_TRACE(::testing::Message()
               << "m " << p.m << " n " << p.n << " k " << p.k << " l " << p.l << ", a "
               << name_of(p.a.type) << ", d " << name_of(p.d.type) << ", " << name_of(p.act.kind)
               << ", bias " << name_of(p.bias) << ", cols " << run.cols << ", ctas " << run.max_ctas
               << (run.prepared ? ", prepared" : "") << ", a's scales " << run.misalign_a_scales
               << " past a multiple of 256, rows " << p.a.scale_ld);
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  if (factors) add_alphas_and_row_scales(data, rng);
  ASSERT_TRUE(simulate(data, run));
  EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
}

// Unpacked weights, up to 8 rows of A, and prepared.
void expect_right(const Problem& p, SimulatedRun run = {}, bool factors = false) {
  for (const bool prepared : {false, true}) {
    if (p.m > cuda::sm90a_skinny::most_rows(prepared)) continue;
    run.prepared = prepared;
    expect_right_once(p, run, factors);
  }
}

TEST(Sm90aSkinnyShapes, RaggedRowsAndColumns) {
  int next = 0;
  for (int64_t m = 1; m <= 16; ++m) {
    for (const int64_t n : {1, 7, 9, 33, 130}) {
      const Problem p{.m = m, .n = n, .k = 64, .a = {.type = kTypesOfA[next % 3]}};
      expect_right(next % 2 == 0 ? p : swizzled(p), {.cols = kCols[next % 4]});
      ++next;
    }
  }
}

// A k-tile of 256 with one to four words of scales; fewer k-tiles than warps, as many, and more.
TEST(Sm90aSkinnyShapes, EveryEndOfK) {
  int next = 0;
  for (const int64_t k : {64, 128, 192, 256, 320, 3840, 4096 - 64, 4096, 4096 + 64, 8192 + 192}) {
    for (const DataType type : kTypesOfA) {
      for (const int64_t m : {3, 11}) {
        const Problem p{.m = m, .n = 17, .k = k, .a = {.type = type}};
        expect_right(++next % 2 == 0 ? p : swizzled(p), {.cols = kCols[next / 2 % 4]});
      }
    }
  }
}

// More tiles than CTAs: rings go on from tile to tile.
TEST(Sm90aSkinnyShapes, BatchesStridesAndManyTiles) {
  int next = 0;
  for (const DataType type : kTypesOfA) {
    for (const int64_t cols : kCols) {
      for (const int64_t m : {5, 14}) {
        Problem p{.m = m, .n = 150, .k = 4096 + 320, .l = 2, .a = {.type = type}};
        p.d.type = DataType::kF32;
        p.gate.ld = p.k + 96;
        p.gate.scale_ld = p.k / 16 + 8;
        p.up.scale_layout = ScaleLayout::kSwizzled128x4;
        p.a.ld = p.k + 16 * ++next;
        p.d.ld = 153;
        p.d.batch_stride = 153 * (m + 1);
        expect_right(p, {.cols = cols, .max_ctas = 4}, true);
      }
    }
  }
}

// Rows of A's scales at any byte, the last one to the end of the buffer; warps with 0, 1, 3, 4, 5
// chunks.
TEST(Sm90aSkinnyShapes, ScalesOfAAnywhere) {
  int next = 0;
  for (const int64_t chunks : {1, 17, 47, 64, 81}) {
    for (const int64_t m : {7, 16}) {
      const int64_t cols = kCols[next++ % 4];
      Problem p{.m = m, .n = cols + 1, .k = 64 * chunks, .l = 2};
      for (const int64_t padding : {0, 1, 2}) {
        p.a.scale_ld = 4 * chunks + padding;
        p.a.scale_batch_stride = m * p.a.scale_ld + next % 3;
        expect_right(p, {.cols = cols, .misalign_a_scales = (next + padding) % 5});
      }
      p.a.scale_ld = p.a.scale_batch_stride = 0;
      p.a.scale_layout = ScaleLayout::kSwizzled128x4;
      expect_right(p, {.cols = cols, .misalign_a_scales = next % 8});
    }
  }
}

TEST(Sm90aSkinnyShapes, EveryActivationAndOutput) {
  int next = 0;
  for (Activation act : test::every_activation()) {
    if (core::takes_parameters(act.kind)) act.beta = 0.5f;
    for (const DataType output : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
      Problem p{.m = 4, .n = 20, .k = 128, .a = {.type = kTypesOfA[next++ % 3]}};
      p.d.type = output;
      p.act = act;
      p.bias = next % 2 == 0 ? BiasType::kF32 : BiasType::kBF16;
      expect_right(p);
    }
  }
}

// Read in columns that exist only.
TEST(Sm90aSkinnyShapes, Biases) {
  int next = 0;
  for (const BiasType bias : {BiasType::kF32, BiasType::kBF16}) {
    for (const int64_t n : {1, 9, 70}) {
      for (const int64_t m : {3, 8, 13}) {
        Problem p{.m = m, .n = n, .k = 192, .l = 2, .a = {.type = kTypesOfA[next++ % 3]}};
        p.d.type = static_cast<DataType>(1 + next % 3);
        p.bias = bias;
        expect_right(p, {.cols = kCols[next % 4]}, next % 2 == 0);
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
