// The kernel for few rows against the oracle, every element within the bound of docs/numerics.md:
// shapes, layouts, strides, types, activations; exact sums bit for bit; the same bits in every
// schedule. Everything that must not be read for its value is poison.
#include "kernels/simulation/results.hpp"
#include "kernels/simulation/schedules.hpp"
#include "kernels/sm90a_skinny/simulated_run.hpp"
#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/factors.hpp"
#include "support/hand_made.hpp"

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

TEST(Sm90aSkinnyExact, SumsAreTheOraclesBitForBit) {
  Rng rng;
  for (const DataType type : kTypesOfA) {
    for (const int64_t cols : kCols) {
      for (const int64_t m : {8, 16}) {
        Problem p{.m = m, .n = 70, .k = 4096 + 64, .a = {.type = type}};
        p.d.type = DataType::kF32;
        p.act.kind = ActivationKind::kIdentity;
        p.bias = cols % 16 == 0 ? BiasType::kBF16 : BiasType::kF32;
        RandomCase data(p, rng, Values::kExact);
        ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
        const std::vector<uint8_t> sums(data.d.data.begin(), data.d.data.end());
        for (const bool prepared : {false, true}) {
          if (m > cuda::sm90a_skinny::most_rows(prepared)) continue;
          data.poison_d();
          ASSERT_TRUE(simulate(data, {.cols = cols, .prepared = prepared}));
          EXPECT_TRUE(std::equal(sums.begin(), sums.end(), data.d.data.begin()))
              << name_of(type) << ", cols " << cols << (prepared ? ", prepared" : "");
        }
      }
    }
  }
}

TEST(Sm90aSkinnyExact, EveryCodeTimesEveryScale) {
  Rng rng;
  const auto is_exact = [](HandMade made) -> ::testing::AssertionResult {
    for (const bool prepared : {false, true}) {
      const SimulatedRun run{.cols = 32, .max_ctas = 2, .prepared = prepared};
      made.data.poison_d();
      if (auto result = simulate(made.data, run); !result) return result;
      auto result = made.is(bits_of(made.data));
      if (!result) return result << (prepared ? ", prepared" : "");
    }
    return ::testing::AssertionSuccess();
  };
  int next = 0;
  for (Rows rows{.first = 0, .count = 8}; rows.first < 256; rows.first += 8) {
    const ScaleLayout layout = ++next % 2 == 0 ? ScaleLayout::kLinear : ScaleLayout::kSwizzled128x4;
    EXPECT_TRUE(is_exact(every_weight(kTypesOfA[next % 3], next % 4 < 2, layout, rng, rows)))
        << "rows from " << rows.first;
    EXPECT_TRUE(is_exact(every_activation(layout, rng, rows))) << "rows from " << rows.first;
  }
  for (const bool largest : {true, false})
    EXPECT_TRUE(is_exact(extreme_scales(largest, DataType::kF32, rng, 8))) << largest;
}

void expect_same_in_every_schedule(int64_t m, bool prepared) {
  for (const int64_t cols : {8, 32}) {
    const Problem p{.m = m, .n = 5 * cols + 3, .k = 256 * 19 - 64, .d = {.type = DataType::kF32}};
    Rng rng;
    RandomCase data(p, rng, Values::kWide);
    const SimulatedRun run{.cols = cols, .max_ctas = 2, .prepared = prepared};
    expect_same_bits_in_schedules(data, run, 4, reference::Accumulation::kAnyOrder);
  }
}

TEST(Sm90aSkinnySchedules, TheSameBitsInAllOfThem) { expect_same_in_every_schedule(7, false); }
TEST(Sm90aSkinnySchedules, TheSameBitsOfPreparedWeights) { expect_same_in_every_schedule(7, true); }
TEST(Sm90aSkinnySchedules, TheSameBitsOfSixteenRows) { expect_same_in_every_schedule(15, true); }

TEST(Sm90aSkinnyChoice, TilesAndRefusals) {
  namespace skinny = cuda::sm90a_skinny;
  const auto cols = [](int64_t n) {
    return skinny::tile_n_of(
        skinny::choose_instance({.m = 1, .n = n, .k = 4096}, 132, false).config);
  };
  EXPECT_EQ(cols(4096), 32);  // 128 tiles for 132 SMs
  EXPECT_EQ(cols(3072), 24);
  EXPECT_EQ(cols(1024), 8);
  EXPECT_EQ(cols(14336), 24);
  EXPECT_EQ(
      skinny::tile_n_of(skinny::choose_instance({.m = 1, .n = 14336, .k = 4096}, 132, true).config),
      32);  // the fourth tile, of 16, costs less than the fifth of 24
  const auto faster = [](int64_t n, int64_t m = 1) {
    return skinny::is_faster({.m = m, .n = n, .k = 4096}, 132, false);
  };
  for (const int64_t n : {8, 512, 1024, 3072, 4096, 4224, 5120, 8192}) EXPECT_TRUE(faster(n)) << n;
  EXPECT_FALSE(faster(4232));   // a second tile for a few
  EXPECT_FALSE(faster(14336));  // a decoded five times by a CTA
  EXPECT_TRUE(faster(4096, 8));
  const auto prepared_faster = [](int64_t n, int64_t m, DataType a = DataType::kE2M1) {
    Problem p{.m = m, .n = n, .k = 4096};
    p.a.type = a;
    return skinny::is_faster(p, 132, true);
  };
  for (const int64_t n : {3072, 4232, 14336, 18432}) EXPECT_TRUE(prepared_faster(n, 8)) << n;
  for (const int64_t n : {3072, 4232, 8192, 11008}) EXPECT_TRUE(prepared_faster(n, 16)) << n;
  EXPECT_FALSE(prepared_faster(14336, 9));  // a decoded four times by a CTA
  EXPECT_TRUE(prepared_faster(14336, 9, DataType::kF16));
  EXPECT_FALSE(prepared_faster(28672, 9, DataType::kF16));
  for (const int64_t m : {1, 8, 9, 16}) {
    const skinny::Config& config =
        skinny::choose_instance({.m = m, .n = 3072, .k = 4096}, 132, true).config;
    EXPECT_EQ(config.tile_m, m <= 8 ? 8 : 16) << m;
    EXPECT_EQ(skinny::tile_n_of(config), 24) << m;
  }
  EXPECT_EQ(skinny::supports({.m = 16, .n = 1, .k = 64}, true).message(), "ok");
  EXPECT_EQ(skinny::supports({.m = 17, .n = 1, .k = 64}, true).message(),
            "m: 17; must be at most 16 for this kernel");
  const auto message = [](const Problem& p) { return skinny::supports(p, false).message(); };
  EXPECT_EQ(message({.m = 8, .n = 1, .k = 64}), "ok");
  EXPECT_EQ(message({.m = 9, .n = 1, .k = 64}), "m: 9; must be at most 8 for this kernel");
  EXPECT_EQ(message({.m = 1, .n = 1, .k = 80}), "k: 80; must be a multiple of 64 for this kernel");
  EXPECT_EQ(message({.m = 1, .n = 2, .k = 64, .gate = {.ld = 80}}),
            "gate: a stride of 40 bytes; must be a multiple of 16 for this kernel");
  EXPECT_EQ(message({.m = 1, .n = 2, .k = 64, .gate = {.ld = int64_t{1} << 31}}),
            "gate: a stride of 1073741824 bytes; must be below 2^30 for this kernel");
  EXPECT_EQ(message({.m = 1, .n = 4096, .k = 64, .up = {.scale_ld = 1 << 20}}),
            "up_scales: 4096 rows, 1048576 bytes apart; must be below 2^32 bytes for this kernel");
}

}  // namespace
}  // namespace dualgemm::test
