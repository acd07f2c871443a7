// What the host decides for the sm_100a kernel for few rows: which problems, which instance, when
// it is called faster, which views. No GPU is needed.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "cuda/kernels/blackwell/stream_model.hpp"
#include "cuda/kernels/sm100a_skinny/launch.hpp"
#include "cuda/kernels/sm100a_skinny/params.hpp"
#include "dualgemm/dualgemm.hpp"
#include "support/inputs.hpp"
#include "unit/cuda/on_gpu.hpp"
#include "unit/cuda/recorded_views.hpp"

namespace dualgemm::cuda::sm100a_skinny {
namespace {

using blackwell::Copies;
using blackwell::mma_clocks;
using blackwell::modelled_persistent_us;
using blackwell::StreamedWork;
using blackwell::StreamRates;

using test::boxes;
using test::far_buffers;
using test::made_up_gpu;
using test::record_view;
using test::swizzled;

// "tile_m x tile_n" on a B200.
std::string tile(int64_t m, int64_t n, int64_t k, int64_t l = 1) {
  const Config& config = choose_instance(swizzled({.m = m, .n = n, .k = k, .l = l}), 148).config;
  return std::to_string(config.tile_m) + " x " + std::to_string(config.tile_n);
}

TEST(Sm100aSkinnyChoice, NamesSayWhatTheInstancesAre) {
  for (const Instance& instance : instances()) {
    const auto& [tile_m, tile_n, grouped, prepared] = instance.config;
    EXPECT_EQ(instance.entry, "dual_gemm_sm100a_skinny_t" + std::to_string(tile_m) + "x" +
                                  std::to_string(tile_n) + "x256_s" +
                                  std::to_string(instance.stages));
    EXPECT_LE(instance.dynamic_smem_bytes, 227u * 1024);
    EXPECT_LE(instance.stages * instance.stage_bytes, 227 * 1024);
    // What a stage more would take: shared memory is full.
    EXPECT_GT((instance.stages + 1) * instance.stage_bytes + 1280, 227 * 1024);
  }
  EXPECT_EQ(instances().size(), 9u);
}

TEST(Sm100aSkinnyChoice, PreparedWeightsHaveInstancesOfTheirOwn) {
  const Problem p{.m = 9, .n = 16, .k = 16};
  for (const Instance& instance : prepared_instances()) {
    const auto& [tile_m, tile_n, grouped, prepared] = instance.config;
    EXPECT_TRUE(prepared && !grouped);
    EXPECT_EQ(tile_m, 32);
    EXPECT_EQ(instance.entry, "dual_gemm_sm100a_skinny_prepared_t" + std::to_string(tile_m) + "x" +
                                  std::to_string(tile_n) + "x256_s" +
                                  std::to_string(instance.stages));
    EXPECT_EQ(instance.threads, 224u);
    EXPECT_EQ(find_instance(p, tile_m, tile_n, true), &instance);
    EXPECT_NE(find_instance(p, tile_m, tile_n), &instance);
  }
  EXPECT_EQ(prepared_instances().size(), 2u);
  const auto cols = [](int64_t n, int64_t k) {
    return choose_instance(swizzled({.m = 1, .n = n, .k = k}), 148, true).config.tile_n;
  };
  EXPECT_EQ(cols(4096, 7168), 32);  // one wave, half of the weights before A
  EXPECT_EQ(cols(2048, 7168), 32);
  EXPECT_EQ(cols(9472, 4096), 64);  // one wave, not two
}

// Where tiles do not run at once each wave would begin with empty rings.
TEST(Sm100aSkinnyChoice, PersistentCtasForMoreTilesThanSms) {
  for (const bool prepared : {false, true}) {
    const auto is_persistent = [&](int64_t m, int64_t n, int64_t k, int64_t l = 1) {
      const Config& config =
          choose_instance(swizzled({.m = m, .n = n, .k = k, .l = l}), 148, prepared).config;
      EXPECT_GE(config.tile_m, m);
      return config.grouped;
    };
    EXPECT_FALSE(is_persistent(1, 9472, 4096));  // 148 tiles
    EXPECT_TRUE(is_persistent(1, 9473, 4096));
    EXPECT_TRUE(is_persistent(32, 28672, 4096));
    EXPECT_TRUE(is_persistent(128, 28672, 4096));
    EXPECT_TRUE(is_persistent(16, 4096, 7168, 4));  // batches
  }
  // With prepared weights there are no other instances for more rows than 32.
  EXPECT_TRUE(choose_instance({.m = 33, .n = 4096, .k = 7168}, 148, true).config.grouped);
  EXPECT_FALSE(choose_instance(swizzled({.m = 33, .n = 4096, .k = 7168}), 148).config.grouped);
}

TEST(Sm100aSkinnyChoice, NarrowTilesWhereWideOnesKeepTooLittleOnTheirWay) {
  EXPECT_EQ(tile(1, 4096, 7168), "8 x 64");  // 64 CTAs ask for as much as HBM delivers
  EXPECT_EQ(tile(9, 4096, 7168), "16 x 64");
  EXPECT_EQ(tile(17, 4096, 7168), "32 x 64");
  EXPECT_EQ(tile(33, 4096, 7168), "64 x 32");  // 7 stages of 64 columns are too few
  EXPECT_EQ(tile(128, 4096, 7168), "128 x 32");
  EXPECT_EQ(tile(1, 3072, 7168), "16 x 32");  // 48 CTAs
  EXPECT_EQ(tile(64, 3072, 4096), "64 x 32");
  EXPECT_EQ(tile(1, 2048, 7168, 2), "8 x 64");  // batches count
  EXPECT_EQ(choose_instance(swizzled({.m = 1, .n = 1, .k = 64}), 0).config.tile_m,
            8);  // size not told
}

// The model's time: bytes that HBM delivers at 6 TB/s where nothing else is in the way, and more
// where something is.
TEST(Sm100aSkinnyChoice, ModelIsBoundByWhatItShouldBe) {
  const StreamedWork work{.ctas = 64,
                          .stages_per_cta = 28,
                          .stage_bytes = 23552,
                          .weight_bytes = 18432,
                          .ring_stages = 9,
                          .mma_clocks = 4 * mma_clocks(8, 1)};
  const StreamRates rates;
  EXPECT_NEAR(modelled_us(work, 148), 2.2 + 64 * 28 * 18432 / 6.0e6, 1e-9);  // 7.7
  StreamedWork slow = work;
  slow.ring_stages = 2;
  EXPECT_NEAR(modelled_us(slow, 148), 2.2 + 28 * rates.turn_us / 2, 1e-9);
  slow = work;
  slow.mma_clocks = 1600;
  EXPECT_NEAR(modelled_us(slow, 148), 2.2 + 28, 1e-9);
  slow = work;
  slow.stage_bytes = 360000;
  EXPECT_NEAR(modelled_us(slow, 148), 2.2 + 28 * 2, 1e-9);
  slow = work;
  slow.epilogue_us = 1;
  EXPECT_NEAR(modelled_us(slow, 32) - modelled_us(work, 32), 2, 1e-9);  // two waves
  EXPECT_GT(modelled_us(work, 32), modelled_us(work, 64) + 2.2);
  // Persistent, waves have no beginning and no end.
  EXPECT_EQ(modelled_persistent_us(work, 148), modelled_us(work, 148));
  EXPECT_NEAR(modelled_us(work, 32) - modelled_persistent_us(work, 32), 2.2, 1e-9);
  EXPECT_NEAR(modelled_persistent_us(slow, 32) - modelled_persistent_us(work, 32), 1, 1e-9);
  EXPECT_EQ(mma_clocks(64, 1), 48);  // as measured
  EXPECT_EQ(mma_clocks(128, 1), 64);
  EXPECT_EQ(mma_clocks(64, 2), 64);
}

TEST(Sm100aSkinnyChoice, PlansTakeItUnlessToldOtherwise) {
  const auto config = [](const Problem& p, const std::string& text = "") {
    const auto plan =
        make_plan(p, {.strategy = StrategyId::kFused, .config = text}, made_up_gpu(100));
    return plan ? plan->config() : plan.status().message();
  };
  Problem p = swizzled({.m = 1, .n = 4096, .k = 7168});
  EXPECT_EQ(config(p), "cuda_sm100a_fused_skinny_t8x64x256_s9_f16");
  EXPECT_EQ(config(p, "kernel=tcgen05"), "cuda_sm100a_fused_tcgen05_t128x64x256_s5_f16");
  EXPECT_EQ(config(p, "tile_n=32"), "cuda_sm100a_fused_skinny_t16x32x256_s14_f16");
  EXPECT_EQ(config(p, "tile_m=64,tile_n=32"), "cuda_sm100a_fused_skinny_t64x32x256_s10_f16");
  p.m = 128;
  EXPECT_EQ(config(p, "kernel=skinny"), "cuda_sm100a_fused_skinny_t128x64x256_s5_f16");
  p.m = 129;
  EXPECT_EQ(config(p).substr(0, 25), "cuda_sm100a_fused_tcgen05");
  EXPECT_EQ(config(p, "kernel=skinny"),
            "config: kernel=skinny; no such kernel is compiled for this problem; there are "
            "tcgen05_t128x64x256_s5, tcgen05_t128x128x256_s4, tcgen05pair_t256x64x256_s7, "
            "tcgen05pair_t256x128x256_s5, tcgen05persistent_t256x128x256_s5");
  p.batch_invariant = true;  // one kernel, whatever m is
  for (const int64_t m : {1, 256}) {
    p.m = m;
    EXPECT_EQ(config(p).substr(0, 30), "cuda_sm100a_fused_tcgen05_t128");
  }
  EXPECT_EQ(config(p, "kernel=tcgen05pair").substr(0, 31), "config: kernel=tcgen05pair; no ");
}

TEST(Sm100aSkinnyChoice, RefusesWhatTheKernelDoesNotDo) {
  const auto reason = [](Problem p) { return supports(p).message(); };
  EXPECT_EQ(reason({.m = 128, .n = 1, .k = 16}), "ok");
  EXPECT_EQ(reason({.m = 1, .n = 16, .k = 16, .d = {.type = DataType::kE2M1}}), "ok");
  EXPECT_EQ(reason({.m = 129, .n = 1, .k = 16}), "m: 129; must be at most 128 for this kernel");
  EXPECT_EQ(reason({.m = 129, .n = 1, .k = 16, .grouping = Grouping::kMasked}), "ok");
  EXPECT_EQ(reason({.m = 1, .n = 1, .k = 16, .a = {.type = DataType::kBF16}}),
            "a.type: bf16; the sm_100a kernel takes e2m1");
  EXPECT_EQ(reason({.m = 1, .n = (int64_t{1} << 31) - 1, .k = 16, .l = 33}),
            "n, l: 2147483647, 33; must be at most 2^31 - 1 tiles of 32 columns for this kernel");
  EXPECT_EQ(find_instance({.m = 9, .n = 16, .k = 16}, 8, 64), nullptr);
  EXPECT_EQ(find_instance({.m = 1, .n = 16, .k = 16}, 8, 32), nullptr);
}

// Groups have tiles of their own.
TEST(Sm100aSkinnyGroupsChoice, NamesSayWhatTheInstancesAre) {
  for (const Instance& instance : group_instances()) {
    const auto& [tile_m, tile_n, grouped, prepared] = instance.config;
    EXPECT_TRUE(grouped);
    EXPECT_EQ(instance.entry, "dual_gemm_sm100a_skinny_groups_t" + std::to_string(tile_m) + "x" +
                                  std::to_string(tile_n) + "x256_s" +
                                  std::to_string(instance.stages));
    EXPECT_LE(instance.dynamic_smem_bytes, 227u * 1024);
    EXPECT_EQ(instance.threads, 320u);
  }
  EXPECT_EQ(group_instances().size(), 4u);
}

// Contiguous: as if rows per expert were spread around the mean; masked: all that there may be.
TEST(Sm100aSkinnyGroupsChoice, RowsOfATileFollowTheRowsOfAnExpert) {
  const auto rows = [](int64_t m, int64_t l, Grouping grouping) {
    const Problem p{.m = m, .n = 2048, .k = 7168, .l = l, .grouping = grouping};
    return choose_instance(p, 148).config.tile_m;
  };
  EXPECT_EQ(rows(1, 1, Grouping::kContiguous), 16);
  EXPECT_EQ(rows(32 * 8, 32, Grouping::kContiguous), 16);
  EXPECT_EQ(rows(32 * 10, 32, Grouping::kContiguous), 32);
  EXPECT_EQ(rows(32 * 32, 32, Grouping::kContiguous), 64);
  EXPECT_EQ(rows(32 * 1024, 32, Grouping::kContiguous), 128);
  EXPECT_EQ(rows(8, 32, Grouping::kMasked), 16);
  EXPECT_EQ(rows(17, 32, Grouping::kMasked), 32);
  EXPECT_EQ(rows(64, 32, Grouping::kMasked), 64);
  EXPECT_EQ(rows(4096, 2, Grouping::kMasked), 128);
}

TEST(Sm100aSkinnyGroupsChoice, Plans) {
  const auto config = [](const Problem& p, const char* text = "") {
    const auto plan =
        make_plan(p, {.strategy = StrategyId::kFused, .config = text}, made_up_gpu(100));
    return plan ? plan->config() : plan.status().message();
  };
  Problem p{.m = 64, .n = 2048, .k = 7168, .l = 32, .grouping = Grouping::kContiguous};
  EXPECT_EQ(config(p), "cuda_sm100a_fused_skinny_c132_t16x64x256_s8_f16");
  EXPECT_EQ(config(p, "tile_m=64"), "cuda_sm100a_fused_skinny_c132_t64x64x256_s6_f16");
  EXPECT_EQ(config(p, "ctas=5"), "cuda_sm100a_fused_skinny_c5_t16x64x256_s8_f16");
  EXPECT_EQ(config(p, config(p).c_str()), config(p));
  EXPECT_EQ(config(p, "ctas=149"), "config: ctas=149; must be 1 .. 132, as this GPU has SMs");
  EXPECT_EQ(
      config(p, "kernel=tcgen05"),
      "config: kernel=tcgen05; no such kernel is compiled for this problem; there are "
      "skinny_t16x64x256_s8, skinny_t32x64x256_s7, skinny_t64x64x256_s6, skinny_t128x64x256_s5, "
      "tcgen05persistent_t256x128x256_s5");
  p.batch_invariant = true;  // one tile, whatever m is
  for (const int64_t m : {1, 4096}) {
    p.m = m;
    EXPECT_EQ(config(p).substr(config(p).find("_t")), "_t128x64x256_s5_f16");
  }
  p.batch_invariant = false;
  p.m = 1, p.n = 65, p.l = 1;  // no more CTAs than there can be tiles
  EXPECT_EQ(config(p), "cuda_sm100a_fused_skinny_c2_t16x64x256_s8_f16");
  p.m = int64_t{1} << 30, p.n = 1 << 20, p.k = 64;
  EXPECT_EQ(supports(p).argument(), "m, n, l");
}

TEST(Sm100aSkinnyGroupsLaunch, TableThenKernel) {
  test::views.clear();
  Problem p = swizzled({.m = 300, .n = 200, .k = 320, .l = 3, .grouping = Grouping::kContiguous});
  const core::ResolvedProblem resolved = core::resolve(p);
  const Instance& instance = *find_instance(p, 32, 64);
  const int64_t ctas = ctas_for(p, instance.config, 148);
  EXPECT_EQ(ctas, 4 * (3 + 297 / 32));
  auto* const workspace = reinterpret_cast<void*>(uint64_t{9} << 40);
  const auto launches =
      build_launches(resolved, far_buffers(), {}, workspace, instance, ctas, &record_view);
  ASSERT_TRUE(launches.ok()) << launches.status().message();
  ASSERT_EQ(launches->size(), 2u);
  EXPECT_STREQ(launches->front().kernel.entry, "dual_gemm_group_tiles");
  EXPECT_TRUE(launches->front().overlaps_previous);
  const KernelLaunch& launch = launches->back();
  EXPECT_STREQ(launch.kernel.module, "dual_gemm_sm100a_skinny_groups");
  EXPECT_STREQ(launch.kernel.entry, "dual_gemm_sm100a_skinny_groups_t32x64x256_s7");
  EXPECT_EQ(launch.ctas, ctas);
  EXPECT_TRUE(launch.overlaps_previous);
  Params params;
  ASSERT_EQ(launch.param_bytes, sizeof params);
  std::memcpy(&params, launch.params.data(), sizeof params);
  EXPECT_EQ(static_cast<const void*>(params.groups.table), workspace);
  EXPECT_TRUE(params.groups.one_batch);
  EXPECT_TRUE(params.padded_scales_of_a);
  EXPECT_EQ(params.tiles_n, 4u);
  EXPECT_EQ(workspace_bytes(p, {}, instance), 16 * 301);

  p.grouping = Grouping::kNone;
  const auto none =
      build_launches(core::resolve(p), far_buffers(), {}, workspace, instance, 1, &record_view);
  EXPECT_EQ(none.status().message(), "m: 300; must be at most 32 for this tile");
}

// Those of a row 16 bytes at a time; in tiles, after a copy, where rows are not 16 bytes apart.
TEST(Sm100aSkinnyGroupsLaunch, LinearScalesAreReadInPlaceWhereTheyCanBe) {
  const auto launches_of = [](const Problem& p, Params& params) {
    test::views.clear();
    const core::ResolvedProblem resolved = core::resolve(p);
    auto* const workspace = reinterpret_cast<void*>(uint64_t{9} << 40);
    const auto launches = build_launches(resolved, far_buffers(), plan_copies(resolved, false),
                                         workspace, *find_instance(p, 32, 64), 1, &record_view);
    EXPECT_TRUE(launches.ok()) << launches.status().message();
    std::memcpy(&params, launches->back().params.data(), sizeof params);
    return launches->size();
  };
  const std::vector<uint32_t> rows_of_a{16, 32, 1}, rows_of_weights{16, 64, 1}, tiles{256, 4, 1, 1};
  Params params;
  Problem p{.m = 300, .n = 200, .k = 512, .l = 3, .grouping = Grouping::kMasked};
  EXPECT_EQ(launches_of(p, params), 2u);
  EXPECT_TRUE(params.linear_a && params.linear_gate && params.linear_up);
  EXPECT_EQ(boxes()[1], rows_of_a);
  EXPECT_EQ(boxes()[3], rows_of_weights);
  EXPECT_EQ(boxes()[5], rows_of_weights);
  p.k = 320;
  p.gate.scale_ld = 32;
  p.gate.scale_batch_stride = 200 * 32;
  EXPECT_EQ(launches_of(p, params), 3u) << "one copies the scales of A and Up";
  EXPECT_TRUE(!params.linear_a && params.linear_gate && !params.linear_up);
  EXPECT_EQ(boxes()[1], tiles);
  EXPECT_EQ(boxes()[3], rows_of_weights);
  EXPECT_EQ(boxes()[5], tiles);
}

// gpt-oss's rows of 180 scales are no multiple of 16 bytes: they are copied before every call, of
// all experts; of prepared weights nothing is, and of A alone its own.
TEST(Sm100aSkinnyGroupsLaunch, RowsOf180ScalesAreCopiedUnlessPrepared) {
  using blackwell::Copies;
  Problem p{.m = 64, .n = 2880, .k = 2880, .l = 8, .grouping = Grouping::kContiguous};
  const Copies unpacked = plan_copies(core::resolve(p), false);
  EXPECT_NE(unpacked.sf_gate, Copies::kDirect);
  EXPECT_NE(unpacked.sf_up, Copies::kDirect);
  EXPECT_GE(unpacked.workspace_bytes, 2 * 8 * 2880 * 180);
  const Copies prepared = plan_copies(core::resolve(p), false, true);
  EXPECT_EQ(prepared.gate, Copies::kDirect);
  EXPECT_EQ(prepared.sf_gate, Copies::kDirect);
  EXPECT_EQ(prepared.sf_up, Copies::kDirect);
  EXPECT_NE(prepared.sf_a, Copies::kDirect);
  p.a.type = DataType::kBF16;
  EXPECT_EQ(plan_copies(core::resolve(p), false, true).workspace_bytes, 0);
}

TEST(Sm100aSkinnyLaunch, ViewsAndGrid) {
  test::views.clear();
  const core::ResolvedProblem resolved =
      core::resolve(swizzled({.m = 30, .n = 200, .k = 320, .l = 2}));
  const Instance& instance = *find_instance(resolved.problem, 32, 64);
  const auto launches =
      build_launches(resolved, far_buffers(), {}, nullptr, instance,
                     ctas_for(resolved.problem, instance.config, 1), &record_view);
  ASSERT_TRUE(launches.ok()) << launches.status().message();
  ASSERT_EQ(launches->size(), 1u);
  const KernelLaunch& launch = launches->front();
  EXPECT_STREQ(launch.kernel.module, "dual_gemm_sm100a_skinny");
  EXPECT_STREQ(launch.kernel.entry, "dual_gemm_sm100a_skinny_t32x64x256_s8");
  EXPECT_EQ(launch.ctas, 8u);
  EXPECT_EQ(launch.threads, 192u);
  EXPECT_TRUE(launch.overlaps_previous);
  ASSERT_EQ(boxes().size(), 6u);
  EXPECT_EQ(boxes()[0], (std::vector<uint32_t>{128, 32, 1}));  // A
  EXPECT_EQ(boxes()[1], (std::vector<uint32_t>{256, 4, 1, 1}));
  EXPECT_EQ(boxes()[2], (std::vector<uint32_t>{128, 64, 1}));  // Gate
  EXPECT_EQ(boxes()[4], (std::vector<uint32_t>{128, 64, 1}));  // Up
  Params params;
  ASSERT_EQ(launch.param_bytes, sizeof params);
  std::memcpy(&params, launch.params.data(), sizeof params);
  EXPECT_EQ(params.num_k_tiles, 2u);
  EXPECT_EQ(params.tiles_n, 4u);
  EXPECT_EQ(params.m, 30u);
  // Each map is where its operand's loads look for it: the recorder numbered them.
  EXPECT_EQ(params.map_a.opaque[0] & 0xFF, 1u);
  EXPECT_EQ(params.map_sf_a.opaque[0] & 0xFF, 2u);
  EXPECT_EQ(params.map_gate.opaque[0] & 0xFF, 3u);
  EXPECT_EQ(params.map_sf_gate.opaque[0] & 0xFF, 4u);
  EXPECT_EQ(params.map_up.opaque[0] & 0xFF, 5u);
  EXPECT_EQ(params.map_sf_up.opaque[0] & 0xFF, 6u);
}

TEST(Sm100aSkinnyLaunch, BadInputIsRefusedBeforeAnythingIsLaunched) {
  const core::ResolvedProblem resolved = core::resolve(swizzled({.m = 5, .n = 9, .k = 64}));
  Buffers buffers = far_buffers();
  buffers.up = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(buffers.up) + 24);
  const Instance& instance = *find_instance(resolved.problem, 8, 64);
  const auto misaligned = build_launches(resolved, buffers, {}, nullptr, instance, 1, &record_view);
  EXPECT_EQ(misaligned.status().message(),
            "up: address % 16 = 8; must be aligned to 16 bytes, or planned for with "
            "PlanOptions::unaligned");
  const core::ResolvedProblem more = core::resolve(swizzled({.m = 9, .n = 9, .k = 64}));
  const auto too_few = build_launches(more, far_buffers(), {}, nullptr, instance, 1, &record_view);
  EXPECT_EQ(too_few.status().message(), "m: 9; must be at most 8 for this tile");
}

}  // namespace
}  // namespace dualgemm::cuda::sm100a_skinny
