// What the host decides for the sm_100a kernel for 16-bit A: which problems, which instance and
// split, which views. No GPU is needed.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "cuda/kernels/sm100a_w4a16/launch.hpp"
#include "cuda/kernels/sm100a_w4a16/params.hpp"
#include "dualgemm/dualgemm.hpp"
#include "unit/cuda/on_gpu.hpp"
#include "unit/cuda/recorded_views.hpp"

namespace dualgemm::cuda::sm100a_w4a16 {
namespace {

using test::far_buffers;
using test::made_up_gpu;
using test::record_view;
using test::views;
using test::with_rows;

// "tile_m / split" on a B200, or "tile_m, persistent".
std::string chosen(const Problem& p) {
  const Instance& instance = choose_instance(p, 148);
  const std::string rows = std::to_string(instance.config.tile_m);
  if (instance.config.grouped) return rows + ", persistent";
  return rows + " / " + std::to_string(choose_split(p, instance, 148));
}

TEST(Sm100aW4a16Choice, NamesSayWhatTheInstancesAre) {
  for (const Instance& instance : instances()) {
    const Config& config = instance.config;
    EXPECT_EQ(instance.entry,
              std::string("dual_gemm_sm100a_w4a16_") + (config.bf16 ? "bf16" : "f16") + "_t" +
                  std::to_string(config.tile_m) + "x64x256_s" + std::to_string(instance.stages));
    EXPECT_LE(instance.dynamic_smem_bytes, 227u * 1024);
    // What a stage more would take: shared memory is full.
    EXPECT_GT((instance.stages + 1) * instance.stage_bytes + 1280, 227 * 1024);
  }
  EXPECT_EQ(instances().size(), 6u);
}

TEST(Sm100aW4a16Choice, AsManyCtasAsTheWeightsNeed) {
  EXPECT_EQ(chosen(with_rows({.m = 1, .n = 4096, .k = 7168})), "16 / 2");
  EXPECT_EQ(chosen(with_rows({.m = 16, .n = 4096, .k = 7168})), "16 / 2");
  EXPECT_EQ(chosen(with_rows({.m = 17, .n = 4096, .k = 7168}, DataType::kBF16)), "32 / 2");
  EXPECT_EQ(chosen(with_rows({.m = 64, .n = 4096, .k = 7168})), "64 / 2");
  EXPECT_EQ(chosen(with_rows({.m = 1, .n = 3072, .k = 7168})), "16 / 2");
  EXPECT_EQ(chosen(with_rows({.m = 1, .n = 1536, .k = 7168})), "16 / 4");
  EXPECT_EQ(chosen(with_rows({.m = 1, .n = 9472, .k = 4096})), "16 / 1");  // 148 tiles
  EXPECT_EQ(chosen(with_rows({.m = 1, .n = 64, .k = 16})), "16 / 1");      // a single tile of k
  EXPECT_EQ(choose_split(with_rows({.m = 1, .n = 64, .k = 256}), instances()[0], 0),
            1);  // size not told
  // The same bits for every m: one tile, one order.
  for (const int64_t m : {1, 64, 100}) {
    EXPECT_EQ(chosen(with_rows({.m = m, .n = 4096, .k = 7168, .batch_invariant = true})), "64 / 1");
  }
}

// Where tiles do not run at once each wave would begin with empty rings.
TEST(Sm100aW4a16Choice, PersistentCtasForMoreTilesThanSms) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    EXPECT_EQ(chosen(with_rows({.m = 1, .n = 28672, .k = 8192}, type)), "32, persistent");
    EXPECT_EQ(chosen(with_rows({.m = 1, .n = 10240, .k = 4096}, type)), "32, persistent");
    EXPECT_EQ(chosen(with_rows({.m = 33, .n = 14336, .k = 4096}, type)), "64, persistent");
    EXPECT_EQ(chosen(with_rows({.m = 1024, .n = 4096, .k = 7168}, type)), "64, persistent");
    EXPECT_EQ(chosen(with_rows({.m = 4, .n = 4096, .k = 4096, .l = 3}, type)), "32, persistent");
    EXPECT_EQ(chosen(with_rows({.m = 1, .n = 28672, .k = 4096, .batch_invariant = true}, type)),
              "64, persistent");  // the MMAs and the order of the other kernel's
  }
}

TEST(Sm100aW4a16Choice, SplitsAsFarAsCtasAndTilesOfKGo) {
  const Problem p = with_rows({.m = 1, .n = 256, .k = 1280});
  EXPECT_EQ(largest_split(p, 16, 3), 0);
  EXPECT_EQ(largest_split(p, 16, 4), 1);
  EXPECT_EQ(largest_split(p, 16, 15), 2);
  EXPECT_EQ(largest_split(p, 16, 1000), 4);  // five tiles of k
  EXPECT_EQ(largest_split(with_rows({.m = 1, .n = 256, .k = 7168}), 16, 1000), 8);
}

TEST(Sm100aW4a16Choice, PlansTakeIt) {
  const auto config = [](const Problem& p, const std::string& text = "") {
    const auto plan =
        make_plan(p, {.strategy = StrategyId::kFused, .config = text}, made_up_gpu(100, 148));
    return plan ? plan->config() : plan.status().message();
  };
  const Problem p = with_rows({.m = 1, .n = 4096, .k = 7168}, DataType::kBF16);
  EXPECT_EQ(config(p), "cuda_sm100a_fused_w4a16_c128_t16x64x256_s8_f16");
  EXPECT_EQ(config(p, "tile_m=64"), "cuda_sm100a_fused_w4a16_c128_t64x64x256_s4_f16");
  EXPECT_EQ(config(p, "ctas=64"), "cuda_sm100a_fused_w4a16_c64_t16x64x256_s8_f16");
  EXPECT_EQ(config(p, "tile_m=32,ctas=300"), "cuda_sm100a_fused_w4a16_c256_t32x64x256_s6_f16");
  EXPECT_EQ(config(p, "ctas=63"), "config: ctas=63; must be at least 64, the tiles of D");
  EXPECT_EQ(config(p, "kernel=tcgen05"),
            "config: kernel=tcgen05; no such kernel is compiled for this problem; there are "
            "w4a16_t16x64x256_s8, w4a16_t32x64x256_s6, w4a16_t64x64x256_s4, "
            "w4a16persistent_t32x64x256_s6, w4a16persistent_t64x64x256_s4");
  EXPECT_EQ(config(p, config(p)), config(p));
  const std::string persistent = "cuda_sm100a_fused_w4a16persistent_c64_t32x64x256_s6_f16";
  EXPECT_EQ(config(p, "kernel=w4a16persistent"), persistent);
  EXPECT_EQ(config(p, persistent), persistent);
  EXPECT_EQ(config(p, "kernel=w4a16persistent,ctas=149"),
            "config: ctas=149; must be 1 .. 148, as this GPU has SMs");
  const Problem many = with_rows({.m = 1, .n = 28672, .k = 4096}, DataType::kBF16);
  EXPECT_EQ(config(many), "cuda_sm100a_fused_w4a16persistent_c148_t32x64x256_s6_f16");
  EXPECT_EQ(config(many, "kernel=w4a16"), "cuda_sm100a_fused_w4a16_c448_t16x64x256_s8_f16");
  Problem same_bits = p;  // whatever m is
  same_bits.batch_invariant = true;
  EXPECT_EQ(config(same_bits, "ctas=1000"), "cuda_sm100a_fused_w4a16_c64_t64x64x256_s4_f16");
  EXPECT_EQ(config(same_bits, "tile_m=16"),
            "config: tile_m=16; no such kernel is compiled for this problem; there are "
            "w4a16_t64x64x256_s4, w4a16persistent_t64x64x256_s4");
}

TEST(Sm100aW4a16Choice, RefusesWhatTheKernelDoesNotDo) {
  const auto reason = [](Problem p) { return supports(p).message(); };
  EXPECT_EQ(reason(with_rows({.m = 1, .n = 1, .k = 16})), "ok");
  EXPECT_EQ(reason(with_rows({.m = 5000, .n = 16, .k = 16, .d = {.type = DataType::kE2M1}})), "ok");
  EXPECT_EQ(reason({.m = 1, .n = 1, .k = 16}), "a.type: e2m1; this kernel takes f16 and bf16");
  EXPECT_EQ(reason(with_rows({.m = 1, .n = 1, .k = 16}, DataType::kF32)),
            "a.type: f32; the kernels for a GPU take e2m1, f16 or bf16");
  EXPECT_EQ(reason(with_rows({.m = 1, .n = 1, .k = 16, .grouping = Grouping::kMasked})), "ok");
  EXPECT_EQ(reason(with_rows({.m = int64_t{1} << 30,
                              .n = int64_t{1} << 20,
                              .k = 16,
                              .grouping = Grouping::kContiguous})),
            "m, n, l: 1073741824, 1048576, 1; experts must have at most 2^31 - 1 tiles of 32 x 64");
  EXPECT_EQ(reason(with_rows({.m = 1, .n = (int64_t{1} << 31) - 1, .k = 16, .l = 9})),
            "m, n, l: 1, 2147483647, 9; must be at most 2^28 - 1 tiles of 64 x 64");
  EXPECT_EQ(find_instance(with_rows({.m = 17, .n = 16, .k = 16}), 16), nullptr);
  EXPECT_EQ(find_instance(with_rows({.m = 65, .n = 16, .k = 16}), 32), nullptr);
  EXPECT_EQ(find_instance(with_rows({.m = 1, .n = 16, .k = 16}), 12), nullptr);
}

// Groups have tiles of their own.
TEST(Sm100aW4a16GroupsChoice, NamesSayWhatTheInstancesAre) {
  for (const Instance& instance : group_instances()) {
    const Config& config = instance.config;
    EXPECT_TRUE(config.grouped);
    EXPECT_EQ(instance.entry, std::string("dual_gemm_sm100a_w4a16_") +
                                  (config.bf16 ? "bf16" : "f16") + "_groups_t" +
                                  std::to_string(config.tile_m) + "x64x256_s" +
                                  std::to_string(instance.stages));
    EXPECT_EQ(instance.threads, 448u);
    EXPECT_LE(instance.dynamic_smem_bytes, 227u * 1024);
  }
  EXPECT_EQ(group_instances().size(), 4u);
}

// Every tile of an expert's rows decodes the weights again: one is better than two.
TEST(Sm100aW4a16GroupsChoice, RowsOfATileFollowTheRowsOfAnExpert) {
  const auto rows = [](int64_t m, int64_t l, Grouping grouping) {
    Problem p = with_rows({.m = m, .n = 2048, .k = 7168, .l = l, .grouping = grouping});
    return choose_instance(p, 148).config.tile_m;
  };
  EXPECT_EQ(rows(1, 1, Grouping::kContiguous), 32);
  EXPECT_EQ(rows(32 * 8, 32, Grouping::kContiguous), 32);
  EXPECT_EQ(rows(32 * 64, 32, Grouping::kContiguous), 64);
  EXPECT_EQ(rows(32, 32, Grouping::kMasked), 32);
  EXPECT_EQ(rows(33, 32, Grouping::kMasked), 64);
  EXPECT_EQ(rows(4096, 2, Grouping::kMasked), 64);
}

TEST(Sm100aW4a16GroupsChoice, Plans) {
  const auto config = [](const Problem& p, const std::string& text = "", bool prepared = false) {
    const auto plan =
        make_plan(p, {.strategy = StrategyId::kFused, .prepared = prepared, .config = text},
                  made_up_gpu(100, 148));
    return plan ? plan->config() : plan.status().message();
  };
  Problem p = with_rows({.m = 64, .n = 2048, .k = 7168, .l = 32}, DataType::kBF16);
  p.grouping = Grouping::kContiguous;
  EXPECT_EQ(config(p), "cuda_sm100a_fused_w4a16_c148_t32x64x256_s6_f16");
  EXPECT_EQ(config(p, "", true), "cuda_sm100a_fused_w4a16_c148_t32x64x256_s6_f16_prepared");
  EXPECT_EQ(config(p, "tile_m=64,ctas=5"), "cuda_sm100a_fused_w4a16_c5_t64x64x256_s4_f16");
  EXPECT_EQ(config(p, config(p)), config(p));
  EXPECT_EQ(config(p, "ctas=149"), "config: ctas=149; must be 1 .. 148, as this GPU has SMs");
  EXPECT_EQ(config(p, "kernel=skinny"),
            "config: kernel=skinny; no such kernel is compiled for this problem; there are "
            "w4a16_t32x64x256_s6, w4a16_t64x64x256_s4");
  p.batch_invariant = true;  // one tile, whatever m is
  EXPECT_EQ(config(p), "cuda_sm100a_fused_w4a16_c148_t64x64x256_s4_f16");
  p.batch_invariant = false;
  p.m = 1, p.n = 65, p.l = 1;  // no more CTAs than there can be tiles
  EXPECT_EQ(config(p), "cuda_sm100a_fused_w4a16_c2_t32x64x256_s6_f16");
}

TEST(Sm100aW4a16GroupsLaunch, TableThenKernel) {
  views.clear();
  Problem p = with_rows({.m = 300, .n = 200, .k = 512, .l = 3}, DataType::kF16);
  p.grouping = Grouping::kContiguous;
  p.gate.scale_layout = ScaleLayout::kLinear;
  p.up.scale_layout = ScaleLayout::kSwizzled128x4;
  const core::ResolvedProblem resolved = core::resolve(p);
  const Instance& instance = *find_instance(p, 32);
  const blackwell::Copies copies = plan_copies(resolved, false, false);
  EXPECT_EQ(copies.workspace_bytes, 0);  // linear scales are read in place
  EXPECT_EQ(workspace_bytes(p, copies, instance), 16 * 301);
  auto* const workspace = reinterpret_cast<void*>(uint64_t{9} << 40);
  const auto launches = build_persistent_launches(resolved, far_buffers(), copies, workspace,
                                                  instance, 7, &record_view);
  ASSERT_TRUE(launches.ok()) << launches.status().message();
  ASSERT_EQ(launches->size(), 2u);
  EXPECT_STREQ(launches->front().kernel.entry, "dual_gemm_group_tiles");
  const KernelLaunch& launch = launches->back();
  EXPECT_STREQ(launch.kernel.module, "dual_gemm_sm100a_w4a16_groups");
  EXPECT_STREQ(launch.kernel.entry, "dual_gemm_sm100a_w4a16_f16_groups_t32x64x256_s6");
  EXPECT_EQ(launch.ctas, 7u);
  EXPECT_EQ(launch.cluster_ctas, 1u);
  EXPECT_TRUE(launch.overlaps_previous);
  ASSERT_EQ(views.size(), 5u);
  EXPECT_EQ(views[0].dims, (std::vector<uint64_t>{1024, 300, 1}));  // A of all experts
  EXPECT_EQ(views[2].box, (std::vector<uint32_t>{16, 64, 1}));      // Gate's scales, in rows
  EXPECT_EQ(views[4].box, (std::vector<uint32_t>{256, 4, 1, 1}));
  Params params;
  ASSERT_EQ(launch.param_bytes, sizeof params);
  std::memcpy(&params, launch.params.data(), sizeof params);
  EXPECT_EQ(static_cast<const void*>(params.groups.table), workspace);
  EXPECT_TRUE(params.groups.one_batch);
  EXPECT_TRUE(params.linear_gate && !params.linear_up && !params.prepared);
}

// Without groups no table, and no workspace for one.
TEST(Sm100aW4a16GroupsLaunch, AllRowsWithoutGroups) {
  views.clear();
  const Problem p = with_rows({.m = 70, .n = 200, .k = 512, .l = 3}, DataType::kF16);
  const core::ResolvedProblem resolved = core::resolve(p);
  const Instance& instance = *find_instance(p, 64, true);
  const blackwell::Copies copies = plan_copies(resolved, false, false, true);
  EXPECT_EQ(workspace_bytes(p, copies, instance), 0);
  EXPECT_EQ(persistent_ctas(p, 64, 148), 2 * 4 * 3);
  const auto launches = build_persistent_launches(resolved, far_buffers(), copies, nullptr,
                                                  instance, 7, &record_view);
  ASSERT_TRUE(launches.ok()) << launches.status().message();
  ASSERT_EQ(launches->size(), 1u);
  EXPECT_EQ(launches->front().ctas, 7u);
  EXPECT_EQ(views[0].dims, (std::vector<uint64_t>{1024, 70, 3}));
  Params params;
  std::memcpy(&params, launches->front().params.data(), sizeof params);
  EXPECT_EQ(params.groups.table, nullptr);
  EXPECT_EQ(params.batches, 3u);
  EXPECT_FALSE(params.groups.one_batch);
}

TEST(Sm100aW4a16Launch, ViewsAndGrid) {
  views.clear();
  const core::ResolvedProblem resolved =
      core::resolve(with_rows({.m = 30, .n = 200, .k = 576, .l = 2}, DataType::kBF16));
  const Instance& instance = *find_instance(resolved.problem, 32);
  const auto launches =
      build_launches(resolved, far_buffers(), {}, nullptr, instance, 3, &record_view);
  ASSERT_TRUE(launches.ok()) << launches.status().message();
  ASSERT_EQ(launches->size(), 1u);
  const KernelLaunch& launch = launches->front();
  EXPECT_STREQ(launch.kernel.module, "dual_gemm_sm100a_w4a16");
  EXPECT_STREQ(launch.kernel.entry, "dual_gemm_sm100a_w4a16_bf16_t32x64x256_s6");
  EXPECT_EQ(launch.ctas, 4u * 2 * 3);
  EXPECT_EQ(launch.cluster_ctas, 3u);
  EXPECT_EQ(launch.threads, 352u);
  EXPECT_TRUE(launch.overlaps_previous);
  ASSERT_EQ(views.size(), 5u);
  EXPECT_EQ(views[0].dims, (std::vector<uint64_t>{1152, 30, 2}));  // A, in bytes
  EXPECT_EQ(views[0].box, (std::vector<uint32_t>{128, 32, 1}));
  EXPECT_EQ(views[1].dims, (std::vector<uint64_t>{288, 200, 2}));  // Gate
  EXPECT_EQ(views[1].box, (std::vector<uint32_t>{128, 64, 1}));
  EXPECT_EQ(views[2].box, (std::vector<uint32_t>{256, 4, 1, 1}));
  Params params;
  ASSERT_EQ(launch.param_bytes, sizeof params);
  std::memcpy(&params, launch.params.data(), sizeof params);
  EXPECT_EQ(params.num_k_tiles, 3u);
  EXPECT_EQ(params.tiles_m, 1u);
  EXPECT_EQ(params.tiles_n, 4u);
  EXPECT_EQ(params.split, 3u);
  // Each map is where its operand's loads look for it: the recorder numbered them.
  EXPECT_EQ(params.map_a.opaque[0] & 0xFF, 1u);
  EXPECT_EQ(params.map_gate.opaque[0] & 0xFF, 2u);
  EXPECT_EQ(params.map_sf_gate.opaque[0] & 0xFF, 3u);
  EXPECT_EQ(params.map_up.opaque[0] & 0xFF, 4u);
  EXPECT_EQ(params.map_sf_up.opaque[0] & 0xFF, 5u);
}

TEST(Sm100aW4a16Launch, BadInputIsRefusedBeforeAnythingIsLaunched) {
  const core::ResolvedProblem resolved = core::resolve(with_rows({.m = 5, .n = 9, .k = 320}));
  const Instance& instance = *find_instance(resolved.problem, 16);
  for (const int split : {0, 3, 9}) {  // two tiles of k
    const auto launches =
        build_launches(resolved, far_buffers(), {}, nullptr, instance, split, &record_view);
    EXPECT_EQ(launches.status().message(),
              "plan.shape.ctas: " + std::to_string(split) +
                  "; must be 1 to 8 CTAs for each tile of D, at most one a tile of k");
  }
  Buffers buffers = far_buffers();
  buffers.a = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(buffers.a) + 2);
  const auto misaligned = build_launches(resolved, buffers, {}, nullptr, instance, 1, &record_view);
  EXPECT_EQ(misaligned.status().message(),
            "a: address % 16 = 2; must be aligned to 16 bytes, or planned for with "
            "PlanOptions::unaligned");
}

}  // namespace
}  // namespace dualgemm::cuda::sm100a_w4a16
