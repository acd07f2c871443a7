// The strategy cutlass: what it refuses and what it plans. No GPU is needed; ptxsim exec runs it.
#include <string>

#include "cuda/cutlass/interleave.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/strategies/strategies.hpp"
#include "plan/choose.hpp"
#include "support/checked.hpp"

#include <gtest/gtest.h>

namespace dualgemm::test {
namespace {

DeviceCaps b200() {
  DeviceCaps caps;
  caps.kind = DeviceKind::kCuda;
  caps.name = "made up B200";
  caps.compute_capability = 100;
  caps.num_sms = 148;
  caps.isas = cuda::isas_of(100);
  return caps;
}

Expected<Plan> plan_of(const Problem& problem, PlanOptions options = {},
                       const DeviceCaps& caps = b200()) {
  options.strategy = StrategyId::kCutlass;
  return plan::choose(problem, options, caps, cuda::strategies(), "");
}

std::string config_of(const Problem& problem, const PlanOptions& options = {},
                      const DeviceCaps& caps = b200()) {
  const Expected<Plan> plan = plan_of(problem, options, caps);
  return plan ? plan->config() : plan.status().message();
}

constexpr const char* kOneCta = "cuda_sm100a_cutlass_cutlass_t128x128x256_s4_f16";
constexpr const char* kTwoCtas = "cuda_sm100a_cutlass_cutlass_t256x128x256_s5_f16";

TEST(CutlassStrategy, TwoCtasATileWhereThereAreRowsForBoth) {
  EXPECT_EQ(config_of({.m = 1, .n = 8, .k = 16}), kOneCta);
  EXPECT_EQ(config_of({.m = 128, .n = 4096, .k = 7168}), kOneCta);
  EXPECT_EQ(config_of({.m = 129, .n = 4096, .k = 7168}), kTwoCtas);
  EXPECT_EQ(config_of({.m = 256, .n = 8, .k = 32, .d = {.type = DataType::kF32}}),
            "cuda_sm100a_cutlass_cutlass_t256x128x256_s5_f32");
}

TEST(CutlassStrategy, EitherKernelAndTheVisitorTreeCanBeAskedFor) {
  const Problem problem{.m = 256, .n = 4096, .k = 7168};
  EXPECT_EQ(config_of(problem, {.config = "tile_m=128"}), kOneCta);
  EXPECT_EQ(config_of({.m = 1, .n = 8, .k = 32}, {.config = "tile_m=256"}), kTwoCtas);
  const std::string visitor = "cuda_sm100a_cutlass_cutlassvisitor_t128x128x256_s4_f16";
  EXPECT_EQ(config_of(problem, {.config = "kernel=cutlassvisitor"}), visitor);
  EXPECT_EQ(config_of(problem, {.prepared = true, .config = visitor + "_prepared"}),
            visitor + "_prepared");
  // What its tree does not compute.
  for (Problem other : {Problem{.m = 4, .n = 8, .k = 32, .act = {ActivationKind::kGeluErf}},
                        Problem{.m = 4, .n = 8, .k = 32, .d = {.type = DataType::kBF16}},
                        Problem{.m = 4, .n = 8, .k = 32, .bias = BiasType::kF32}}) {
    EXPECT_EQ(config_of(other, {.config = "kernel=cutlassvisitor"}),
              "config: kernel=cutlassvisitor; no such kernel is compiled for this problem; there "
              "are cutlass_t128x128x256_s4, cutlass_t256x128x256_s5");
  }
}

TEST(CutlassStrategy, RefusesByNameWhatItCannotDo) {
  const Problem taken{.m = 4, .n = 8, .k = 32};
  Problem p = taken;
  p.grouping = Grouping::kMasked;
  EXPECT_EQ(config_of(p), "grouping: masked; the CUTLASS kernels take none");
  p = taken;
  p.a.type = DataType::kBF16;
  EXPECT_EQ(config_of(p), "a.type: bf16; the CUTLASS kernels take e2m1");
  p = {.m = 4, .n = 16, .k = 32, .d = {.type = DataType::kE2M1}};
  EXPECT_EQ(config_of(p), "d.type: e2m1; the CUTLASS kernels write f16, bf16 or f32");
  p = taken;
  p.batch_invariant = true;
  EXPECT_EQ(config_of(p), "batch_invariant: true; one CTA or two share an MMA, as m decides");
  EXPECT_EQ(config_of(taken, {.isa = Isa::kSm80}), "isa: sm80; the CUTLASS kernels are for sm100a");
  for (const int other : {90, 103, 120}) {
    DeviceCaps caps = b200();
    caps.compute_capability = other;
    caps.isas = cuda::isas_of(other);
    EXPECT_EQ(config_of(taken, {}, caps),
              "device: made up B200; the CUTLASS kernels need compute capability 10.0");
  }
}

TEST(CutlassStrategy, WithoutPairsOneCtaDoesIt) {
  const Problem problem{.m = 256, .n = 4096, .k = 7168};
  const Expected<Plan> pairs = plan_of(problem);
  ASSERT_TRUE(pairs.ok());
  DeviceCaps caps = b200();
  caps.max_pairs = 0;
  EXPECT_EQ(config_of(problem, {}, caps), kOneCta);
  EXPECT_EQ(config_of(problem, {.config = "tile_m=256"}, caps),
            "config: tile_m=256; made up B200 runs no cluster of two CTAs with an SM for each");
  EXPECT_EQ(cuda::check_schedulable(*pairs, caps).argument(), "plan.kernel");
  EXPECT_TRUE(cuda::check_schedulable(*pairs, b200()).ok());
}

TEST(CutlassStrategy, PreparedWeightsAreInterleaved) {
  const Problem problem{.m = 4, .n = 300, .k = 272, .l = 3};
  const Expected<Plan> unprepared = plan_of(problem),
                       prepared = plan_of(problem, {.prepared = true});
  ASSERT_TRUE(unprepared.ok());
  ASSERT_TRUE(prepared.ok());
  EXPECT_EQ(unprepared->preparation, Preparation::kOptional);
  const Strategy& strategy = cuda::cutlass_strategy();
  const PreparedDescriptor descriptor = strategy.prepared_descriptor(*prepared);
  const int64_t part = cuda::gated::weight_layout(300, 272).bytes();
  EXPECT_EQ(descriptor.format, PreparedFormat::kGpuInterleaved);
  EXPECT_EQ(descriptor.expert_bytes, (part + kPreparedHeaderBytes + 255) / 256 * 256);
  EXPECT_EQ(prepared->prepared_bytes, 3 * descriptor.expert_bytes);
  // Neither is in the workspace of the other; that of A is needed by both, since k % 32 != 0.
  EXPECT_EQ(unprepared->workspace_bytes - prepared->workspace_bytes, 3 * part);
  EXPECT_GT(prepared->workspace_bytes, 0);
  EXPECT_EQ(config_of(problem, {.prepared = true}),
            "cuda_sm100a_cutlass_cutlass_t128x128x256_s4_f16_prepared");
}

TEST(CutlassStrategy, IsNeverChosenByItself) {
  const auto plan =
      plan::choose({.m = 256, .n = 4096, .k = 7168}, {}, b200(), cuda::strategies(), "");
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->strategy, StrategyId::kFused);
  bool mentioned = false;
  for (const RejectedCandidate& rejected : plan->rejected)
    mentioned = mentioned || rejected.name == "cutlass";
  EXPECT_TRUE(mentioned);
}

// The row scales are in the buffers: seen before anything is launched.
TEST(CutlassStrategy, TheVisitorTreeRefusesRowScales) {
  const Expected<Plan> plan =
      plan_of({.m = 4, .n = 8, .k = 32}, {.config = "kernel=cutlassvisitor"});
  ASSERT_TRUE(plan.ok());
  const float scale = 1;
  Buffers buffers;
  buffers.a_row_scale = &scale;
  EXPECT_EQ(cuda::cutlass_strategy()
                .run(*plan, checked(plan->problem), buffers, nullptr, nullptr)
                .message(),
            "a_row_scale: given; the visitor tree takes none");
  Plan other = *plan;
  other.shape.tile_m = 64;
  EXPECT_EQ(cuda::cutlass_strategy()
                .run(other, checked(other.problem), buffers, nullptr, nullptr)
                .argument(),
            "plan.kernel");
}

}  // namespace
}  // namespace dualgemm::test
