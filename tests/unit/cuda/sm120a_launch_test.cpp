// What the host decides about the sm_120a kernel; needs no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "cuda/kernels/sm120a/choice.hpp"
#include "cuda/kernels/sm120a/launch.hpp"
#include "cuda/kernels/sm120a/tiles.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

namespace sm120a = cuda::sm120a;

const DeviceCaps kRtx5090 = made_up_gpu(120, 170), kSpark = made_up_gpu(121, 48);

// Tiles of n columns of Gate and of Up: rows, stages.
std::array<int64_t, 2> chosen(int64_t m, int64_t n, const DeviceCaps& caps, int64_t k = 5120) {
  const Problem p{.m = m, .n = n, .k = k};
  const sm120a::Config& config = sm120a::choose_instance(p, caps).config;
  return {sm120a::tile_m_of(config), sm120a::stages_for(p, config, caps)};
}

TEST(Sm120aChoice, TilesFollowRowsColumnsAndTheGpu) {
  using Shape = std::array<int64_t, 2>;
  EXPECT_EQ(chosen(1, 17408, kRtx5090), (Shape{8, 5}));
  EXPECT_EQ(chosen(16, 17408, kRtx5090), (Shape{16, 4}));
  EXPECT_EQ(chosen(33, 17408, kRtx5090), (Shape{64, 3}));
  EXPECT_EQ(chosen(128, 17408, kRtx5090), (Shape{128, 5}));
  EXPECT_EQ(chosen(192, 17408, kRtx5090), (Shape{256, 3}));
  EXPECT_EQ(chosen(1024, 17408, kRtx5090), (Shape{256, 3}));
  EXPECT_EQ(chosen(16, 4096, kRtx5090), (Shape{16, 9})) << "an SM for each of 64 tiles";
  EXPECT_EQ(chosen(16, 17408, kSpark), (Shape{16, 3})) << "three tiles an SM at a time";
}

TEST(Sm120aChoice, EveryRingFitsAsManyCtasAsAnSmGets) {
  for (const sm120a::Instance& instance : sm120a::instances()) {
    const sm120a::Config& config = instance.config;
    for (const int64_t n : {64, 4096, 17408, 100000}) {
      const Problem p{.m = 700, .n = n, .k = 7168};
      const int stages = sm120a::stages_for(p, config, kRtx5090);
      EXPECT_TRUE(sm120a::has_stages(config, stages)) << instance.entry;
      EXPECT_LE(sm120a::smem_bytes_of(config, stages), 101376) << instance.entry;
    }
    EXPECT_EQ(sm120a::find_instance(sm120a::tile_m_of(config)), &instance);
    EXPECT_FALSE(sm120a::has_stages(config, 1));
    EXPECT_FALSE(sm120a::has_stages(config, 11));
  }
  EXPECT_EQ(sm120a::find_instance(24), nullptr);
}

TEST(Sm120aChoice, TheModelKnowsWhatMemoryAndTensorCoresAllow) {
  const auto us = [](int64_t m, const DeviceCaps& caps) {
    const Problem p{.m = m, .n = 17408, .k = 5120};
    return sm120a::modelled_us(p, sm120a::choose_instance(p, caps).config, caps);
  };
  EXPECT_NEAR(us(16, kRtx5090), 100.3e6 / 1.56e6 + 3, 1);
  EXPECT_NEAR(us(16, kSpark), 100.3e6 / 0.232e6 + 3, 4);
  EXPECT_GT(us(1024, kRtx5090), 365e9 / 2.0e9) << "2.0 PFLOP/s";
  EXPECT_LT(us(1024, kRtx5090), 255);
  EXPECT_LT(us(1, kRtx5090), us(4096, kRtx5090));
}

// 1088 whole tiles would be seven rounds of 170 SMs; 1020 and 136 halves are six and a half.
TEST(Sm120aTiles, TheLastColumnsHaveHalvesWhereThatIsSooner) {
  const sm120a::Config& config = sm120a::find_instance(256)->config;
  const auto tiles = [&](int64_t m, int64_t n, int64_t ctas, int64_t l = 1) {
    return sm120a::tiles_of({.m = m, .n = n, .k = 64, .l = l}, config, m, ctas);
  };
  EXPECT_EQ(tiles(1024, 17408, 170).whole_n, 255);
  EXPECT_EQ(tiles(1024, 17408, 170).of_batch(), 1020 + 136);
  EXPECT_EQ(tiles(1024, 17408, 170).halves_of_cta(170), 13);
  EXPECT_EQ(tiles(1024, 17408, 0).of_batch(), 1088) << "a CTA for each tile";
  EXPECT_EQ(tiles(1024, 17408, 170, 2).whole_n, 272) << "batches have whole ones";
  EXPECT_EQ(tiles(256, 64 * 170, 170).of_batch(), 170) << "nothing is left over";
  for (const int64_t m : {1, 129, 300, 4096}) {
    for (const int64_t n : {1, 64, 5000}) {
      for (const int64_t ctas : {1, 3, 170}) {
        const sm120a::Tiles t = tiles(m, n, ctas);
        EXPECT_GE(t.whole_n, 0);
        EXPECT_LE(t.whole_n, t.tiles_n);
        EXPECT_GE(t.tiles_m * 256, m);
        EXPECT_GE(t.halves_m * 128, m);
        EXPECT_GE(t.tiles_n * 64, n);
      }
    }
  }
}

TEST(Sm120aChoice, Refusals) {
  EXPECT_EQ(sm120a::supports({.m = 1, .n = 1, .k = 16}).message(), "ok");
  EXPECT_EQ(sm120a::supports({.m = 1, .n = 1, .k = 16, .a = {.type = DataType::kBF16}}).message(),
            "a.type: bf16; the sm_120a kernel takes e2m1; 16 bits are for sm80's");
  EXPECT_EQ(sm120a::supports({.m = 1, .n = int64_t{1} << 31, .k = 16}).message(),
            "n: 2147483648; must be below 2^31 on a GPU");
  EXPECT_EQ(sm120a::supports({.m = 1 << 21, .n = 1 << 20, .k = 16}).message(),
            "m, n, l: 2097152, 1048576, 1; must be at most 2^31 - 1 tiles of 8 x 64");
  EXPECT_EQ(sm120a::supports(
                {.m = 1 << 20, .n = 1 << 12, .k = 16, .l = 1 << 9, .grouping = Grouping::kMasked})
                .message(),
            "m, n, l: 1048576, 4096, 512; must be at most 2^31 - 1 tiles of 8 x 64");
}

TEST(Sm120aPlan, WhoTakesWhat) {
  for (const int capability : {120, 121}) {
    const DeviceCaps caps = made_up_gpu(capability, 48);
    const auto isa = [&](const Problem& p, const PlanOptions& options = {}) {
      const auto plan = make_plan(p, options, caps);
      EXPECT_TRUE(plan.ok()) << plan.status().message();
      return plan.ok() ? plan->isa : Isa::kAuto;
    };
    Problem p{.m = 5, .n = 80, .k = 144};
    EXPECT_EQ(isa(p), Isa::kSm120a);
    EXPECT_EQ(isa(p, {.unaligned = true}), Isa::kSm120a);
    EXPECT_EQ(isa(p, {.prepared = true}), Isa::kSm120a);
    EXPECT_EQ(isa(p, {.isa = Isa::kSm80}), Isa::kSm80);
    EXPECT_EQ(isa(p, {.strategy = StrategyId::kFusedEpilogue}), Isa::kSm80);
    EXPECT_EQ(isa(p, {.strategy = StrategyId::kTwoPass}), Isa::kSm80);
    p.batch_invariant = true;
    EXPECT_EQ(isa(p), Isa::kSm120a);
    p.grouping = Grouping::kMasked;
    EXPECT_EQ(isa(p), Isa::kSm120a);
    p.a.type = DataType::kF16;
    EXPECT_EQ(isa(p), Isa::kSm80);
  }
}

// What no plan may ask for, and GPUs that the kernel is not for.
TEST(Sm120aPlan, RefusesByArgumentValueAndRule) {
  const Problem p{.m = 5, .n = 80, .k = 144};
  const auto message = [&](const PlanOptions& options, int capability) {
    return make_plan(p, options, made_up_gpu(capability)).status().message();
  };
  EXPECT_EQ(message({.isa = Isa::kSm120a}, 90), "isa: sm120a; this machine offers sm90a, sm80");
  EXPECT_EQ(message({.isa = Isa::kSm120a}, 89), "isa: sm120a; this machine offers sm80");
  EXPECT_EQ(message({.isa = Isa::kSm120a}, 130), "isa: sm120a; this machine offers sm80");
  EXPECT_EQ(message({}, 130), "ok") << "an unknown architecture takes the portable kernels";
  EXPECT_EQ(message({.isa = Isa::kSm120a, .config = "tile_m=24"}, 120).substr(0, 8), "config: ");
  EXPECT_EQ(message({.strategy = StrategyId::kFused, .config = "kernel=mmanvf4,tile_m=64"}, 120),
            "ok");
}

// A plan's words lead back to the same plan.
TEST(Sm120aPlan, ItsConfigIsTakenWordForWord) {
  for (const int64_t m : {1, 16, 100, 1024}) {
    const Problem p{.m = m, .n = 17408, .k = 5120};
    const auto plan = make_plan(p, {}, kRtx5090);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const auto again = make_plan(p, {.config = plan->config()}, kRtx5090);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->config(), plan->config());
  }
}

}  // namespace
}  // namespace dualgemm::test
