// PlanOptions::config on made-up GPUs: a plan's own text gives the same plan again, and what is not
// compiled is refused with a list of what is. Needs no GPU.
#include <gtest/gtest.h>

#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

Expected<Plan> choose(const Problem& problem, const PlanOptions& options, const DeviceCaps& caps) {
  return plan::choose(problem, options, caps, cuda::strategies(), "");
}

// Everything that run() looks at.
void expect_same(const Plan& a, const Plan& b) {
  EXPECT_EQ(a.config(), b.config());
  EXPECT_EQ(a.problem, b.problem);
  EXPECT_EQ(a.strategy, b.strategy);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.isa, b.isa);
  EXPECT_EQ(a.regime, b.regime);
  EXPECT_EQ(a.threads, b.threads);
  EXPECT_EQ(a.prepared, b.prepared);
  EXPECT_EQ(a.unaligned, b.unaligned);
  EXPECT_EQ(a.kernel, b.kernel);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.preparation, b.preparation);
  EXPECT_EQ(a.workspace_bytes, b.workspace_bytes);
  EXPECT_EQ(a.prepared_bytes, b.prepared_bytes);
}

TEST(CudaConfig, APlansOwnTextGivesThePlanAgain) {
  Rng rng;
  constexpr int kCapabilities[] = {80, 86, 89, 90, 100, 120};
  constexpr DataType kOutputs[] = {DataType::kF16, DataType::kBF16, DataType::kF32};
  int plans = 0;
  for (int round = 0; round < 1500; ++round) {
    Problem p{.m = rng.integer(1, rng.chance(0.5) ? 70 : 5000),
              .n = rng.integer(1, 15000),
              .k = 16 * rng.integer(1, 600),
              .l = rng.chance(0.2) ? rng.integer(2, 4) : 1};
    p.a.type = rng.pick(kTypesOfA);
    p.d.type = rng.pick(kOutputs);
    p.batch_invariant = rng.chance(0.2);
    const DeviceCaps caps =
        made_up_gpu(rng.pick(kCapabilities), static_cast<int>(rng.integer(8, 160)));
    PlanOptions options;
    options.strategy = static_cast<StrategyId>(rng.integer(0, 10));
    options.prepared = rng.chance(0.2);
    options.unaligned = rng.chance(0.2);
    if (rng.chance(0.3)) options.config = "ctas=" + std::to_string(rng.integer(1, caps.num_sms));
    const auto plan = choose(p, options, caps);
    if (!plan) continue;
    ++plans;
    const auto again = choose(p, {.unaligned = options.unaligned, .config = plan->config()}, caps);
    ASSERT_TRUE(again.ok()) << plan->config() << ": " << again.status().message();
    expect_same(*plan, *again);
    ASSERT_FALSE(::testing::Test::HasFailure())
        << plan->config() << ", m " << p.m << " n " << p.n << " k " << p.k << " l " << p.l;
  }
  EXPECT_GT(plans, 300);
}

TEST(CudaConfig, EveryCompiledKernelCanBeAskedFor) {
  const Problem p{.m = 100, .n = 4096, .k = 7168};
  const DeviceCaps hopper = made_up_gpu(90);
  const auto config = [&](const std::string& text, const Problem& problem) {
    const auto plan = choose(problem, {.config = text}, hopper);
    return plan ? plan->config() : plan.status().message();
  };
  EXPECT_EQ(config("tile_m=16", p), "cuda_sm90a_fused_wgmma_c132_w4_t16x32x256_s8_f16");
  EXPECT_EQ(config("tile_m=64,tile_n=128", p), "cuda_sm90a_fused_wgmma_c128_w1_t64x128x256_s4_f16");
  EXPECT_EQ(config("ctas=5,tile_m=256", p), "cuda_sm90a_fused_wgmma_c5_w1_t256x64x256_s4_f16");
  EXPECT_EQ(config("kernel=skinny", {.m = 3, .n = 4096, .k = 7168}),
            "cuda_sm90a_fused_skinny_c128_t8x32x256_s1_f16");
  EXPECT_EQ(config("tile_n=8,kernel=skinny,ctas=9", {.m = 3, .n = 4096, .k = 7168}),
            "cuda_sm90a_fused_skinny_c9_t8x8x256_s2_f16");
  EXPECT_EQ(config("isa=sm80,tile_m=8", p), "cuda_sm80_fused_mma_w8_t8x32x64_s2_f16");
  EXPECT_EQ(config("isa=sm80,tile_m=64,k_warpgroups=1", p),
            "cuda_sm80_fused_mma_w1_t64x128x64_s3_f16");
  EXPECT_EQ(config("isa=sm80,tile_m=64,k_warpgroups=1,ctas=9", p),
            "cuda_sm80_fused_mma_c9_w1_t64x128x64_s3_f16");
  EXPECT_EQ(config("isa=sm80,tile_m=64,k_warpgroups=1,ctas=100", p),
            "cuda_sm80_fused_mma_c64_w1_t64x128x64_s3_f16")
      << "64 tiles";
  EXPECT_EQ(config("isa=sm80,k_warpgroups=1", {.m = 1024, .n = 4096, .k = 7168}),
            "cuda_sm80_fused_mma_c132_w1_t128x128x64_s3_f16");
  EXPECT_EQ(config("isa=sm80,ctas=132", {.m = 1024, .n = 4096, .k = 7168}),
            "cuda_sm80_fused_mma_c132_t128x128x64_s3_f16");
  EXPECT_EQ(config("isa=sm80,strategy=fused_sequential,tile_m=16", p),
            "cuda_sm80_fused_sequential_mma_w8_t16x32x64_s2_f16");
  EXPECT_EQ(config("isa=sm80,strategy=fused_epilogue", p),
            "cuda_sm80_fused_epilogue_mma_w1_t128x256x64_s3_f16");
  EXPECT_EQ(config("strategy=fused_sequential,tile_m=128", p),
            "cuda_sm90a_fused_sequential_wgmma_c32_w1_t128x64x256_s4_f16");
  EXPECT_EQ(config("strategy=fused_epilogue,tile_m=256", p),
            "cuda_sm90a_fused_epilogue_wgmma_c132_w1_t256x64x256_s4_f16");
  EXPECT_EQ(config("strategy=two_pass", p), "cuda_sm80_two_pass_cublaslt_f16");
  const auto blackwell = choose(p, {.config = "tile_n=128"}, made_up_gpu(100));
  ASSERT_TRUE(blackwell.ok()) << blackwell.status().message();
  EXPECT_EQ(blackwell->config(), "cuda_sm100a_fused_tcgen05_t128x128x256_s4_f16");
  EXPECT_EQ(choose(p, {.config = "kernel=tcgen05"}, made_up_gpu(100))->config(),
            "cuda_sm100a_fused_tcgen05_t128x64x256_s5_f16");
  EXPECT_EQ(choose(p, {.config = "kernel=skinny,tile_n=64"}, made_up_gpu(100))->config(),
            "cuda_sm100a_fused_skinny_t128x64x256_s5_f16");
}

TEST(CudaConfig, WhatIsNotCompiledIsRefusedWithWhatIs) {
  const Problem p{.m = 100, .n = 4096, .k = 7168};
  const auto status = [&](const std::string& text, const Problem& problem, int capability = 90) {
    return choose(problem, {.config = text}, made_up_gpu(capability)).status();
  };
  const Status none = status("tile_m=24,k_warpgroups=4", p);
  EXPECT_EQ(none.code(), StatusCode::kUnsupported);
  EXPECT_EQ(none.argument(), "config");
  EXPECT_EQ(none.observed(), "tile_m=24,k_warpgroups=4");
  EXPECT_EQ(none.rule(),
            "no such kernel is compiled for this problem; there are wgmma_w4_t8x32x256_s12, "
            "wgmma_w4_t16x32x256_s8, wgmma_w3_t32x32x256_s6, wgmma_w2_t32x64x256_s4, "
            "wgmma_w2_t64x64x256_s4, "
            "wgmma_w1_t64x128x256_s4, wgmma_w1_t128x64x256_s4, wgmma_w1_t128x96x256_s2, "
            "wgmma_w1_t256x64x256_s4");
  Problem invariant = p;
  invariant.batch_invariant = true;
  EXPECT_EQ(status("tile_m=8", invariant).rule(),
            "no such kernel is compiled for this problem; there are wgmma_w1_t64x128x256_s4, "
            "wgmma_w1_t128x64x256_s4, wgmma_w1_t128x96x256_s2, wgmma_w1_t256x64x256_s4");
  EXPECT_EQ(status("tile_m=24", p, 80).rule(),
            "no such kernel is compiled for this problem; there are mma_w8_t8x32x64_s2, "
            "mma_w8_t16x32x64_s2, mma_w8_t32x32x64_s2, mma_w4_t32x32x64_s2, "
            "mma_w1_t64x128x64_s3, mma_w2_t64x128x64_s3, mma_w3_t64x128x64_s3, "
            "mma_w4_t64x128x64_s3, mma_w5_t64x128x64_s3, mma_w6_t64x128x64_s3, "
            "mma_w8_t64x128x64_s3, mma_w10_t64x128x64_s3, mma_w12_t64x128x64_s3, "
            "mma_w16_t64x128x64_s3, mma_t64x128x64_s3, "
            "mma_w1_t128x128x64_s3, mma_w2_t128x128x64_s3, mma_w3_t128x128x64_s3, "
            "mma_w4_t128x128x64_s3, mma_w5_t128x128x64_s3, mma_w6_t128x128x64_s3, "
            "mma_w8_t128x128x64_s3, mma_w10_t128x128x64_s3, mma_w12_t128x128x64_s3, "
            "mma_w16_t128x128x64_s3, mma_t128x128x64_s3");
  EXPECT_EQ(status("tile_m=24,strategy=fused_epilogue", p, 80).rule(),
            "no such kernel is compiled for this problem; there are mma_w8_t16x64x64_s2, "
            "mma_w4_t32x64x64_s2, mma_w1_t128x256x64_s3");
  EXPECT_EQ(status("tile_m=16,strategy=fused_sequential", p).rule(),
            "no such kernel is compiled for this problem; there are wgmma_w1_t64x64x256_s7, "
            "wgmma_w1_t128x64x256_s4");
  EXPECT_EQ(status("ctas=133", p).message(),
            "config: ctas=133; must be 1 .. 132, as this GPU has SMs");
  EXPECT_EQ(status("ctas=0", p).message(), "config: ctas=0; must be 1 .. 132, as this GPU has SMs");
  EXPECT_EQ(
      status("strategy=two_pass,tile_m=8", p).message(),
      "config: tile_m=8; two_pass on sm80 runs cuda_sm80_two_pass_cublaslt_f16 and leaves that no "
      "choice");
  const Problem few{.m = 32, .n = 4096, .k = 7168};
  EXPECT_EQ(choose(few, {.config = "ctas=7"}, made_up_gpu(80))->config(),
            "cuda_sm80_fused_mma_c7_w8_t32x32x64_s2_f16");
  EXPECT_EQ(choose(few, {.config = "ctas=99,k_warpgroups=4"}, made_up_gpu(80))->config(),
            "cuda_sm80_fused_mma_c99_w4_t32x32x64_s2_f16");
  EXPECT_EQ(status("ctas=133", few, 80).message(),
            "config: ctas=133; must be 1 .. 132, as this GPU has SMs");
  EXPECT_EQ(status("ctas=265", {.m = 8, .n = 4096, .k = 7168}, 80).message(),
            "config: ctas=265; must be 1 .. 264, 2 for each SM of this GPU");
  EXPECT_EQ(status("ctas=7,k_warpgroups=2", p, 80).argument(), "config");
  EXPECT_EQ(status("ctas=7,k_warpgroups=1", invariant, 80).argument(), "config");
  EXPECT_EQ(choose(p, {.config = "ctas=7"}, made_up_gpu(80))->config(),
            "cuda_sm80_fused_mma_c7_t128x128x64_s3_f16");
  EXPECT_EQ(status("cuda_sm90a_fused_wgmma_c128_w4_t8x32x256_s11_f16", p).code(),
            StatusCode::kUnsupported)
      << "of a build whose kernel has another number of stages";
  EXPECT_EQ(status("cuda_sm90a_fused_wgmma_c128_w4_t8x32x256_s12_f16", p, 80).message(),
            "isa: sm90a; this machine offers sm80");
}

}  // namespace
}  // namespace dualgemm::test
