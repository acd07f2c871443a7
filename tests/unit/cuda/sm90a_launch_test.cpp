// What the host decides about the sm_90a kernel; needs no GPU. On one, every_kernel_test.cpp and
// fused_strategy_test.cpp run all instances.
#include <gtest/gtest.h>

#include <random>

#include "cuda/device/divisor.hpp"
#include "cuda/kernels/sm90a/extents.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/strategies/strategies.hpp"
#include "plan/choose.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

namespace sm90a = cuda::sm90a;

TEST(Divisor, QuotientsOfAllNumbers) {
  std::mt19937 random(20261122);
  const auto expect_right = [](uint32_t number, uint32_t divisor) {
    EXPECT_EQ(cuda::quotient(number, cuda::Divisor(divisor)), number / divisor)
        << number << " / " << divisor;
  };
  for (int shift = 0; shift < 32; ++shift) {
    for (const uint32_t divisor : {1u << shift, (1u << shift) + 1, ~0u >> shift, ~0u - shift}) {
      for (const uint32_t number : {0u, 1u, divisor - 1, divisor, divisor + 1, ~0u - 1, ~0u})
        expect_right(number, divisor);
      for (int i = 0; i < 1000; ++i) {
        const auto multiple = static_cast<uint32_t>(random() / divisor * divisor);
        for (const uint32_t number : {multiple - 1, multiple, multiple + 1})
          expect_right(number, divisor);
      }
    }
  }
}

TEST(Sm90aChoice, PlansForAGpuThatIsNotThere) {
  const DeviceCaps caps = made_up_gpu(90);
  const auto plan = [&](const Problem& problem) {
    return *plan::choose(problem, {.device = DeviceKind::kCuda}, caps, cuda::strategies(), "");
  };
  const Plan one = plan({.m = 1, .n = 4096, .k = 7168});
  EXPECT_EQ(one.config(), "cuda_sm90a_fused_skinny_c128_t8x32x256_s1_f16");  // few rows
  EXPECT_EQ(one.workspace_bytes, 0);
  EXPECT_EQ(plan({.m = 8, .n = 3072, .k = 7168}).shape.tile_n, 24);  // 128 tiles
  const Plan tail = plan({.m = 1, .n = 4096, .k = 7168 + 16});  // not for the kernel for few rows
  EXPECT_EQ(tail.shape.k_warpgroups, 4);
  EXPECT_GT(tail.workspace_bytes, 2 * 4096 * (3584 + 8));  // rows that are copied to 16 bytes
  const Plan whole = plan({.m = 9, .n = 4096, .k = 7168});
  EXPECT_EQ(whole.workspace_bytes, 9 * 7168 * 2);  // A, decoded
  const Plan shared = plan({.m = 9, .n = 3072, .k = 7168});
  EXPECT_EQ(shared.shape.ctas, 132);
  EXPECT_GT(shared.workspace_bytes, 9 * 7168 * 2 + 132 * 16 * 64 * 4 - 1);  // and partial sums
  EXPECT_EQ(plan({.m = 1, .n = 3072, .k = 7168, .batch_invariant = true}).shape.ctas,
            24);  // whole tiles
}

// Tiles of 96 columns where they fill 132 SMs better than those of 64.
TEST(Sm90aChoice, TilesOf96Columns) {
  const auto tile_n = [](int64_t m, int64_t n, bool batch_invariant = false) {
    const Problem p{.m = m, .n = n, .k = 7168, .batch_invariant = batch_invariant};
    for (const bool prepared : {false, true}) {
      EXPECT_EQ(sm90a::choose_instance(p, 132, prepared).config.prepared, prepared);
    }
    return sm90a::tile_n_of(sm90a::choose_instance(p, 132, true).config);
  };
  for (const int64_t m : {256, 512, 1024}) {
    EXPECT_EQ(tile_n(m, 3072), 96) << m;
    EXPECT_EQ(tile_n(m, 4096), 64) << m;
  }
  EXPECT_EQ(tile_n(128, 3072), 64) << "32 tiles for 132 SMs";
  EXPECT_EQ(tile_n(2048, 3072), 64) << "three waves of 256 rows";
  EXPECT_EQ(tile_n(512, 3072, true), 96) << "a wave of whole tiles for two";
}

// In groups where their tiles are many: few may be a wave more.
TEST(Sm90aChoice, TilesOf96ColumnsOfGroups) {
  const auto tile_n = [](int64_t m, int64_t n, int64_t k, int64_t l) {
    const Problem p{.m = m, .n = n, .k = k, .l = l, .grouping = Grouping::kContiguous};
    const sm90a::Config& config = sm90a::choose_instance(p, 132, true).config;
    EXPECT_EQ(config.tile_m, 128) << m << " " << n;
    return sm90a::tile_n_of(config);
  };
  EXPECT_EQ(tile_n(32768, 768, 2048, 128), 96) << "Qwen3-30B-A3B, 4096 tokens";
  EXPECT_EQ(tile_n(16384, 2880, 2880, 128), 96) << "gpt-oss-120b, 4096 tokens";
  EXPECT_EQ(tile_n(2048, 14336, 4096, 8), 96) << "Mixtral-8x7B, 1024 tokens";
  EXPECT_EQ(tile_n(15996, 2048, 7168, 32), 96) << "DeepSeek-V3, 16384 tokens";
  EXPECT_EQ(tile_n(4062, 2048, 7168, 32), 64) << "DeepSeek-V3, 4096 tokens: 22 columns of tiles";
  EXPECT_EQ(tile_n(512, 4096, 1536, 2), 64) << "two waves of 64 columns";
  EXPECT_EQ(tile_n(512, 3072, 4096, 2), 64);
}

TEST(Sm90aChoice, SchedulesAndRefusals) {
  const auto tile_m = [](int64_t m) {
    return sm90a::choose_instance({.m = m, .n = 4096, .k = 7168}, 132, false).config.tile_m;
  };
  EXPECT_EQ(tile_m(1), 8);
  EXPECT_EQ(tile_m(9), 16);
  EXPECT_GE(tile_m(33), 32);
  EXPECT_LE(tile_m(33), 64);
  EXPECT_GE(tile_m(256), 128);
  EXPECT_EQ(tile_m(4096), 256);
  for (const int64_t ctas : {1, 5, 78, 132}) {  // made again from its own CTAs: the same
    for (const int64_t m : {1, 40, 256, 1024}) {
      const Problem p{.m = m, .n = 3072, .k = 7168};
      const sm90a::Config& config = sm90a::choose_instance(p, 132, false).config;
      const sm90a::Schedule once = sm90a::make_schedule(p, config, ctas);
      const sm90a::Schedule again = sm90a::make_schedule(p, config, once.ctas);
      EXPECT_EQ(once.ctas, again.ctas);
      EXPECT_EQ(once.whole_tiles, again.whole_tiles);
      EXPECT_EQ(once.shared_k_tiles, again.shared_k_tiles);
      EXPECT_EQ(once.paired, again.paired);
    }
  }
  const sm90a::Config wide{128, 2, 1, false, false, false};
  const sm90a::Schedule pairs = sm90a::make_schedule({.m = 128, .n = 4096, .k = 7168}, wide, 132);
  EXPECT_TRUE(pairs.paired);
  EXPECT_EQ(pairs.ctas, 128);
  EXPECT_FALSE(
      sm90a::make_schedule({.m = 128, .n = 4096, .k = 7168, .batch_invariant = true}, wide, 132)
          .paired);
  EXPECT_FALSE(sm90a::make_schedule({.m = 128, .n = 1024, .k = 7168}, wide, 132).paired);
  EXPECT_FALSE(sm90a::make_schedule({.m = 128, .n = 14336, .k = 7168}, wide, 132).paired);
  EXPECT_EQ(sm90a::supports({.m = 1, .n = 1, .k = 16}).message(), "ok");
  EXPECT_EQ(sm90a::supports({.m = 1, .n = 1, .k = 16, .a = {.type = DataType::kF32}}).message(),
            "a.type: f32; the kernels for a GPU take e2m1, f16 or bf16");
  EXPECT_EQ(sm90a::supports({.m = 1, .n = 1, .k = 16, .grouping = Grouping::kMasked}).message(),
            "ok");
  EXPECT_EQ(sm90a::supports({.m = int64_t{1} << 31, .n = 1, .k = 16}).message(),
            "m: 2147483648; must be below 2^31 on a GPU");
}

}  // namespace
}  // namespace dualgemm::test
