// fused_epilogue and fused_sequential. Without a GPU: what they refuse and plan. On one: random
// shapes against the oracle's bound, exact sums with ==, by the mma.sync kernels the bits of their
// fused one, repeated calls, nothing written but D and the workspace.
#include <gtest/gtest.h>

#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

constexpr StrategyId kBoth[] = {StrategyId::kFusedEpilogue, StrategyId::kFusedSequential};

Expected<Plan> passes_plan(const Problem& p, const PlanOptions& options, int compute_capability) {
  return plan::choose(p, options, made_up_gpu(compute_capability), cuda::strategies(), "");
}

TEST(FusedPasses, PlanOnEveryGpuFromCapability8) {
  const Problem p{.m = 3, .n = 17, .k = 64, .l = 2};
  for (const int capability : {80, 86, 89, 100, 103, 120}) {
    const auto epilogue =
        passes_plan(p, {.strategy = StrategyId::kFusedEpilogue, .unaligned = true}, capability);
    ASSERT_TRUE(epilogue.ok()) << epilogue.status().message();
    EXPECT_EQ(epilogue->config(), "cuda_sm80_fused_epilogue_mma_w8_t16x64x64_s2_f16");
    EXPECT_EQ(epilogue->workspace_bytes, 2 * 3 * 24 * 4) << "R1, rows at multiples of 32 bytes";
    EXPECT_EQ(strategy_of(StrategyId::kFusedEpilogue).workspace_bytes(*epilogue),
              epilogue->workspace_bytes);
    const auto sequential = passes_plan(p, {.strategy = StrategyId::kFusedSequential}, capability);
    ASSERT_TRUE(sequential.ok()) << sequential.status().message();
    EXPECT_EQ(sequential->config(), "cuda_sm80_fused_sequential_mma_w8_t16x32x64_s2_f16");
    EXPECT_EQ(sequential->workspace_bytes, 0);
  }
  EXPECT_FALSE(passes_plan(p, {.strategy = StrategyId::kFusedEpilogue}, 75).ok());
}

TEST(FusedPasses, PlanTheWgmmaKernelOnHopper) {
  const Problem p{.m = 512, .n = 4096, .k = 7168};
  const auto epilogue = passes_plan(p, {.strategy = StrategyId::kFusedEpilogue}, 90);
  ASSERT_TRUE(epilogue.ok()) << epilogue.status().message();
  EXPECT_EQ(epilogue->config(), "cuda_sm90a_fused_epilogue_wgmma_c128_w1_t128x64x256_s4_f16");
  EXPECT_EQ(epilogue->workspace_bytes, 512 * 4096 * 4 + 2 * 512 * 7168 * 2) << "R1, A twice";
  const auto sequential = passes_plan(p, {.strategy = StrategyId::kFusedSequential}, 90);
  ASSERT_TRUE(sequential.ok()) << sequential.status().message();
  EXPECT_EQ(sequential->config(), "cuda_sm90a_fused_sequential_wgmma_c128_w1_t128x64x256_s4_f16");
  EXPECT_EQ(sequential->workspace_bytes, 512 * 7168 * 2) << "A in 16 bits";
  // Up to 8 rows of an instance of 64: the mma.sync kernel.
  const auto few =
      passes_plan({.m = 8, .n = 4096, .k = 7168}, {.strategy = StrategyId::kFusedSequential}, 90);
  ASSERT_TRUE(few.ok()) << few.status().message();
  EXPECT_EQ(few->config(), "cuda_sm80_fused_sequential_mma_w8_t16x32x64_s2_f16");
  for (const StrategyId id : kBoth) {
    const auto sm80 = passes_plan(p, {.strategy = id, .isa = Isa::kSm80}, 90);
    ASSERT_TRUE(sm80.ok()) << sm80.status().message();
    EXPECT_EQ(sm80->kernel, "mma");
  }
}

TEST(FusedPasses, RefuseWhatTheyCannotDo) {
  for (const StrategyId id : kBoth) {
    const auto refusal = [&](const Problem& p, const DeviceCaps& caps) {
      return strategy_of(id).supports(checked(p), caps).message();
    };
    const DeviceCaps caps = made_up_gpu(90);
    EXPECT_EQ(refusal({.m = 1, .n = 1, .k = 16}, caps), "ok");
    EXPECT_EQ(refusal({.m = 1, .n = 1, .k = 16}, {}), "device: cpu; this strategy runs on a GPU");
    EXPECT_EQ(refusal({.m = 1, .n = 1, .k = 16, .grouping = Grouping::kMasked}, caps),
              "grouping: masked; on a GPU only the strategy fused takes groups");
    EXPECT_EQ(refusal({.m = 1, .n = 1, .k = 16, .a = {.type = DataType::kF32}}, caps),
              "a.type: f32; the kernels for a GPU take e2m1, f16 or bf16");
    EXPECT_EQ(refusal({.m = 1, .n = 16, .k = 16, .d = {.type = DataType::kE2M1}}, caps), "ok");
    const auto forced =
        passes_plan({.m = 1, .n = 1, .k = 16}, {.strategy = id, .isa = Isa::kSm100a}, 100);
    ASSERT_FALSE(forced.ok());
    EXPECT_EQ(forced.status().message(),
              std::string("isa: sm100a; ") + name_of(id) + " has kernels for sm80 and sm90a");
    const auto prepared =
        passes_plan({.m = 1, .n = 1, .k = 16}, {.strategy = id, .prepared = true}, 90);
    EXPECT_EQ(prepared.status().argument(), "prepared");
  }
  const Problem large{.m = 1 << 20, .n = 1 << 19, .k = 16};
  EXPECT_EQ(
      strategy_of(StrategyId::kFusedSequential).supports(checked(large), made_up_gpu(90)).message(),
      "ok");
  EXPECT_EQ(
      strategy_of(StrategyId::kFusedEpilogue).supports(checked(large), made_up_gpu(90)).message(),
      "m, n, l: 1048576, 524288, 1; the Gate product in FP32 must be at most 2^40 bytes");
}

TEST(FusedPasses, APlanThatNamesNoKernelEnqueuesNothing) {
  for (const StrategyId id : kBoth) {
    Plan plan = *passes_plan({.m = 1, .n = 1, .k = 16}, {.strategy = id}, 80);
    plan.shape.tile_m = 24;
    EXPECT_EQ(strategy_of(id).run(plan, checked(plan.problem), {}, nullptr, nullptr).rule(),
              "must be one of the compiled kernels");
    plan = *passes_plan({.m = 1, .n = 1, .k = 16}, {.strategy = id}, 90);
    plan.shape.tile_m = 24;
    EXPECT_EQ(strategy_of(id).run(plan, checked(plan.problem), {}, nullptr, nullptr).rule(),
              "must be one of the compiled kernels");
    plan.isa = Isa::kSm100a;
    EXPECT_EQ(strategy_of(id).run(plan, checked(plan.problem), {}, nullptr, nullptr).argument(),
              "isa");
  }
}

// A plan is public: its problem may have been changed to one that the wgmma kernel does not take,
// and the mma.sync kernel does.
TEST(FusedPasses, AProblemThatThePlansKernelDoesNotTakeEnqueuesNothing) {
  const Problem taken{.m = 512, .n = 64, .k = 256};
  const auto refusal = [&](StrategyId id, const Problem& p) {
    Plan plan = *passes_plan(taken, {.strategy = id}, 90);
    EXPECT_EQ(plan.isa, Isa::kSm90a);
    EXPECT_TRUE(strategy_of(id).supports(checked(p), made_up_gpu(90)).ok());
    plan.problem = p;
    return strategy_of(id).run(plan, checked(plan.problem), {}, nullptr, nullptr).message();
  };
  const Problem long_rows{.m = 1 << 20, .n = 64, .k = 1 << 20};
  for (const StrategyId id : kBoth) {
    EXPECT_EQ(
        refusal(id, long_rows),
        "m, n, k, l: 1048576, 64, 1048576, 1; must be at most 2^31 - 1 tiles of 8 x 32 x 256, "
        "and a at most 2^40 bytes in 16 bits");
  }
  EXPECT_EQ(refusal(StrategyId::kFusedSequential, {.m = 8, .n = 64, .k = 256}),
            "m: 8; must be above 8 for the wgmma kernel of this strategy");
}

#define DUALGEMM_NEEDS_MMA_SYNC()                       \
  if (!has_gpu() || gpu_caps().compute_capability < 80) \
  GTEST_SKIP() << "no GPU of compute capability 8.0 or later"

Problem random_passes_problem(Rng& rng) {
  constexpr DataType kOutputs[] = {DataType::kF16, DataType::kBF16, DataType::kF32};
  Problem p{.m = rng.integer(1, 150), .n = rng.integer(1, 90), .k = 16 * rng.integer(1, 60)};
  p.l = rng.chance(0.3) ? 2 : 1;
  p.a.type = rng.pick(kTypesOfA);
  p.d.type = rng.pick(kOutputs);
  p.act = test::any_activation(rng);
  p.bias = any_bias(rng);
  for (Matrix* matrix : {&p.a, &p.gate, &p.up}) {
    if (matrix->type == DataType::kE2M1 && rng.chance(0.5))
      matrix->scale_layout = ScaleLayout::kSwizzled128x4;
    if (rng.chance(0.3)) matrix->ld = p.k + 2 * rng.integer(0, 40);
  }
  if (rng.chance(0.3)) p.d.ld = p.n + rng.integer(0, 9);
  return p;
}

// D of one call; its workspace begins as 0xFF, which as FP32 is NaN.
std::vector<uint8_t> run(const Problem& p, OnGpu& device, const PlanOptions& options) {
  GpuRun run(p, device.buffers(), options);
  device.poison_d();
  const Status status = run.run(device.buffers());
  EXPECT_TRUE(status.ok()) << status.message();
  if (options.strategy == StrategyId::kFused) {  // sums of rows that exist, where CTAs divide k
    EXPECT_LE(run.info.intermediate_bytes, 2 * run.plan.workspace_bytes);
  } else {
    EXPECT_EQ(run.info.intermediate_bytes, 2 * run.plan.workspace_bytes);
  }
  return device.d();
}

TEST(FusedPassesOnGpu, LieWithinTheBoundAndOnSm80HaveTheBitsOfFused) {
  DUALGEMM_NEEDS_MMA_SYNC();
  Rng rng;
  for (int round = 0; round < 60; ++round) {
    const Problem p = random_passes_problem(rng);
    RandomCase data(p, rng, rng.chance(0.2) ? Values::kWide : Values::kRandom);
    if (rng.chance(0.5)) {
      for (int64_t row = 0; row < p.l * p.m; ++row)
        data.a_row_scale.push_back(rng.uniform(0.5f, 2.0f));
    }
    const int64_t shift = rng.chance(0.3) ? 4 * rng.integer(0, 20) : 0;
    OnGpu device(data, shift);
    SCOPED_TRACE(::testing::Message() << "m " << p.m << " n " << p.n << " k " << p.k << " l " << p.l
                                      << ", a " << name_of(p.a.type) << ", shift " << shift);
    PlanOptions undivided{.strategy = StrategyId::kFused, .isa = Isa::kSm80};
    if (p.m > 32) undivided.config = "tile_m=128,k_warpgroups=1";
    const std::vector<uint8_t> fused = run(p, device, undivided);
    for (const StrategyId id : kBoth) {
      const std::vector<uint8_t> got = run(p, device, {.strategy = id, .isa = Isa::kSm80});
      ASSERT_EQ(got, fused) << name_of(id);
    }
    std::copy(fused.begin(), fused.end(), data.d.data.data());
    ASSERT_TRUE(within_bound(p, data.buffers(), Isa::kSm80));
    for (const StrategyId id : {kBoth[0], kBoth[1], StrategyId::kFused}) {
      const Isa isa = id == StrategyId::kFused ? Isa::kSm80 : Isa::kAuto;
      const std::vector<uint8_t> got =
          run(p, device, {.strategy = id, .isa = isa, .unaligned = true});
      std::copy(got.begin(), got.end(), data.d.data.data());
      ASSERT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder))
          << name_of(id);
    }
  }
}

TEST(FusedPassesOnGpu, ExactSumsAreTheOracles) {
  DUALGEMM_NEEDS_MMA_SYNC();
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    for (const int64_t m : {5, 130}) {
      Problem p{.m = m, .n = 200, .k = 1344, .a = {.type = type}, .d = {.type = DataType::kF32}};
      p.act.kind = ActivationKind::kIdentity;
      RandomCase data(p, rng, Values::kExact);
      OnGpu device(data);
      std::vector<uint8_t> got[2];
      for (int i = 0; i < 2; ++i) got[i] = run(p, device, {.strategy = kBoth[i]});
      data.poison_d();
      ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
      for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(std::equal(got[i].begin(), got[i].end(), data.d.data.data()))
            << name_of(kBoth[i]) << ", a " << name_of(type) << ", m " << m;
      }
    }
  }
}

TEST(FusedPassesOnGpu, ThirtyCallsGiveTheSameBits) {
  DUALGEMM_NEEDS_MMA_SYNC();
  Rng rng;
  const Problem p{.m = 100, .n = 1000, .k = 2048};
  RandomCase data(p, rng, Values::kRandom);
  OnGpu device(data);
  for (const StrategyId id : kBoth) {
    const std::vector<uint8_t> first = run(p, device, {.strategy = id});
    for (int call = 0; call < 30; ++call)
      ASSERT_EQ(run(p, device, {.strategy = id}), first) << name_of(id) << ", call " << call;
  }
}

}  // namespace
}  // namespace dualgemm::test
