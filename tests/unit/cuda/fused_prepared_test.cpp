// The fused strategy's prepared weights. Without a GPU: what plans say of them. On one: one handle
// for every m and for both types of A that its number format serves; what does not fit together is
// refused, and nothing is written.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "core/int_math.hpp"
#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/kernels/sm90a_skinny/instances.hpp"
#include "cuda/runtime/pointers.hpp"
#include "dualgemm/dualgemm.hpp"
#include "support/bound.hpp"
#include "support/inputs.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

namespace sm90a = cuda::sm90a;

constexpr int64_t kHopper = 90;

Expected<Plan> prepared_plan(const Problem& problem, const PlanOptions& extra = {},
                             int capability = kHopper) {
  PlanOptions options = extra;
  options.prepared = true;
  return plan::choose(problem, options, made_up_gpu(capability), cuda::strategies(), "");
}

// Bytes of a batch: units of 8 columns of Gate and Up by 64 of k, 256 + 32 bytes for each matrix,
// four for a k-tile; and two more at the end; behind a header, and rounded up as that is.
constexpr int64_t packed_bytes(int64_t units, int64_t k_tiles) {
  return core::round_up(256 + (units * k_tiles * 4 + 2) * 576, 256);
}

TEST(FusedPrepared, PlansSayWhatTheyNeed) {
  const auto rows = prepared_plan({.m = 64, .n = 4096, .k = 7168});
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(rows->strategy, StrategyId::kFused);
  EXPECT_EQ(rows->isa, Isa::kSm90a);
  EXPECT_TRUE(rows->prepared);
  EXPECT_EQ(rows->prepared_bytes, packed_bytes(512, 28));
  EXPECT_TRUE(rows->config().ends_with("_f16_prepared")) << rows->config();
  EXPECT_NE(rows->explain().find(", 33031680 of prepared weights\n"), std::string::npos)
      << rows->explain();
  const auto tails = prepared_plan({.m = 3, .n = 9, .k = 272, .l = 3});
  EXPECT_EQ(tails->prepared_bytes, 3 * packed_bytes(16, 2));
  const auto raw =
      plan::choose({.m = 64, .n = 4096, .k = 7168}, {}, made_up_gpu(90), cuda::strategies(), "");
  EXPECT_EQ(raw->prepared_bytes, rows->prepared_bytes) << "what prepare() would hold";
  EXPECT_FALSE(raw->prepared);
  EXPECT_NE(raw->explain().find("; prepare() would hold 33031680 more\n"), std::string::npos);
}

// However they lay before: no copies, and few rows get their kernel.
TEST(FusedPrepared, TheirFormerPlaceDoesNotMatter) {
  Problem p{.m = 5, .n = 1000, .k = 7168}, tidy = p;
  p.gate.ld = p.up.ld = p.k + 2;
  p.gate.scale_layout = ScaleLayout::kSwizzled128x4;
  p.up.scale_ld = p.k / 16 + 1;
  const auto few = prepared_plan(p);
  ASSERT_TRUE(few.ok()) << few.status().message();
  EXPECT_EQ(few->kernel, plan::kernel_name(KernelId::kSm90aSkinny));
  EXPECT_EQ(few->workspace_bytes, 0);
  const auto unaligned = prepared_plan(p, {.unaligned = true});  // A may be
  EXPECT_EQ(unaligned->kernel, plan::kernel_name(KernelId::kSm90a));
  EXPECT_EQ(unaligned->workspace_bytes, prepared_plan(tidy, {.unaligned = true})->workspace_bytes);
  p.m = tidy.m = 256;
  EXPECT_EQ(prepared_plan(p)->workspace_bytes, prepared_plan(tidy)->workspace_bytes);
  EXPECT_EQ(prepared_plan(p, {.unaligned = true})->workspace_bytes,
            prepared_plan(p)->workspace_bytes);
}

TEST(FusedPrepared, UpToSixteenRowsAreFew) {
  namespace skinny = cuda::sm90a_skinny;
  for (const skinny::Instance& instance : skinny::instances()) {
    if (!instance.config.prepared) continue;
    Problem p{.m = instance.config.tile_m, .n = 1000, .k = 7168};
    p.a.type = std::array{DataType::kE2M1, DataType::kF16,
                          DataType::kBF16}[static_cast<size_t>(instance.config.a_type)];
    const auto plan =
        prepared_plan(p, {.config = "tile_n=" + std::to_string(skinny::tile_n_of(instance.config)) +
                                    ",kernel=" + plan::kernel_name(KernelId::kSm90aSkinny)});
    ASSERT_TRUE(plan.ok()) << instance.entry << ": " << plan.status().message();
    EXPECT_EQ(plan->shape.tile_m, instance.config.tile_m);
    EXPECT_EQ(plan->workspace_bytes, 0);
  }
  EXPECT_EQ(prepared_plan({.m = 16, .n = 3072, .k = 7168})->kernel,
            plan::kernel_name(KernelId::kSm90aSkinny));
  EXPECT_EQ(prepared_plan({.m = 17, .n = 3072, .k = 7168})->kernel,
            plan::kernel_name(KernelId::kSm90a));
}

// One format from sm_80 to sm_90a, and on sm_12x with an A of 16 bits: what one GPU prepared
// another takes.
TEST(FusedPrepared, OtherKernelsTakeHoppers) {
  Problem p{.m = 8, .n = 64, .k = 256};
  auto hopper = prepared_plan(p, {.strategy = StrategyId::kFused});
  ASSERT_TRUE(hopper.ok()) << hopper.status().message();
  for (const int capability : {80, 89, 120, 121}) {
    if (capability == 120) {
      p.a.type = DataType::kBF16;
      hopper = prepared_plan(p, {.strategy = StrategyId::kFused});
    }
    const auto plan = prepared_plan(p, {.strategy = StrategyId::kFused}, capability);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan->isa, Isa::kSm80);
    EXPECT_EQ(plan->prepared_bytes, hopper->prepared_bytes);
    EXPECT_EQ(*prepared_descriptor(*plan), *prepared_descriptor(*hopper));
  }
  p.a.type = DataType::kE2M1;
  const auto forced = prepared_plan(p, {.strategy = StrategyId::kFused, .isa = Isa::kSm80});
  ASSERT_TRUE(forced.ok()) << forced.status().message();
  EXPECT_EQ(forced->config(), "cuda_sm80_fused_mma_w8_t8x32x64_s2_f16_prepared");
}

// Blackwell's: one layout for every m, every tile and every kernel, which the plan chooses by m.
TEST(FusedPrepared, BlackwellChoosesAKernelAndATileForEachM) {
  const auto plan_for = [](int64_t m, const std::string& config = "") {
    return plan::choose(swizzled({.m = m, .n = 4096, .k = 7168}),
                        {.prepared = true, .config = config}, made_up_gpu(100, 148),
                        cuda::strategies(), "");
  };
  const int64_t bytes = 256 + int64_t{28} * 512 * (2048 + 256);
  for (const int64_t m : {1, 16, 32, 33, 256, 512}) {
    const auto plan = plan_for(m);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan->kernel, m <= 16 ? "skinny" : "tcgen05pair");
    EXPECT_EQ(plan->prepared_bytes, bytes);
  }
  EXPECT_EQ(plan_for(16)->config(), "cuda_sm100a_fused_skinny_t32x32x256_s14_f16_prepared");
  EXPECT_EQ(plan_for(16, "tile_n=64,tile_m=32")->config(),
            "cuda_sm100a_fused_skinny_t32x64x256_s9_f16_prepared");
  EXPECT_EQ(plan_for(16, "kernel=tcgen05pair")->kernel, "tcgen05pair");
  EXPECT_EQ(plan_for(33, "kernel=skinny").status().argument(), "config");
  EXPECT_EQ(plan_for(512)->config(), "cuda_sm100a_fused_tcgen05pair_t256x112x256_s6_f16_prepared");
  EXPECT_EQ(plan_for(512, "tile_n=80")->shape.tile_n, 80);
  EXPECT_EQ(plan_for(512, "kernel=tcgen05").status().message(),
            "config: kernel=tcgen05; no such kernel is compiled for this problem; there are "
            "tcgen05pair_t256x48x256_s8, tcgen05pair_t256x64x256_s8, tcgen05pair_t256x80x256_s7, "
            "tcgen05pair_t256x96x256_s6, tcgen05pair_t256x112x256_s6, "
            "tcgen05pair_t256x128x256_s5, tcgen05persistent_t256x128x256_s5");
  // Bits that do not depend on m come from one kernel.
  for (const int64_t m : {1, 256}) {
    const Problem same{.m = m, .n = 4096, .k = 7168, .batch_invariant = true};
    EXPECT_EQ(prepared_plan(same, {}, 100)->kernel, "tcgen05pair");
  }
  // Without pairs of CTAs few rows are left.
  DeviceCaps no_pairs = made_up_gpu(100, 148);
  no_pairs.max_pairs = 0;
  const auto without_pairs = [&](int64_t m) {
    return plan::choose(swizzled({.m = m, .n = 4096, .k = 7168}),
                        {.isa = Isa::kSm100a, .prepared = true}, no_pairs, cuda::strategies(), "");
  };
  EXPECT_EQ(without_pairs(32)->kernel, "skinny");
  EXPECT_EQ(without_pairs(128)->kernel, "skinnypersistent");
  EXPECT_EQ(without_pairs(129).status().argument(), "prepared");
  // Layouts of the weights that need a copy where they are not prepared.
  Problem p{.m = 300, .n = 100, .k = 272};
  p.gate.ld = p.up.ld = 276;
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  Problem tidy = p;
  tidy.gate.ld = tidy.up.ld = 288;
  EXPECT_EQ(prepared_plan(p, {}, 100)->workspace_bytes,
            prepared_plan(tidy, {}, 100)->workspace_bytes);
}

// The same bytes for groups of experts and for 16-bit A.
TEST(FusedPrepared, BlackwellTakesThemForGroupsAndFor16BitA) {
  Problem p{.m = 64, .n = 2048, .k = 7168, .l = 4};
  const auto descriptor_of = [](const Problem& problem) {
    const auto plan = prepared_plan(problem, {.strategy = StrategyId::kFused}, 100);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return prepared_descriptor(*plan);
  };
  const auto wanted = descriptor_of(p);
  EXPECT_EQ(wanted->format, PreparedFormat::kSm100a);
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    p.grouping = grouping;
    EXPECT_EQ(*descriptor_of(p), *wanted);
  }
  EXPECT_EQ(prepared_plan(p, {}, 100)->config(),
            "cuda_sm100a_fused_skinny_c128_t64x64x256_s6_f16_prepared");
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    p.grouping = Grouping::kNone;
    p.a.type = type;
    EXPECT_EQ(*descriptor_of(p), *wanted);
    EXPECT_EQ(prepared_plan(p, {.strategy = StrategyId::kFused}, 100)->kernel, "w4a16");
    p.grouping = Grouping::kMasked;
    EXPECT_EQ(*descriptor_of(p), *wanted);
    EXPECT_EQ(prepared_plan(p, {.strategy = StrategyId::kFused}, 100)->kernel, "w4a16");
  }
}

TEST(FusedPrepared, EveryInstanceCanBeAskedFor) {
  for (const sm90a::Instance& instance : sm90a::instances()) {
    if (!instance.config.prepared) continue;
    Problem p{.m = 100, .n = 4096, .k = 7168};
    p.a.type = instance.config.bf16 ? DataType::kBF16 : DataType::kF16;
    const auto plan = prepared_plan(
        p, {.config = "tile_m=" + std::to_string(instance.config.tile_m) + ",tile_n=" +
                      std::to_string(instance.config.n_warpgroups * sm90a::kWarpgroupCols) +
                      ",k_warpgroups=" + std::to_string(instance.config.k_warpgroups)});
    ASSERT_TRUE(plan.ok()) << instance.entry << ": " << plan.status().message();
    EXPECT_EQ(plan->shape.stages, instance.weight_stages);
    const auto again =
        plan::choose(p, {.config = plan->config()}, made_up_gpu(kHopper), cuda::strategies(), "");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->config(), plan->config());
    EXPECT_TRUE(again->prepared);
  }
}

// A case on a Hopper GPU through the library's interface.
class FusedPreparedOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    DUALGEMM_NEEDS_GPU();
    if (gpu_caps().isas.front() != Isa::kSm90a) GTEST_SKIP() << "needs Hopper";
  }
  static Plan plan_of(const Problem& problem, bool prepared = true) {
    const auto plan =
        make_plan(problem, {.strategy = StrategyId::kFused, .prepared = prepared}, gpu_caps());
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan ? *plan : Plan();
  }
  static PreparedWeights prepared_of(const Plan& plan, const Buffers& buffers) {
    auto made = prepare(plan, buffers);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made ? *std::move(made) : PreparedWeights();
  }
  // D and the workspace stay as they are where `message` is not "ok".
  static void expect_answer(const std::string& message, const Plan& plan, OnGpu& on_gpu,
                            const Buffers& buffers) {
    GuardedDevice workspace(plan.workspace_bytes, 0);
    on_gpu.poison_d();
    const Status status = dualgemm::run(plan, buffers, workspace.data(), plan.workspace_bytes);
    EXPECT_EQ(status.message(), message);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    if (message == "ok") return;
    for (const std::vector<uint8_t>& bytes : {on_gpu.d(), workspace.download()}) {
      EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == kPoison; }))
          << "something was written after: " << message;
    }
  }
};

TEST_F(FusedPreparedOnGpu, OneHandleServesEveryMAndBothTypesOfItsNumberFormat) {
  Rng rng;
  for (const bool bf16 : {false, true}) {
    Problem p{.m = 1, .n = 200, .k = 1296, .l = 2};
    p.a.type = bf16 ? DataType::kBF16 : DataType::kF16;
    p.gate.scale_layout = ScaleLayout::kSwizzled128x4;
    RandomCase weights(p, rng, Values::kRandom);
    PreparedWeights prepared;
    {
      OnGpu source(weights);
      const Plan plan = plan_of(p, false);  // its prepared_bytes are enough
      prepared = prepared_of(plan, source.buffers());
      EXPECT_EQ(prepared.size_bytes(), plan.prepared_bytes);
    }  // the source's memory is gone
    for (const int64_t m : {1, 8, 9, 40, 130}) {
      p.m = m;
      p.a.type = bf16 ? DataType::kBF16 : rng.chance(0.5) ? DataType::kE2M1 : DataType::kF16;
      RandomCase data(p, rng, Values::kRandom);
      for (const auto& [to, from] :
           {std::pair{&data.gate, &weights.gate}, {&data.up, &weights.up}}) {
        std::copy(from->data.begin(), from->data.end(), to->data.begin());
        std::copy(from->scales.begin(), from->scales.end(), to->scales.begin());
      }
      OnGpu on_gpu(data);
      Buffers buffers = without_weights(on_gpu.buffers());
      buffers.prepared = &prepared;
      const Plan plan = plan_of(p);
      SCOPED_TRACE(plan.config() + ", a " + name_of(p.a.type));
      ASSERT_NO_FATAL_FAILURE(expect_answer("ok", plan, on_gpu, buffers));
      on_gpu.download_d(data);
      ASSERT_TRUE(within_bound(p, data.buffers(), plan.isa));
    }
  }
}

TEST_F(FusedPreparedOnGpu, WhatDoesNotFitTogetherIsRefused) {
  Rng rng;
  for (const int64_t m : {3, 40}) {
    Problem p{.m = m, .n = 40, .k = 256};
    p.a.type = DataType::kF16;
    RandomCase data(p, rng, Values::kRandom);
    OnGpu on_gpu(data);
    const Plan plan = plan_of(p), raw = plan_of(p, false);
    PreparedWeights prepared = prepared_of(plan, on_gpu.buffers());
    Buffers buffers = on_gpu.buffers();
    expect_answer("prepared: null; is required: the plan was made with PlanOptions::prepared", plan,
                  on_gpu, buffers);
    buffers.prepared = &prepared;
    expect_answer(
        "prepared: not null; must be null: the plan was made without "
        "PlanOptions::prepared",
        raw, on_gpu, buffers);
    Plan other = plan;
    other.problem.a.type = DataType::kBF16;
    expect_answer(
        "prepared: sm90a_f16 version 2, n 40, k 256, l 1; must be made for the plan's sm90a_bf16 "
        "version 2, n 40, k 256, l 1",
        other, on_gpu, buffers);
    other = plan;
    other.isa = Isa::kSm80;  // whose prepared weights are the same
    expect_answer("plan.kernel: " + other.kernel + "; must be a kernel of fused on sm80", other,
                  on_gpu, buffers);
    other = plan_of({.m = m, .n = 32, .k = 256});
    expect_answer(
        "prepared: sm90a_f16 version 2, n 40, k 256, l 1; must be made for the plan's sm90a_f16 "
        "version 2, n 32, k 256, l 1",
        other, on_gpu, buffers);
    const int here = cuda::current_gpu();
    prepared.impl()->gpu = here + 1;
    expect_answer("prepared: made on GPU " + std::to_string(here + 1) +
                      "; must be made on the current GPU, GPU " + std::to_string(here),
                  plan, on_gpu, buffers);
    const auto on_cpu = make_plan(p, {.strategy = StrategyId::kFused, .prepared = true});
    const PreparedWeights cpu_weights = prepared_of(*on_cpu, data.buffers());
    buffers.prepared = &cpu_weights;
    expect_answer("prepared: made on cpu; must be made on the plan's device, cuda", plan, on_gpu,
                  buffers);
    PreparedWeights good = prepared_of(plan, on_gpu.buffers());
    buffers.prepared = &good;
    expect_answer("ok", plan, on_gpu, buffers);
  }
}

// 1.1 TB of prepared weights, of operands that claim to be as large; nothing comes to read them.
TEST_F(FusedPreparedOnGpu, OutOfMemoryIsAStatus) {
  GuardedDevice memory(4096, 0);
  Buffers buffers;
  buffers.gate = buffers.up = memory.data();
  buffers.gate_scales = buffers.up_scales = memory.data();
  const auto prepared =
      prepare(plan_of({.m = 1, .n = int64_t{1} << 22, .k = int64_t{1} << 18}), buffers);
  EXPECT_EQ(prepared.status().code(), StatusCode::kOutOfMemory) << prepared.status().message();
  EXPECT_EQ(prepared.status().argument(), "prepared weights");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a refused allocation left an error behind";
  memory.check_margins();
}

// prepare() reads nothing before it has checked where the weights lie.
TEST_F(FusedPreparedOnGpu, PrepareChecksItsPointers) {
  Rng rng;
  const Problem p{.m = 3, .n = 40, .k = 256};
  RandomCase data(p, rng, Values::kRandom);
  OnGpu on_gpu(data);
  Buffers buffers = on_gpu.buffers();
  buffers.up_scales = nullptr;
  EXPECT_EQ(prepare(plan_of(p), buffers).status().message(), "up_scales: null; is required");
  Plan edited = plan_of(p);
  edited.strategy = StrategyId::kTwoPass;
  EXPECT_EQ(prepare(edited, on_gpu.buffers()).status().message(),
            "plan.strategy: two_pass; has no weights to prepare");
}

}  // namespace
}  // namespace dualgemm::test
