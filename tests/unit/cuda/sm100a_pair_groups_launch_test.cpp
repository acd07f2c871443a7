// What the host decides for groups of experts on pairs of CTAs: when they are taken, which views,
// which grid. No GPU is needed.
#include <cstring>
#include <string>
#include <vector>

#include "cuda/kernels/sm100a_pair/groups/launch.hpp"
#include "cuda/kernels/sm100a_pair/groups/params.hpp"
#include "cuda/kernels/sm100a_skinny/launch.hpp"
#include "dualgemm/dualgemm.hpp"
#include "unit/cuda/on_gpu.hpp"
#include "unit/cuda/recorded_views.hpp"

namespace dualgemm::cuda::sm100a_pair_groups {
namespace {

using test::boxes;
using test::far_buffers;
using test::made_up_gpu;
using test::record_view;
using test::swizzled;

// Experts of (2048, 7168) with a number of rows each.
Problem experts(int64_t rows, Grouping grouping = Grouping::kContiguous) {
  return {.m = grouping == Grouping::kMasked ? rows : 32 * rows,
          .n = 2048,
          .k = 7168,
          .l = 32,
          .grouping = grouping};
}

std::string config(const Problem& p, const std::string& text = "", bool prepared = false) {
  const auto plan =
      make_plan(p, {.strategy = StrategyId::kFused, .prepared = prepared, .config = text},
                made_up_gpu(100, 148));
  return plan ? plan->config() : plan.status().message();
}

TEST(Sm100aPairGroupsChoice, NamesSayWhatTheInstancesAre) {
  for (const Instance& instance : instances()) {
    EXPECT_EQ(instance.entry, "dual_gemm_sm100a_pair_groups_t256x128x256_s" +
                                  std::to_string(instance.stages) + "_" +
                                  name_of(instance.config.output));
    EXPECT_LE(instance.dynamic_smem_bytes, 227u * 1024);
  }
  EXPECT_EQ(instances().size(), 4u);
  EXPECT_EQ(instance_for(DataType::kE2M1).config.output, OutputType::kE2M1);
}

// us of experts that all have as many rows, by `ptxsim time` of the kernels of 24 November 2026
// (148 SMs): of the kernel for few rows in the tiles that it would have, and of pairs.
struct Clock {
  int64_t l, n, k, rows;
  double few_rows, pairs;
};
constexpr Clock kClock[] = {
    {32, 2048, 7168, 8, 95.5, 97.1},     {32, 2048, 7168, 64, 97.7, 98.2},
    {32, 2048, 7168, 160, 127.6, 100.4}, {32, 2048, 7168, 512, 245.0, 141.2},
    {8, 2880, 2880, 64, 21.0, 22.1},     {8, 2880, 2880, 128, 22.6, 22.2},
    {8, 2880, 2880, 256, 28.2, 22.4},    {8, 2880, 2880, 512, 47.5, 30.0},
    {64, 1408, 2048, 32, 42.4, 43.7},    {64, 1408, 2048, 128, 45.7, 44.8},
    {64, 1408, 2048, 256, 69.2, 46.4},   {128, 768, 2048, 4, 45.1, 46.8},
    {128, 768, 2048, 64, 47.6, 48.1},    {128, 768, 2048, 256, 72.2, 52.7},
    {8, 14336, 4096, 64, 96.4, 96.9},    {8, 14336, 4096, 256, 133.1, 97.5},
    {8, 14336, 4096, 1024, 484.5, 286},  {2, 4096, 4096, 128, 16.0, 15.0},
    {2, 4096, 4096, 1024, 44.0, 30.7},
};

bool takes_pairs(const Problem& problem) {
  return modelled_clocks(problem, 74) < sm100a_skinny::modelled_group_clocks(problem, 148);
}

TEST(Sm100aPairGroupsChoice, IsTheSoonerOneByTheClock) {
  for (const auto& [l, n, k, rows, few_rows, pairs] : kClock) {
    const Problem p{.m = rows, .n = n, .k = k, .l = l, .grouping = Grouping::kMasked};
    EXPECT_EQ(takes_pairs(p), pairs < few_rows) << l << " x " << n << ", " << rows;
  }
}

// Where HBM is the limit of both kernels, the one for few rows has less around it; with more rows
// its tiles are too many for L2. For contiguous experts the host knows the mean alone.
TEST(Sm100aPairGroupsChoice, ManyRowsAreForPairs) {
  for (const int64_t rows : {1, 16, 64, 96}) EXPECT_FALSE(takes_pairs(experts(rows))) << rows;
  for (const int64_t rows : {160, 256, 512, 4096}) EXPECT_TRUE(takes_pairs(experts(rows))) << rows;
  EXPECT_FALSE(takes_pairs(experts(96, Grouping::kMasked)));
  EXPECT_TRUE(takes_pairs(experts(129, Grouping::kMasked)));
}

TEST(Sm100aPairGroupsChoice, Plans) {
  const std::string pairs = "cuda_sm100a_fused_tcgen05persistent_c148_t256x128x256_s5_f16";
  EXPECT_EQ(config(experts(512)), pairs);
  EXPECT_EQ(config(experts(512), "", true), pairs + "_prepared");
  EXPECT_EQ(config(experts(512), pairs), pairs);
  EXPECT_EQ(config(experts(512), "kernel=skinny"),
            "cuda_sm100a_fused_skinny_c148_t128x64x256_s5_f16");
  EXPECT_EQ(config(experts(1), "kernel=tcgen05persistent,ctas=9"),
            "cuda_sm100a_fused_tcgen05persistent_c8_t256x128x256_s5_f16");
  EXPECT_EQ(config(experts(1), "kernel=tcgen05persistent,ctas=1"),
            "config: ctas=1; must be at least 2, a pair");
  Problem few = experts(1);
  few.m = 1, few.n = 65, few.l = 1;  // no more CTAs than there can be tiles
  EXPECT_EQ(config(few, "kernel=tcgen05persistent"),
            "cuda_sm100a_fused_tcgen05persistent_c2_t256x128x256_s5_f16");
  EXPECT_EQ(config(experts(512), "kernel=tcgen05pair"),
            "config: kernel=tcgen05pair; no such kernel is compiled for this problem; there are "
            "skinny_t16x64x256_s8, skinny_t32x64x256_s7, skinny_t64x64x256_s6, "
            "skinny_t128x64x256_s5, tcgen05persistent_t256x128x256_s5");
  Problem invariant = experts(512);
  invariant.batch_invariant = true;
  EXPECT_EQ(config(invariant), "cuda_sm100a_fused_skinny_c148_t128x64x256_s5_f16");
  EXPECT_EQ(config(invariant, "kernel=tcgen05persistent"),
            "config: kernel=tcgen05persistent; no such kernel is compiled for this problem; there "
            "are skinny_t128x64x256_s5");
}

// A GPU that cannot run a pair has the other kernel, and says so where pairs are demanded.
TEST(Sm100aPairGroupsChoice, WithoutPairs) {
  DeviceCaps caps = made_up_gpu(100, 148);
  caps.max_pairs = 0;
  const auto plan_of = [&](const std::string& text) {
    return make_plan(experts(512), {.strategy = StrategyId::kFused, .config = text}, caps);
  };
  EXPECT_EQ(plan_of("")->config(), "cuda_sm100a_fused_skinny_c148_t128x64x256_s5_f16");
  EXPECT_EQ(plan_of("kernel=tcgen05persistent").status().message(),
            "config: kernel=tcgen05persistent; made up GPU runs no cluster of two CTAs with an SM "
            "for each");
  caps.max_pairs = 70;
  EXPECT_EQ(plan_of("")->config(), "cuda_sm100a_fused_tcgen05persistent_c140_t256x128x256_s5_f16");
}

TEST(Sm100aPairGroupsChoice, WhatItDoesNotTake) {
  const auto reason = [](const Problem& p) { return supports(p).message(); };
  EXPECT_EQ(reason({.m = 1, .n = 1, .k = 16}), "grouping: none; this kernel is for groups");
  Problem p = experts(1);
  p.batch_invariant = true;
  EXPECT_EQ(reason(p), "batch_invariant: true; only the kernel for few rows is");
  p.batch_invariant = false;
  p.a.type = DataType::kF16;
  EXPECT_EQ(reason(p), "a.type: f16; the sm_100a kernel takes e2m1");
  EXPECT_EQ(build_launches(core::resolve(p), far_buffers(), {}, nullptr, instances()[0], 2,
                           &record_view, nullptr)
                .status()
                .argument(),
            "a.type");
}

TEST(Sm100aPairGroupsLaunch, TableThenKernel) {
  test::views.clear();
  const Problem p =
      swizzled({.m = 600, .n = 200, .k = 320, .l = 3, .grouping = Grouping::kContiguous});
  const int64_t ctas = ctas_for(p, 148);
  EXPECT_EQ(ctas, 2 * 2 * (3 + 597 / 256));
  EXPECT_EQ(ctas_for(p, 7), 6);
  auto* const workspace = reinterpret_cast<void*>(uint64_t{9} << 40);
  const auto launches = build_launches(core::resolve(p), far_buffers(), {}, workspace,
                                       instance_for(DataType::kF16), ctas, &record_view, nullptr);
  ASSERT_TRUE(launches.ok()) << launches.status().message();
  ASSERT_EQ(launches->size(), 2u);
  EXPECT_STREQ(launches->front().kernel.entry, "dual_gemm_group_tiles");
  EXPECT_TRUE(launches->front().overlaps_previous);
  const KernelLaunch& launch = launches->back();
  EXPECT_STREQ(launch.kernel.module, "dual_gemm_sm100a_pair_groups");
  EXPECT_STREQ(launch.kernel.entry, "dual_gemm_sm100a_pair_groups_t256x128x256_s5_f16");
  EXPECT_EQ(launch.ctas, ctas);
  EXPECT_EQ(launch.cluster_ctas, 2u);
  EXPECT_EQ(launch.threads, 384u);
  EXPECT_TRUE(launch.overlaps_previous);
  ASSERT_EQ(boxes().size(), 6u);
  EXPECT_EQ(boxes()[0], (std::vector<uint32_t>{128, 128, 1}));  // A
  EXPECT_EQ(boxes()[2], (std::vector<uint32_t>{128, 64, 1}));   // Gate
  EXPECT_EQ(boxes()[3], (std::vector<uint32_t>{256, 4, 1, 1}));
  Params params;
  ASSERT_EQ(launch.param_bytes, sizeof params);
  std::memcpy(&params, launch.params.data(), sizeof params);
  EXPECT_EQ(static_cast<const void*>(params.groups.table), workspace);
  EXPECT_TRUE(params.groups.one_batch && params.padded_scales_of_a);
  EXPECT_FALSE(params.linear_a || params.linear_gate || params.linear_up || params.prepared);
  EXPECT_EQ(params.tiles_n, 2u);
  EXPECT_EQ(params.map_a.opaque[0] & 0xFF, 1u);
  EXPECT_EQ(params.map_sf_a.opaque[0] & 0xFF, 2u);
  EXPECT_EQ(params.map_gate.opaque[0] & 0xFF, 3u);
  EXPECT_EQ(params.map_sf_up.opaque[0] & 0xFF, 6u);
  EXPECT_EQ(workspace_bytes(p, {}), 16 * 601);  // rows may name their experts
}

TEST(Sm100aPairGroupsLaunch, ScalesInRows) {
  test::views.clear();
  const Problem p{.m = 300, .n = 200, .k = 512, .l = 3, .grouping = Grouping::kMasked};
  const core::ResolvedProblem resolved = core::resolve(p);
  const auto launch = [&](const uint8_t* packed) {
    Params params{};
    const auto launches = build_launches(
        resolved, far_buffers(), sm100a_skinny::plan_copies(resolved, false, packed != nullptr),
        reinterpret_cast<void*>(uint64_t{9} << 40), instance_for(DataType::kF32), 2, &record_view,
        packed);
    EXPECT_TRUE(launches.ok()) << launches.status().message();
    std::memcpy(&params, launches->back().params.data(), sizeof params);
    return params;
  };
  const Params unpacked = launch(nullptr);
  EXPECT_TRUE(unpacked.linear_a && unpacked.linear_gate && unpacked.linear_up);
  EXPECT_FALSE(unpacked.prepared || unpacked.groups.one_batch);
  EXPECT_EQ(boxes()[1], (std::vector<uint32_t>{16, 128, 1}));
  EXPECT_EQ(boxes()[3], (std::vector<uint32_t>{16, 64, 1}));
  const Params prepared = launch(reinterpret_cast<const uint8_t*>(uint64_t{8} << 40));
  EXPECT_TRUE(prepared.prepared && prepared.linear_gate && prepared.linear_up);
}

}  // namespace
}  // namespace dualgemm::cuda::sm100a_pair_groups
