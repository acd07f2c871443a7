// Bad input through the library's interface: a Status with argument, value and rule, nothing
// launched, nothing written, and the library works on. Without a GPU: what plans refuse.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <vector>

#include "cuda/kernels/sm90a_skinny/config.hpp"
#include "cuda/runtime/pointers.hpp"
#include "dualgemm/dualgemm.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

std::string refusal(const Problem& problem, const PlanOptions& options = {}, int capability = 90) {
  const auto plan = make_plan(problem, options, made_up_gpu(capability));
  return plan.status().message();
}

constexpr int64_t kHuge = int64_t{1} << 62;

TEST(BadInput, PlansRefuseWhatNoGpuCanDo) {
  const Problem good{.m = 1, .n = 16, .k = 64};
  EXPECT_EQ(refusal(good), "ok");
  EXPECT_EQ(refusal(good, {}, 75),
            "device: made up GPU of compute capability 7.5; the CUDA strategies need 8.0 or later");
  EXPECT_EQ(refusal({.m = 1, .n = 16, .k = 72}), "k: 72; must be a multiple of 16");
  EXPECT_EQ(refusal({.m = 1, .n = 16, .k = 0}), "k: 0; must be at least 16");
  EXPECT_EQ(refusal({.m = kHuge, .n = 1, .k = 16}).substr(0, 2), "a:");
  EXPECT_EQ(refusal({.m = 1, .n = kHuge, .k = 64}).substr(0, 5), "gate:");
  EXPECT_EQ(refusal({.m = 1, .n = 16, .k = 64, .l = kHuge}).substr(0, 2), "a:");
  EXPECT_EQ(refusal(good, {.isa = Isa::kSm100a}).substr(0, 11), "isa: sm100a");
  const Problem masked{.m = 1, .n = 16, .k = 64, .l = 2, .grouping = Grouping::kMasked};
  EXPECT_EQ(refusal(masked), "ok");
  EXPECT_EQ(refusal(masked, {.isa = Isa::kSm100a}, 100), "ok");
  EXPECT_EQ(refusal(masked, {.strategy = StrategyId::kFusedSequential}),
            "grouping: masked; on a GPU only the strategy fused takes groups");
  EXPECT_EQ(refusal(masked, {.strategy = StrategyId::kTwoPass}),
            "grouping: masked; cuBLASLt's GEMMs take none");
  EXPECT_EQ(refusal(good, {.strategy = StrategyId::kReference}),
            "strategy: reference; this build does not contain it");
}

TEST(BadInput, ThePlanKeepsWhetherPointersAreTrusted) {
  const Problem p{.m = 1, .n = 16, .k = 64};
  EXPECT_FALSE(make_plan(p, {}, made_up_gpu(90))->trusted_pointers);
  EXPECT_TRUE(make_plan(p, {.trusted_pointers = true}, made_up_gpu(90))->trusted_pointers);
}

TEST(BadInput, APlanForAGpuNeedsOne) {
  if (has_gpu()) return;  // the other tests have their say
  Rng rng;
  const Problem p{.m = 3, .n = 16, .k = 64};
  RandomCase data(p, rng, Values::kRandom);
  const auto plan = make_plan(p, {.strategy = StrategyId::kFused}, made_up_gpu(90));
  ASSERT_TRUE(plan.ok());
  std::vector<uint8_t> workspace(static_cast<size_t>(plan->workspace_bytes));
  const Status status = run(*plan, data.buffers(), workspace.data(), plan->workspace_bytes);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.argument(), "device");
  EXPECT_EQ(status.rule(), "needs an NVIDIA GPU and its driver");
  EXPECT_EQ(prepare(*plan, data.buffers()).status().argument(), "device");
  EXPECT_TRUE(data.d.data.all_bytes(kPoison));
}

// One good call, of which a test spoils something.
struct Call {
  Plan plan;
  Buffers buffers;
  void* workspace;
  int64_t workspace_bytes;
};

// On Hopper the kernel for few rows runs the first of these, which needs no workspace, and the
// wgmma kernel the others, with workspace.
struct Planned {
  const char* name;
  int64_t m;
  bool unaligned;
  bool few_rows;
};
constexpr Planned kPlanned[] = {
    {"FewRows", 5, false, true}, {"FewRowsUnaligned", 5, true, false}, {"Rows40", 40, true, false}};

std::ostream& operator<<(std::ostream& out, const Planned& planned) { return out << planned.name; }

Problem problem_of(const Planned& planned) { return {.m = planned.m, .n = 40, .k = 256}; }
PlanOptions options_of(const Planned& planned) {
  return {.strategy = StrategyId::kFused, .unaligned = planned.unaligned};
}
void assert_kernel(const Planned& planned, const Plan& plan) {
  if (plan.isa != Isa::kSm90a) return;  // the choice is Hopper's
  ASSERT_EQ((plan.kernel == plan::kernel_name(KernelId::kSm90aSkinny)), planned.few_rows)
      << plan.config();
  ASSERT_EQ(plan.workspace_bytes > 0, !planned.few_rows) << plan.config();
}

TEST(BadInput, BothHopperKernelsArePlannedForTheTestsOnGpu) {
  for (const Planned& planned : kPlanned) {
    const auto plan = make_plan(problem_of(planned), options_of(planned), made_up_gpu(90));
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_EQ(plan->isa, Isa::kSm90a);
    ASSERT_NO_FATAL_FAILURE(assert_kernel(planned, *plan));
  }
}

class BadInputOnGpu : public ::testing::TestWithParam<Planned> {
 protected:
  void SetUp() override {
    DUALGEMM_NEEDS_GPU();
    const auto plan = make_plan(problem_, options_of(GetParam()), gpu_caps());
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    plan_ = *plan;
    ASSERT_NO_FATAL_FAILURE(assert_kernel(GetParam(), plan_));
    workspace_ = GuardedDevice(plan_.workspace_bytes, 0);
  }
  Call good() { return {plan_, on_gpu_.buffers(), workspace_.data(), workspace_.size()}; }
  static Status run(const Call& call) {
    return dualgemm::run(call.plan, call.buffers, call.workspace, call.workspace_bytes);
  }
  // The call with `spoil` applied fails with a message that begins so, and neither D nor the
  // workspace is touched.
  void expect_refused(const std::string& message, const std::function<void(Call&)>& spoil) {
    Call call = good();
    spoil(call);
    on_gpu_.poison_d();
    EXPECT_EQ(run(call).message().substr(0, message.size()), message);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << message;
    for (const std::vector<uint8_t>& bytes : {on_gpu_.d(), workspace_.download()}) {
      ASSERT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == kPoison; }))
          << "something was written after: " << message;
    }
  }
  void TearDown() override {
    if (!has_gpu()) return;
    on_gpu_.poison_d();
    EXPECT_TRUE(run(good()).ok()) << "the good call after the bad ones";
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const std::vector<uint8_t> d = on_gpu_.d();
    EXPECT_FALSE(std::all_of(d.begin(), d.end(), [](uint8_t byte) { return byte == kPoison; }));
  }

  Problem problem_ = problem_of(GetParam());
  Rng rng_;
  RandomCase data_{problem_, rng_, Values::kRandom};
  OnGpu on_gpu_ = has_gpu() ? OnGpu(data_) : OnGpu();
  Plan plan_;
  GuardedDevice workspace_;
};

INSTANTIATE_TEST_SUITE_P(Plans, BadInputOnGpu, ::testing::ValuesIn(kPlanned),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(BadInputOnGpu, Pointers) {
  expect_refused("a: null; is required", [](Call& c) { c.buffers.a = nullptr; });
  expect_refused("a_scales: null; is required", [](Call& c) { c.buffers.a_scales = nullptr; });
  expect_refused("gate: null; is required", [](Call& c) { c.buffers.gate = nullptr; });
  expect_refused("up_scales: null; is required", [](Call& c) { c.buffers.up_scales = nullptr; });
  expect_refused("d: null; is required", [](Call& c) { c.buffers.d = nullptr; });
  const auto later = [](const void* address, int bytes) {
    return static_cast<const uint8_t*>(address) + bytes;
  };
  expect_refused("d: address % 2 = 1; must be aligned to 2 bytes",
                 [](Call& c) { c.buffers.d = static_cast<uint8_t*>(c.buffers.d) + 1; });
  expect_refused("a_row_scale: address % 4 = 2; must be aligned to 4 bytes", [&](Call& c) {
    c.buffers.a_row_scale = reinterpret_cast<const float*>(later(c.buffers.a, 2));
  });
  expect_refused("d: overlaps a; must not share bytes with any other operand",
                 [](Call& c) { c.buffers.d = const_cast<void*>(c.buffers.a); });
  expect_refused("d: overlaps up; must not share bytes with any other operand", [](Call& c) {
    c.buffers.d = static_cast<uint8_t*>(const_cast<void*>(c.buffers.up)) + 8;
  });
  int reads_pageable = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&reads_pageable, cudaDevAttrPageableMemoryAccess, 0),
            cudaSuccess);
  if (reads_pageable != 0) return;
  const std::string rule = ": pageable host memory; must be memory of the current GPU, GPU " +
                           std::to_string(cuda::current_gpu());
  const Buffers host = data_.buffers();
  expect_refused("a" + rule, [&](Call& c) { c.buffers.a = host.a; });
  expect_refused("gate_scales" + rule, [&](Call& c) { c.buffers.gate_scales = host.gate_scales; });
  expect_refused("d" + rule, [&](Call& c) { c.buffers.d = host.d; });
  std::vector<float> ones(64, 1.0f);
  expect_refused("a_row_scale" + rule, [&](Call& c) { c.buffers.a_row_scale = ones.data(); });
  for (const bool gate : {false, true}) {
    expect_refused((gate ? "bias_gate" : "bias_up") + rule, [&](Call& c) {
      c.plan.problem.bias = BiasType::kF32;
      c.buffers.bias_gate = gate ? static_cast<const void*>(ones.data()) : c.buffers.gate;
      c.buffers.bias_up = gate ? c.buffers.up : static_cast<const void*>(ones.data());
    });
  }
}

TEST_P(BadInputOnGpu, Workspace) {
  if (plan_.workspace_bytes == 0) {  // null will do
    Call none = good();
    none.workspace = nullptr;
    none.workspace_bytes = 0;
    EXPECT_TRUE(run(none).ok()) << run(none).message();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return;
  }
  const std::string needed = std::to_string(plan_.workspace_bytes);
  expect_refused("workspace_bytes: " + std::to_string(plan_.workspace_bytes - 1) +
                     "; must be at least " + needed,
                 [](Call& c) { c.workspace_bytes -= 1; });
  expect_refused("workspace_bytes: -1; must be at least " + needed,
                 [](Call& c) { c.workspace_bytes = -1; });
  expect_refused("workspace: null; is required", [](Call& c) { c.workspace = nullptr; });
  expect_refused("workspace: address % 64 = 32; must be aligned to 64 bytes",
                 [](Call& c) { c.workspace = static_cast<uint8_t*>(c.workspace) + 32; });
  // Which one is named depends on what lies behind the first.
  expect_refused("workspace: overlaps ", [](Call& c) { c.workspace = c.buffers.d; });
  expect_refused("workspace: overlaps ",
                 [](Call& c) { c.workspace = const_cast<void*>(c.buffers.gate); });
}

TEST_P(BadInputOnGpu, EditedAndForeignPlans) {
  expect_refused("k: 250; must be a multiple of 16", [](Call& c) { c.plan.problem.k = 250; });
  expect_refused("expert_rows: null; is required",
                 [](Call& c) { c.plan.problem.grouping = Grouping::kMasked; });
  const int capability = gpu_caps().compute_capability;
  if (capability != 100 && capability != 103) {
    expect_refused("plan.isa: sm100a; " + gpu_caps().name + " does not offer it: plan for this GPU",
                   [](Call& c) { c.plan.isa = Isa::kSm100a; });
  }
  if (capability / 10 != 12) {
    expect_refused("plan.isa: sm120a; " + gpu_caps().name + " does not offer it: plan for this GPU",
                   [](Call& c) { c.plan.isa = Isa::kSm120a; });
  }
  expect_refused("plan.strategy: reference; this build has no such strategy for cuda",
                 [](Call& c) { c.plan.strategy = StrategyId::kReference; });
  expect_refused("prepared: null; is required: the plan was made with PlanOptions::prepared",
                 [](Call& c) { c.plan.prepared = true; });
  Call huge = good();
  huge.plan.problem.n = kHuge;
  EXPECT_EQ(run(huge).code(), StatusCode::kOverflow);
}

// Also while the caller's stream records a graph, in the mode that forbids the most.
TEST_P(BadInputOnGpu, AGoodCallIsRecordedInTheStrictestMode) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  Call call = good();
  call.buffers.stream = stream;
  on_gpu_.poison_d();
  ASSERT_TRUE(run(call).ok());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const std::vector<uint8_t> bits = on_gpu_.d();
  on_gpu_.poison_d();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  const Status recorded = run(call);
  Call bad = call;
  bad.buffers.d = nullptr;
  const Status refused = run(bad);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess) << recorded.message();
  EXPECT_TRUE(recorded.ok()) << recorded.message();
  EXPECT_EQ(refused.message(), "d: null; is required");
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(on_gpu_.d(), bits);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// More memory than any GPU has: 512 GiB of workspace, 1 TiB of prepared weights. The operands claim
// to be as large, but nothing comes to read them.
TEST_P(BadInputOnGpu, OutOfMemoryIsAStatusAndTheLibraryWorksOn) {
  const Problem many_rows{.m = int64_t{1} << 20, .n = 1, .k = int64_t{1} << 18};
  GuardedDevice memory(many_rows.m * 2 + 4096, 0);  // D, then the beginning of all others
  const uint8_t* const others = memory.data() + many_rows.m * 2;
  Buffers buffers;
  buffers.d = memory.data();
  buffers.a = buffers.gate = buffers.up = others;
  buffers.a_scales = buffers.gate_scales = buffers.up_scales = others;
  const PlanOptions options{.strategy = StrategyId::kFused, .device = DeviceKind::kCuda};
  const auto fused = make_plan(many_rows, options);
  ASSERT_TRUE(fused.ok()) << fused.status().message();
  if (fused->workspace_bytes > 0) {  // the portable kernel takes none
    const Status status = dualgemm::run(many_rows, buffers, options);
    EXPECT_EQ(status.code(), StatusCode::kOutOfMemory) << status.message();
    EXPECT_EQ(status.argument(), "workspace");
  }
  const Problem many_weights{.m = 1, .n = int64_t{1} << 20, .k = int64_t{1} << 18};
  const auto plan = make_plan(many_weights, {.strategy = StrategyId::kCached}, gpu_caps());
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto prepared = prepare(*plan, buffers);
  EXPECT_EQ(prepared.status().code(), StatusCode::kOutOfMemory) << prepared.status().message();
  EXPECT_EQ(prepared.status().argument(), "prepared weights");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a refused allocation left an error behind";
  memory.check_margins();
}  // TearDown() runs the good call

// Without a single GPU of another kind at hand this is made up: the weights say where they lie.
TEST_P(BadInputOnGpu, PreparedWeightsOfAnotherGpu) {
  const auto plan = make_plan(problem_, {.strategy = StrategyId::kCached}, gpu_caps());
  ASSERT_TRUE(plan.ok());
  auto prepared = prepare(*plan, on_gpu_.buffers());
  ASSERT_TRUE(prepared.ok()) << prepared.status().message();
  const int here = cuda::current_gpu();
  EXPECT_EQ(prepared->impl()->gpu, here);
  prepared->impl()->gpu = here + 1;
  GuardedDevice workspace(plan->workspace_bytes, 0);
  Buffers buffers = on_gpu_.buffers();
  buffers.prepared = &*prepared;
  const Status status = dualgemm::run(*plan, buffers, workspace.data(), plan->workspace_bytes);
  EXPECT_EQ(status.message(), "prepared: made on GPU " + std::to_string(here + 1) +
                                  "; must be made on the current GPU, GPU " + std::to_string(here));
}

}  // namespace
}  // namespace dualgemm::test
