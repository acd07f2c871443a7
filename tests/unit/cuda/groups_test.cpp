// Groups of experts on a GPU, through the strategy fused: against the oracle, every way that rows
// fall to experts, with counts that change under a recorded graph. Without a GPU: what is planned.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cuda/kernels/sm100a_pair/config.hpp"
#include "cuda/kernels/sm100a_skinny/config.hpp"
#include "cuda/kernels/sm80/config.hpp"
#include "cuda/kernels/sm90a/config.hpp"
#include "cuda/kernels/sm90a_skinny/config.hpp"
#include "cuda/runtime/pointers.hpp"
#include "dualgemm/dualgemm.hpp"
#include "support/factors.hpp"
#include "support/grouped.hpp"
#include "support/nvfp4_output.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

// A kernel for groups, as PlanOptions demand it.
struct GroupKernel {
  const char* name;
  Isa isa;
  int tile_m;
  bool prepared;
};
const GroupKernel kKernels[] = {
    {plan::kernel_name(KernelId::kSm80), Isa::kSm80, 8, false},
    {plan::kernel_name(KernelId::kSm80), Isa::kSm80, 8, true},
    {plan::kernel_name(KernelId::kSm80), Isa::kSm80, 32, false},
    {plan::kernel_name(KernelId::kSm80), Isa::kSm80, 32, true},
    {plan::kernel_name(KernelId::kSm80), Isa::kSm80, 128, false},
    {plan::kernel_name(KernelId::kSm80), Isa::kSm80, 128, true},
    {plan::kernel_name(KernelId::kSm90aSkinny), Isa::kSm90a, 8, false},
    {plan::kernel_name(KernelId::kSm90aSkinny), Isa::kSm90a, 8, true},
    {plan::kernel_name(KernelId::kSm90a), Isa::kSm90a, 16, false},
    {plan::kernel_name(KernelId::kSm90a), Isa::kSm90a, 32, true},
    {plan::kernel_name(KernelId::kSm90a), Isa::kSm90a, 64, false},
    {plan::kernel_name(KernelId::kSm90a), Isa::kSm90a, 128, true},
    {plan::kernel_name(KernelId::kSm90a), Isa::kSm90a, 256, false},
    {plan::kernel_name(KernelId::kSm90a), Isa::kSm90a, 256, true},
    {plan::kernel_name(KernelId::kSm120a), Isa::kSm120a, 8, false},
    {plan::kernel_name(KernelId::kSm120a), Isa::kSm120a, 16, true},
    {plan::kernel_name(KernelId::kSm120a), Isa::kSm120a, 64, true},
    {plan::kernel_name(KernelId::kSm120a), Isa::kSm120a, 128, false},
    {plan::kernel_name(KernelId::kSm120a), Isa::kSm120a, 256, true},
    {plan::kernel_name(KernelId::kSm100aSkinny), Isa::kSm100a, 16, false},
    {plan::kernel_name(KernelId::kSm100aSkinny), Isa::kSm100a, 16, true},
    {plan::kernel_name(KernelId::kSm100aSkinny), Isa::kSm100a, 64, false},
    {plan::kernel_name(KernelId::kSm100aSkinny), Isa::kSm100a, 128, false},
    {plan::kernel_name(KernelId::kSm100aSkinny), Isa::kSm100a, 128, true},
    {plan::kernel_name(KernelId::kSm100aPairPersistent), Isa::kSm100a, 256, false},
    {plan::kernel_name(KernelId::kSm100aPairPersistent), Isa::kSm100a, 256, true},
};

std::ostream& operator<<(std::ostream& out, const GroupKernel& kernel) {
  return out << fmt::format("{}_t{}{}", kernel.name, kernel.tile_m,
                            kernel.prepared ? "_prepared" : "");
}

PlanOptions options_of(const GroupKernel& kernel) {
  return {.strategy = StrategyId::kFused,
          .isa = kernel.isa,
          .prepared = kernel.prepared,
          .config = fmt::format("kernel={},tile_m={}", kernel.name, kernel.tile_m)};
}

class GroupsOnGpu : public ::testing::TestWithParam<GroupKernel> {
 protected:
  void SetUp() override {
    DUALGEMM_NEEDS_GPU();
    const std::vector<Isa>& isas = gpu_caps().isas;
    if (std::find(isas.begin(), isas.end(), GetParam().isa) == isas.end())
      GTEST_SKIP() << "not a kernel of " << gpu_caps().name;
  }
  ::testing::AssertionResult run(RandomCase& data) const {
    OnGpu on_gpu(data);
    GpuRun run(data.problem, on_gpu.buffers(), options_of(GetParam()));
    if (!run.status.ok()) return ::testing::AssertionFailure() << run.status.message();
    const Status status = run.run(on_gpu.buffers());
    if (!status.ok()) return ::testing::AssertionFailure() << status.message();
    on_gpu.download_d(data);
    return ::testing::AssertionSuccess();
  }
  static const std::vector<DataType>& types_of_a() {
    static const std::vector<DataType> all{DataType::kE2M1, DataType::kF16, DataType::kBF16};
    static const std::vector<DataType> codes{DataType::kE2M1};
    const bool multiplies_codes = GetParam().isa == Isa::kSm100a || GetParam().isa == Isa::kSm120a;
    return multiplies_codes ? codes : all;
  }
  // Rows for which the host chooses such a tile, if it has the choice between two.
  Problem usual(Grouping grouping, int64_t experts) const {
    const int64_t rows = GetParam().tile_m;
    return {.m = grouping == Grouping::kContiguous ? rows * experts : rows,
            .n = 200,
            .k = 1024,
            .l = experts,
            .grouping = grouping};
  }
};

TEST_P(GroupsOnGpu, EveryWayThatRowsFallToExperts) {
  Rng rng;
  const SimulateCase simulate = [&](RandomCase& data) { return run(data); };
  for (const GroupedCase& one : grouped_cases(types_of_a(), GetParam().tile_m, 72, 576, rng)) {
    expect_right(one, simulate, rng);
  }
}

TEST_P(GroupsOnGpu, RowsByIndex) {
  if (GetParam().isa == Isa::kSm100a) GTEST_SKIP() << "Blackwell's kernels copy whole tiles of A";
  Rng rng;
  const SimulateCase simulate = [&](RandomCase& data) { return run(data); };
  for (const GroupedCase& one : indexed_cases(types_of_a(), GetParam().tile_m, 72, 576, rng))
    expect_right(one, simulate, rng);
}

// More experts than the table's kernel takes at a time, and tiles for all SMs several times over.
TEST_P(GroupsOnGpu, ManyExpertsAndManyTiles) {
  Rng rng;
  const SimulateCase simulate = [&](RandomCase& data) { return run(data); };
  for (const int64_t experts : {64, 512, 700}) {
    Problem p = usual(Grouping::kContiguous, experts);
    p.m = std::min<int64_t>(p.m, 4000);
    p.n = 64, p.k = 256;
    expect_right({swizzled(p), {}}, simulate, rng);
  }
  expect_right({usual(Grouping::kMasked, 24), {}}, simulate, rng);
}

TEST_P(GroupsOnGpu, WhatCannotBeIsCut) {
  Rng rng;
  for (int round = 0; round < 8; ++round) {
    Problem p{.m = GetParam().tile_m * 4 - 1, .n = 40, .k = 128, .l = 4};
    expect_cut(
        round % 2 == 0 ? swizzled(p) : p, [&](RandomCase& data) { return run(data); }, rng);
  }
}

// Recorded once, replayed with other counts: the grid is the same, the work is not.
TEST_P(GroupsOnGpu, ARecordedGraphFollowsTheCounts) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    SCOPED_TRACE(name_of(grouping));
    const Problem p = usual(grouping, 6);
    RandomCase data(p, rng, Values::kRandom);
    // Every row of A is there, whichever expert gets it.
    data.a.randomize(data.resolved.a, grouping == Grouping::kMasked ? p.l : 1, rng,
                     Values::kRandom);
    OnGpu on_gpu(data);
    GpuRun run(p, on_gpu.buffers(), options_of(GetParam()));
    ASSERT_TRUE(run.status.ok()) << run.status.message();
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_TRUE(run.enqueue(on_gpu.buffers(), stream).ok());
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphExec_t recorded = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&recorded, graph, 0), cudaSuccess);
    for (int round = 0; round < 8; ++round) {
      if (grouping == Grouping::kContiguous) {
        data.expert_offsets = random_expert_offsets(rng, p.l, p.m);
      } else {
        data.expert_rows = random_expert_rows(rng, p.l, p.m);
      }
      on_gpu.upload_experts(data);
      on_gpu.poison_d();
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      ASSERT_EQ(cudaGraphLaunch(recorded, stream), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      on_gpu.download_d(data);
      EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder)) << round;
      EXPECT_TRUE(others_are_poison(data)) << round;
    }
    EXPECT_EQ(cudaGraphExecDestroy(recorded), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
}

// D as NVFP4: the FP32 result of the same kernel quantised, padding included.
TEST_P(GroupsOnGpu, WritesNvfp4AsItsWideOutputQuantized) {
  int next = 0;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    for (const bool swizzled_scales : {false, true}) {
      Problem p = usual(grouping, 7);
      p.n = 208;
      p.a.type = types_of_a()[static_cast<size_t>(next) % types_of_a().size()];
      p = with_nvfp4_output(p, swizzled_scales, false);
      if (!swizzled_scales) p.d.scale_ld = p.n / 16 + 3;
      SCOPED_TRACE(::testing::Message() << "case " << next);
      TwoOutputs both(p, Values::kRandom, static_cast<uint64_t>(next) + 1);
      both.change([next](RandomCase& data) { make_extreme(data, next); });
      ASSERT_TRUE(run(both.wide));
      ASSERT_TRUE(run(both.narrow));
      ASSERT_TRUE(both.agree());
      ++next;
    }
  }
}

// Rows that name their experts, in runs and one by one, and rows of no expert among them.
TEST_P(GroupsOnGpu, RowsNameTheirExperts) {
  Rng rng;
  for (const int64_t m : {1, 64, 700, 1300}) {
    for (const int64_t experts : {1, 5, 60}) {
      Problem p = usual(Grouping::kContiguous, experts);
      p.n = 96, p.k = 512;
      p.a.type = rng.pick(types_of_a());
      // The number of rows decides about the tile: as many as usual for it, and all of one expert
      // or none as it comes.
      p.m = std::max<int64_t>(std::min(p.m, m), 1);
      if (p.a.type == DataType::kE2M1) p = swizzled(p);
      std::vector<int32_t> rows = random_row_experts(rng, experts, p.m);
      if (experts == 5)
        for (size_t row = 0; row < rows.size(); ++row)
          rows[row] = static_cast<int32_t>(row % 6) - 1;
      RandomCase data(p, rng, Values::kRandom, {}, rows);
      ASSERT_TRUE(run(data));
      EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
      EXPECT_TRUE(others_are_poison(data));
    }
  }
}

// Thirty calls one after the other, then two at a time.
TEST_P(GroupsOnGpu, TheSameBitsAgainAndOnTwoStreams) {
  Rng rng;
  RandomCase data(swizzled(usual(Grouping::kContiguous, 16)), rng, Values::kWide);
  add_alphas_and_row_scales(data, rng);
  OnGpu on_gpu[2] = {OnGpu(data), OnGpu(data)};
  GpuRun runs[2] = {GpuRun(data.problem, on_gpu[0].buffers(), options_of(GetParam())),
                    GpuRun(data.problem, on_gpu[1].buffers(), options_of(GetParam()))};
  ASSERT_TRUE(runs[0].run(on_gpu[0].buffers()).ok());
  const std::vector<uint8_t> bits = on_gpu[0].d();
  for (int call = 1; call < 30; ++call) {
    on_gpu[0].poison_d();
    ASSERT_TRUE(runs[0].run(on_gpu[0].buffers()).ok());
    ASSERT_EQ(on_gpu[0].d(), bits) << "call " << call;
  }
  cudaStream_t streams[2] = {};
  for (cudaStream_t& stream : streams)
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 2; ++i) on_gpu[i].poison_d();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (int call = 0; call < 4; ++call) {
      for (int i = 0; i < 2; ++i)
        ASSERT_TRUE(runs[i].enqueue(on_gpu[i].buffers(), streams[i]).ok());
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(on_gpu[i].d(), bits) << "stream " << i;
  }
  for (const cudaStream_t stream : streams) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// Through the library's interface: counts in device memory are not looked at, in host memory they
// are refused.
TEST_P(GroupsOnGpu, ThePublicInterface) {
  Rng rng;
  RandomCase data(usual(Grouping::kMasked, 3), rng, Values::kRandom);
  OnGpu on_gpu(data);
  Buffers buffers = on_gpu.buffers();
  PlanOptions options = options_of(GetParam());
  options.device = DeviceKind::kCuda;
  const Status status = dualgemm::run(data.problem, buffers, options);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  on_gpu.download_d(data);
  EXPECT_TRUE(within_bound(data.problem, data.buffers(), reference::Accumulation::kAnyOrder));
  buffers.expert_rows = nullptr;
  EXPECT_EQ(dualgemm::run(data.problem, buffers, options).message(),
            "expert_rows: null; is required");
  int reads_pageable = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&reads_pageable, cudaDevAttrPageableMemoryAccess, 0),
            cudaSuccess);
  if (reads_pageable != 0) return;
  buffers.expert_rows = data.expert_rows.data();
  EXPECT_EQ(dualgemm::run(data.problem, buffers, options).message(),
            "expert_rows: pageable host memory; must be memory of the current GPU, GPU " +
                std::to_string(cuda::current_gpu()));
}

INSTANTIATE_TEST_SUITE_P(Kernels, GroupsOnGpu, ::testing::ValuesIn(kKernels),
                         [](const auto& info) { return ::testing::PrintToString(info.param); });

TEST(GroupsPlans, EveryKernelIsPlannedForTheTestsOnGpu) {
  for (const GroupKernel& kernel : kKernels) {
    for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
      const Problem p{.m = grouping == Grouping::kMasked ? kernel.tile_m : 8 * kernel.tile_m,
                      .n = 200,
                      .k = 1024,
                      .l = 8,
                      .grouping = grouping};
      const int capability = kernel.isa == Isa::kSm100a   ? 100
                             : kernel.isa == Isa::kSm120a ? 120
                                                          : 90;
      const auto plan = make_plan(p, options_of(kernel), made_up_gpu(capability));
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_EQ(plan->kernel, kernel.name);
      EXPECT_EQ(plan->shape.tile_m, kernel.tile_m);
      // For the table of tiles; the Hopper kernel for few rows needs none for so few.
      const bool finds_tiles =
          kernel.isa == Isa::kSm90a && plan->kernel == plan::kernel_name(KernelId::kSm90aSkinny);
      EXPECT_EQ(plan->workspace_bytes == 0, finds_tiles);
    }
  }
}

TEST(GroupsPlans, FewRowsOfManyExpertsNeedATable) {
  for (const int64_t experts : {1024, 1025}) {
    const Problem p{.m = 8, .n = 200, .k = 1024, .l = experts, .grouping = Grouping::kContiguous};
    const auto plan =
        make_plan(p, {.isa = Isa::kSm90a, .prepared = true, .config = "kernel=skinny,tile_m=8"},
                  made_up_gpu(90));
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan->workspace_bytes == 0, experts == 1024);
  }
}

// The host's choice goes by the rows that experts usually have.
TEST(GroupsPlans, FewRowsOfAnExpertAndMany) {
  const auto config = [](int64_t m, bool prepared, Grouping grouping = Grouping::kContiguous) {
    const Problem p{.m = m, .n = 768, .k = 2048, .l = 128, .grouping = grouping};
    const auto plan =
        make_plan(p, {.device = DeviceKind::kCuda, .prepared = prepared}, made_up_gpu(90));
    return plan.ok() ? plan->kernel + " t" + std::to_string(plan->shape.tile_m)
                     : plan.status().message();
  };
  EXPECT_EQ(config(0, true), "skinny t8");
  EXPECT_EQ(config(5 * 128, true), "skinny t8");
  EXPECT_EQ(config(64, false), "wgmma t16");
  EXPECT_EQ(config(8 * 128, true), "wgmma t16");
  EXPECT_EQ(config(16 * 128, true), "wgmma t32");
  EXPECT_EQ(config(24 * 128, true), "wgmma t32");
  EXPECT_EQ(config(48 * 128, false), "wgmma t64");
  EXPECT_EQ(config(96 * 128, true), "wgmma t128");
  EXPECT_EQ(config(256 * 128, true), "wgmma t128");
  EXPECT_EQ(config(192 * 128, true), "wgmma t128") << "two tiles of 96 columns";
  EXPECT_EQ(config(5, true, Grouping::kMasked), "skinny t8");
  EXPECT_EQ(config(256, false, Grouping::kMasked), "wgmma t128");
}

}  // namespace
}  // namespace dualgemm::test
