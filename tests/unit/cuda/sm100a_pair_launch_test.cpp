// What the host decides for Blackwell's kernel of a pair of CTAs: when it is taken, with which
// tile, which views and which grid. No GPU is needed.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/kernels/blackwell/packed_weights.hpp"
#include "cuda/kernels/blackwell/params.hpp"
#include "cuda/kernels/blackwell/tile_choice.hpp"
#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/kernels/sm100a_pair/launch.hpp"
#include "unit/cuda/on_gpu.hpp"
#include "unit/cuda/recorded_views.hpp"

namespace dualgemm::cuda::sm100a_pair {
namespace {

using test::boxes;
using test::far_buffers;
using test::record_view;
using test::swizzled;

using blackwell::TileChoice;

// The fastest of the three kernels for A in NVFP4 and more rows than few, as the families have it.
TileChoice fastest_tile(int64_t m, int64_t n, int64_t k, int num_sms, int max_pairs = -1,
                        bool prepared = false) {
  const auto pair = blackwell::fastest_pair(m, n, k, 1, num_sms, max_pairs, prepared);
  const auto persistent = blackwell::persistent_pair(m, n, k, 1, num_sms, max_pairs, prepared);
  const double one_cta = blackwell::us_of_one_cta(m, n, k, 1, num_sms);
  if (!prepared && one_cta < std::min(pair.us, persistent.us))
    return {1, blackwell::choose_tile_n(m, n, 1, num_sms)};
  return persistent.us < pair.us ? persistent.tile : pair.tile;
}

TEST(Sm100aPairChoice, NamesSayWhatTheInstancesAre) {
  for (const Instance& instance : instances()) {
    EXPECT_EQ(instance.entry,
              "dual_gemm_sm100a_pair_t256x" + std::to_string(instance.config.tile_n) + "x256_s" +
                  std::to_string(instance.stages) + "_" + name_of(instance.config.output));
    EXPECT_LE(instance.dynamic_smem_bytes, 227u * 1024);
  }
  EXPECT_EQ(instances().size(), 8u);
  for (const Instance& instance : prepared_instances()) {
    EXPECT_EQ(instance.entry, "dual_gemm_sm100a_pair_prepared_t256x" +
                                  std::to_string(instance.config.tile_n) + "x256_s" +
                                  std::to_string(instance.stages) + "_" +
                                  name_of(instance.config.output));
    EXPECT_LE(instance.dynamic_smem_bytes, 227u * 1024);
  }
  EXPECT_EQ(prepared_instances().size(), 24u);
  for (const Instance& instance : persistent_instances()) {
    EXPECT_EQ(instance.entry, std::string("dual_gemm_sm100a_pair_persistent") +
                                  (instance.config.prepared ? "_prepared" : "") +
                                  "_t256x128x256_s5_" + name_of(instance.config.output));
    EXPECT_TRUE(instance.config.persistent);
    EXPECT_EQ(instance.threads, 384u);
    EXPECT_LE(instance.dynamic_smem_bytes, 227u * 1024);
  }
  EXPECT_EQ(persistent_instances().size(), 8u);
  EXPECT_EQ(find_instance(96, DataType::kF16), nullptr);
  EXPECT_EQ(find_instance(64, DataType::kF16, false, true), nullptr);
}

TEST(Sm100aPairChoice, WhatTakesLeast) {
  const auto tile = [](int64_t m, int64_t n, int64_t k = 7168, int num_sms = 148) {
    return fastest_tile(m, n, k, num_sms);
  };
  // The challenge's benchmark shapes.
  EXPECT_EQ(tile(256, 4096), (TileChoice{2, 64}));
  EXPECT_EQ(tile(512, 4096), (TileChoice{2, 128}));  // 64 pairs, or two waves of narrow ones
  EXPECT_EQ(tile(256, 3072, 4096), (TileChoice{2, 64}));
  EXPECT_EQ(tile(512, 3072), (TileChoice{2, 128}));
  EXPECT_EQ(tile(128, 4096), (TileChoice{2, 64}));  // half of a pair is idle, and loads nothing
  EXPECT_EQ(tile(1, 4096), (TileChoice{2, 64}));
  EXPECT_EQ(tile(1, 28672, 4096), (TileChoice{2, 128, true}));
  EXPECT_EQ(tile(4096, 4096), (TileChoice{2, 128, true}));  // seven tiles a pair
  EXPECT_EQ(tile(1024, 4096), (TileChoice{2, 128, true}));  // two
  EXPECT_EQ(tile(8192, 4096, 256), (TileChoice{2, 128, true}));
  EXPECT_EQ(tile(384, 6144), (TileChoice{1, 128}));  // 144 tiles in a wave, 96 pairs in two
  EXPECT_EQ(tile(129, 1), (TileChoice{2, 64}));
  EXPECT_EQ(tile(4096, 4096, 7168, 1).ctas, 1);  // no room for a pair
  EXPECT_EQ(tile(4096, 4096, 7168, 0).ctas, 1);  // a GPU that does not tell its size
}

// What a GPU says of itself counts; its number of SMs is but the most.
TEST(Sm100aPairChoice, FewerPairsThanPairsOfSmsAreMoreWaves) {
  const auto tile = [](int max_pairs) { return fastest_tile(256, 4096, 7168, 148, max_pairs); };
  EXPECT_EQ(tile(-1), (TileChoice{2, 64}));
  EXPECT_EQ(tile(64), (TileChoice{2, 64}));  // all of them in one wave
  EXPECT_EQ(tile(63), (TileChoice{1, 64}));  // in two
  EXPECT_EQ(tile(0), (TileChoice{1, 64}));
}

TEST(Sm100aPairChoice, WithoutPairsTheKernelIsRefusedByName) {
  const Problem problem{.m = 256, .n = 4096, .k = 7168};
  DeviceCaps caps = test::made_up_gpu(100, 148);
  const auto plan_of = [&](const std::string& config) {
    return plan::choose(problem, {.config = config}, caps, strategies(), "");
  };
  const Expected<Plan> pairs = plan_of("isa=sm100a");
  ASSERT_TRUE(pairs.ok());
  EXPECT_EQ(pairs->kernel, plan::kernel_name(KernelId::kSm100aPair));
  caps.max_pairs = 0;
  EXPECT_EQ(plan_of("isa=sm100a")->config(), "cuda_sm100a_fused_tcgen05_t128x64x256_s5_f16");
  EXPECT_EQ(plan_of("kernel=tcgen05pair").status().message(),
            "config: kernel=tcgen05pair; made up GPU runs no cluster of two CTAs with an SM for "
            "each");
  EXPECT_EQ(plan_of("tile_m=256").status().message(),
            "config: tile_m=256; no such kernel is compiled for this problem; there are "
            "tcgen05_t128x64x256_s5, tcgen05_t128x128x256_s4");
  // A plan of another GPU, before anything is launched.
  EXPECT_EQ(
      check_schedulable(*pairs, caps).message(),
      "plan.kernel: tcgen05pair; made up GPU runs no cluster of two CTAs with an SM for each");
  EXPECT_TRUE(check_schedulable(*plan_of("isa=sm100a"), caps).ok());
  caps.max_pairs = 1;
  EXPECT_TRUE(check_schedulable(*pairs, caps).ok());
  EXPECT_EQ(plan::choose(problem, {.isa = Isa::kSm100a, .prepared = true},
                         test::made_up_gpu(100, 148), strategies(), "")
                ->kernel,
            plan::kernel_name(KernelId::kSm100aPair));
  caps.max_pairs = 0;
  EXPECT_EQ(plan::choose(problem, {.isa = Isa::kSm100a, .prepared = true}, caps, strategies(), "")
                .status()
                .message(),
            "prepared: true; made up GPU runs no cluster of two CTAs with an SM for each");
}

TEST(Sm100aPairChoice, PreparedWeightsHaveTilesBetween) {
  const auto tile = [](int64_t m, int64_t n, int64_t k = 7168, int num_sms = 148) {
    return fastest_tile(m, n, k, num_sms, -1, true);
  };
  EXPECT_EQ(tile(256, 4096), (TileChoice{2, 64}));
  EXPECT_EQ(tile(512, 4096), (TileChoice{2, 112}));  // 74 pairs: every SM
  EXPECT_EQ(tile(256, 3072, 4096), (TileChoice{2, 48}));
  EXPECT_EQ(tile(512, 3072), (TileChoice{2, 96}));
  EXPECT_EQ(tile(4096, 4096), (TileChoice{2, 128, true}));
  EXPECT_EQ(tile(1, 1), (TileChoice{2, 48}));
  EXPECT_EQ(tile(256, 4096, 7168, 0), (TileChoice{2, 128}));  // a GPU that does not tell its size
}

TEST(Sm100aPairChoice, EitherKernelCanBeAskedFor) {
  const auto config = [](int64_t m, const std::string& text) {
    const auto plan = plan::choose({.m = m, .n = 4096, .k = 7168}, {.config = text},
                                   test::made_up_gpu(100, 148), strategies(), "");
    return plan ? plan->config() : plan.status().message();
  };
  EXPECT_EQ(config(256, "isa=sm100a"), "cuda_sm100a_fused_tcgen05pair_t256x64x256_s7_f16");
  EXPECT_EQ(config(128, "tile_m=128,tile_n=64,stages=5,kernel=tcgen05"),
            "cuda_sm100a_fused_tcgen05_t128x64x256_s5_f16");
  EXPECT_EQ(config(256, "kernel=tcgen05"), "cuda_sm100a_fused_tcgen05_t128x64x256_s5_f16");
  EXPECT_EQ(config(5, "kernel=tcgen05pair"), "cuda_sm100a_fused_tcgen05pair_t256x64x256_s7_f16");
  const std::string wide = "cuda_sm100a_fused_tcgen05pair_t256x128x256_s5_f16";
  EXPECT_EQ(config(256, "tile_m=256,tile_n=128"), wide);
  EXPECT_EQ(config(256, wide), wide);
  EXPECT_EQ(config(256, "tile_n=96"),
            "config: tile_n=96; no such kernel is compiled for this problem; there are "
            "tcgen05_t128x64x256_s5, tcgen05_t128x128x256_s4, tcgen05pair_t256x64x256_s7, "
            "tcgen05pair_t256x128x256_s5, tcgen05persistent_t256x128x256_s5");
  // Persistent or not: the grid has two CTAs for each pair that runs at once, or for each tile.
  const std::string persistent = "cuda_sm100a_fused_tcgen05persistent_c148_t256x128x256_s5_f16";
  EXPECT_EQ(config(4096, "isa=sm100a"), persistent);
  EXPECT_EQ(config(4096, persistent), persistent);
  EXPECT_EQ(config(4096, "kernel=tcgen05pair,tile_n=128"), wide);
  EXPECT_EQ(config(256, "kernel=tcgen05persistent"),
            "cuda_sm100a_fused_tcgen05persistent_c64_t256x128x256_s5_f16");
  EXPECT_EQ(config(4096, "kernel=tcgen05persistent,ctas=67"),
            "cuda_sm100a_fused_tcgen05persistent_c66_t256x128x256_s5_f16");
  EXPECT_EQ(config(4096, "kernel=tcgen05persistent,ctas=1"),
            "config: ctas=1; must be at least 2, a pair");
}

// Six tiles: at most two CTAs for each.
TEST(Sm100aPairLaunch, PersistentPairsHaveTheGridThatTheyAreGiven) {
  const auto at = [](uint64_t number) { return reinterpret_cast<uint8_t*>(number << 40); };
  Buffers buffers;
  buffers.a = at(1), buffers.a_scales = at(2);
  buffers.gate = at(3), buffers.gate_scales = at(4);
  buffers.up = at(5), buffers.up_scales = at(6);
  buffers.d = at(7);
  const Problem problem = swizzled({.m = 600, .n = 200, .k = 320});
  for (const auto& [most, ctas] : {std::pair{2, 2u}, {9, 8u}, {148, 12u}}) {
    const auto launches = build_launches(
        core::resolve(problem), buffers, {}, nullptr,
        *find_instance(128, DataType::kF16, false, true), [](auto...) { return CUDA_SUCCESS; },
        nullptr, most);
    ASSERT_TRUE(launches.ok()) << launches.status().message();
    const KernelLaunch& launch = launches->front();
    EXPECT_EQ(launch.ctas, ctas);
    EXPECT_STREQ(launch.kernel.module, "dual_gemm_sm100a_pair_persistent");
    blackwell::Params params;
    std::memcpy(&params, launch.params.data(), sizeof params);
    EXPECT_EQ(params.num_tiles, 6u);
  }
}

TEST(Sm100aPairChoice, RefusesWhatTheKernelDoesNotDo) {
  EXPECT_EQ(supports({.m = 1, .n = 1, .k = 16}).message(), "ok");
  EXPECT_EQ(supports({.m = 1, .n = 1, .k = 16, .grouping = Grouping::kMasked}).message(),
            "grouping: masked; the sm_100a kernel takes none");
  // One row each: a tile of one CTA, but two CTAs of a pair.
  const Problem many{.m = 1, .n = 1, .k = 16, .l = int64_t{1} << 30};
  EXPECT_EQ(sm100a::supports(many).message(), "ok");
  EXPECT_EQ(supports(many).message(),
            "m, n, l: 1, 1, 1073741824; must be at most 2^30 - 1 tiles of 256 x 48");
}

TEST(Sm100aPairLaunch, APairSharesTheWeightsRows) {
  const Problem problem = swizzled({.m = 300, .n = 200, .k = 320, .l = 2});
  test::views.clear();
  const auto launches = build_launches(core::resolve(problem), far_buffers(), {}, nullptr,
                                       *find_instance(64, DataType::kF16), &record_view);
  ASSERT_TRUE(launches.ok()) << launches.status().message();
  ASSERT_EQ(launches->size(), 1u);
  ASSERT_EQ(boxes().size(), 6u);
  EXPECT_EQ(boxes()[0], (std::vector<uint32_t>{128, 128, 1}));   // a: a CTA's rows
  EXPECT_EQ(boxes()[2], (std::vector<uint32_t>{128, 32, 1}));    // gate: half of the tile's
  EXPECT_EQ(boxes()[4], (std::vector<uint32_t>{128, 32, 1}));    // up
  EXPECT_EQ(boxes()[3], (std::vector<uint32_t>{256, 4, 1, 1}));  // all of the tile's scales
  const KernelLaunch& launch = launches->front();
  EXPECT_EQ(launch.ctas, 2u * 2 * 4 * 2);
  EXPECT_EQ(launch.cluster_ctas, 2u);
  EXPECT_EQ(launch.threads, 576u);
  EXPECT_TRUE(launch.overlaps_previous);
  blackwell::Params params;
  ASSERT_EQ(launch.param_bytes, sizeof params);
  std::memcpy(&params, launch.params.data(), sizeof params);
  EXPECT_EQ(params.tiles_m, 2u);
  EXPECT_EQ(params.tiles_n, 4u);
  EXPECT_EQ(params.num_k_tiles, 2u);
  // Each map is where its operand's loads look for it: the recorder numbered them.
  EXPECT_EQ(params.map_a.opaque[0] & 0xFF, 1u);
  EXPECT_EQ(params.map_sf_a.opaque[0] & 0xFF, 2u);
  EXPECT_EQ(params.map_gate.opaque[0] & 0xFF, 3u);
  EXPECT_EQ(params.map_sf_gate.opaque[0] & 0xFF, 4u);
  EXPECT_EQ(params.map_up.opaque[0] & 0xFF, 5u);
  EXPECT_EQ(params.map_sf_up.opaque[0] & 0xFF, 6u);
}

// Nothing of the weights but what was prepared, in two views.
TEST(Sm100aPairLaunch, PreparedWeightsAreUnits) {
  const auto at = [](uint64_t number) { return reinterpret_cast<uint8_t*>(number << 40); };
  Buffers buffers;
  buffers.a = at(1), buffers.a_scales = at(2), buffers.d = at(7);
  const Problem problem = swizzled({.m = 300, .n = 200, .k = 320, .l = 2});
  test::views.clear();
  const auto launches =
      build_launches(core::resolve(problem), buffers, {}, nullptr,
                     *find_instance(112, DataType::kF16, true), &record_view, at(3));
  ASSERT_TRUE(launches.ok()) << launches.status().message();
  ASSERT_EQ(launches->size(), 1u);
  EXPECT_EQ(boxes(), (std::vector<std::vector<uint32_t>>{
                         {256, 7, 1, 1},  // codes of half of the tile: 2 048 bytes of 8 columns
                         {32, 7, 1, 1},   // scales of half of it, for both CTAs
                         {128, 128, 1},   // a
                         {256, 4, 1, 1}}));
  const KernelLaunch& launch = launches->front();
  EXPECT_EQ(launch.ctas, 2u * 2 * 2 * 2);
  EXPECT_STREQ(launch.kernel.module, "dual_gemm_sm100a_pair_prepared");
  blackwell::Params params;
  std::memcpy(&params, launch.params.data(), sizeof params);
  EXPECT_EQ(params.map_gate.opaque[0] & 0xFF, 1u);
  EXPECT_EQ(params.map_sf_gate.opaque[0] & 0xFF, 2u);
  EXPECT_EQ(params.map_a.opaque[0] & 0xFF, 3u);
  EXPECT_EQ(params.map_sf_a.opaque[0] & 0xFF, 4u);
  EXPECT_EQ(blackwell::packed_batch_bytes(problem), 2 * 25 * (2048 + 256));
}

}  // namespace
}  // namespace dualgemm::cuda::sm100a_pair
