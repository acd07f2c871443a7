// The C++ face: versions, plans from the environment, and everything that run() refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/enum_table.hpp"
#include "dualgemm/dualgemm.hpp"
#include "plan/strategy.hpp"
#include "support/bound.hpp"
#include "support/inputs.hpp"

namespace dualgemm {
namespace {

using test::Guarded;
using test::RandomCase;
using test::Rng;
using test::Values;

// DUALGEMM_FORCE_ISA for one scope.
class ForceIsa {
 public:
  explicit ForceIsa(const char* value) { setenv("DUALGEMM_FORCE_ISA", value, 1); }
  ~ForceIsa() { unsetenv("DUALGEMM_FORCE_ISA"); }
};

const Problem kProblem{.m = 5, .n = 48, .k = 64};

TEST(Api, Version) {
  EXPECT_TRUE(std::regex_match(version(), std::regex("[0-9]+\\.[0-9]+\\.[0-9]+"))) << version();
}

TEST(Api, DeviceCapsAreDetectedOnce) {
  EXPECT_EQ(&device_caps(), &device_caps());
  EXPECT_EQ(device_caps().isas.back(), Isa::kScalar);
}

TEST(Api, StrategiesAreUniqueAndStartWithTheOracle) {
  const std::vector<StrategyId> all = all_strategies();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0], StrategyId::kReference);
  EXPECT_EQ(std::set<StrategyId>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(std::count(all.begin(), all.end(), StrategyId::kAuto), 0);
}

TEST(Api, ForcedIsaIsReadForEveryPlan) {
  unsetenv("DUALGEMM_FORCE_ISA");
  const std::vector<Isa>& isas = device_caps().isas;  // pairs of bf16 are not for NVFP4 rows
  EXPECT_EQ(make_plan(kProblem)->isa, isas[isas[0] == Isa::kAvx512Bf16 ? 1 : 0]);
  {
    const ForceIsa force("scalar");
    EXPECT_EQ(make_plan(kProblem)->isa, Isa::kScalar);
  }
  {
    const ForceIsa force("");
    EXPECT_TRUE(make_plan(kProblem).ok()) << "empty is not set";
  }
  const ForceIsa force("mmx");
  const auto plan = make_plan(kProblem);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument);
  std::string names;
  for (const auto& row : core::kEnumRows<Isa>)
    names += std::string(names.empty() ? "" : ", ") + row.name;
  EXPECT_EQ(plan.status().message(), "DUALGEMM_FORCE_ISA: \"mmx\"; must be one of " + names);
}

// A test of the forcing itself: the kernel reports what ran.
TEST(Api, ForcedIsaIsTheOneThatRuns) {
  for (const Isa isa : device_caps().isas) {
    const ForceIsa force(name_of(isa));
    Rng rng;
    RandomCase data(kProblem, rng, Values::kRandom);
    RunInfo info;
    const Status status = run(kProblem, data.buffers(), {}, &info);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(info.isa, isa);
    EXPECT_TRUE(test::within_bound(kProblem, data.buffers(), isa));
  }
}

TEST(Api, PlansForOtherMachinesAreMadeButNotRun) {
  DeviceCaps caps;
  caps.isas = {Isa::kScalar};
  caps.cores = 64;
  const auto plan = make_plan(kProblem, {}, caps);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->isa, Isa::kScalar);
  const Problem large{.m = 64, .n = 4096, .k = 4096};
  EXPECT_EQ(make_plan(large, {}, caps)->threads, 64);

#if defined(__aarch64__)
  constexpr Isa kOfThisBuild[] = {Isa::kNeonI8mm, Isa::kNeon};
  constexpr Isa kOfOthers[] = {Isa::kAmxBf16, Isa::kAvx512Bf16, Isa::kAvx512Vnni, Isa::kAvx2};
#else
  constexpr Isa kOfThisBuild[] = {Isa::kAmxBf16, Isa::kAvx512Bf16, Isa::kAvx512Vnni, Isa::kAvx2};
  constexpr Isa kOfOthers[] = {Isa::kNeonI8mm, Isa::kNeon};
#endif
  for (const Isa isa : kOfOthers) {  // nor by the oracle, unasked
    caps.isas = {isa, Isa::kScalar};
    const auto refused = make_plan(kProblem, {.isa = isa}, caps);
    ASSERT_FALSE(refused.ok()) << name_of(isa) << " " << name_of(refused->strategy);
    EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(refused.status().argument(), "isa");
    EXPECT_EQ(make_plan(kProblem, {}, caps)->isa, Isa::kScalar) << "it is left to choose";
  }
  for (const Isa isa : kOfThisBuild) {
    const auto& isas = device_caps().isas;
    if (std::find(isas.begin(), isas.end(), isa) != isas.end()) continue;
    caps.isas = {isa, Isa::kScalar};
    const auto foreign = make_plan(kProblem, {.isa = isa}, caps);
    ASSERT_TRUE(foreign.ok()) << foreign.status().message();
    Rng rng;
    RandomCase data(kProblem, rng, Values::kRandom);
    Guarded<uint8_t> workspace(foreign->workspace_bytes);
    const Status status = run(*foreign, data.buffers(), workspace.data(), workspace.size_bytes());
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << "it would be an illegal instruction";
    EXPECT_EQ(status.argument(), "plan.isa");
    EXPECT_TRUE(data.d.data.all_bytes(test::kPoison));
  }
}

// One plan and its data; every refusal must leave D alone.
struct Refusal : ::testing::Test {
  Rng rng;
  Plan plan = *make_plan(kProblem);
  RandomCase data{kProblem, rng, Values::kRandom};
  Buffers buffers = data.buffers();
  Guarded<uint8_t> workspace{plan.workspace_bytes + 64};

  void expect(const Status& status, StatusCode code, const std::string& argument) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_EQ(status.argument(), argument) << status.message();
    EXPECT_TRUE(data.d.data.all_bytes(test::kPoison)) << "something was written";
  }
  Status try_run(void* memory, int64_t bytes) { return run(plan, buffers, memory, bytes); }
};

TEST_F(Refusal, Workspace) {
  ASSERT_GT(plan.workspace_bytes, 0);
  expect(try_run(workspace.data(), plan.workspace_bytes - 1), StatusCode::kWorkspaceTooSmall,
         "workspace_bytes");
  expect(try_run(workspace.data(), -1), StatusCode::kWorkspaceTooSmall, "workspace_bytes");
  expect(try_run(nullptr, plan.workspace_bytes), StatusCode::kInvalidArgument, "workspace");
  expect(try_run(workspace.data() + 32, plan.workspace_bytes), StatusCode::kInvalidArgument,
         "workspace");
  plan.workspace_bytes = 0;  // an edited plan does not shrink what the strategy needs
  expect(try_run(workspace.data(), 0), StatusCode::kWorkspaceTooSmall, "workspace_bytes");
}

TEST_F(Refusal, EditedPlans) {
  const Plan good = plan;
  plan.threads = 0;
  expect(try_run(workspace.data(), workspace.size()), StatusCode::kInvalidArgument, "plan.threads");
  plan = good;
  plan.device = DeviceKind::kCuda;  // host memory: never to be given to a GPU's kernel
  EXPECT_EQ(try_run(workspace.data(), workspace.size()).code(), StatusCode::kUnsupported);
  EXPECT_TRUE(data.d.data.all_bytes(test::kPoison));
  plan = good;
  plan.isa = Isa::kAuto;
  expect(try_run(workspace.data(), workspace.size()), StatusCode::kUnsupported, "plan.isa");
  plan = good;
  plan.problem.k = 40;
  expect(try_run(workspace.data(), workspace.size()), StatusCode::kInvalidArgument, "k");
}

TEST_F(Refusal, Buffers) {
  buffers.a = nullptr;
  expect(try_run(workspace.data(), workspace.size()), StatusCode::kInvalidArgument, "a");
  expect(run(kProblem, buffers), StatusCode::kInvalidArgument, "a");
  buffers = data.buffers();
  buffers.up_scales = static_cast<const uint8_t*>(buffers.d);
  expect(run(kProblem, buffers), StatusCode::kInvalidArgument, "d");
}

TEST_F(Refusal, PreparedWeightsOfAnotherPlan) {
  const PreparedWeights empty;
  buffers.prepared = &empty;
  expect(try_run(workspace.data(), workspace.size()), StatusCode::kInvalidArgument, "prepared");

  buffers.prepared = nullptr;
  plan = *make_plan(kProblem, {.prepared = true});
  workspace = Guarded<uint8_t>(plan.workspace_bytes);
  expect(try_run(workspace.data(), workspace.size()), StatusCode::kInvalidArgument, "prepared");
  buffers.prepared = &empty;
  expect(try_run(workspace.data(), workspace.size()), StatusCode::kInvalidArgument, "prepared");

  Problem wider = kProblem;
  wider.n += 16;
  RandomCase other(wider, rng, Values::kRandom);
  const auto prepared = prepare(*make_plan(wider, {.prepared = true}), other.buffers());
  ASSERT_TRUE(prepared.ok()) << prepared.status().message();
  buffers.prepared = &*prepared;
  expect(try_run(workspace.data(), workspace.size()), StatusCode::kInvalidArgument, "prepared");
}

// Made up: the weights say that they lie on a GPU.
TEST_F(Refusal, PreparedWeightsOfAnotherKindOfDevice) {
  plan = *make_plan(kProblem, {.prepared = true});
  workspace = Guarded<uint8_t>(plan.workspace_bytes);
  auto prepared = prepare(plan, buffers);
  ASSERT_TRUE(prepared.ok()) << prepared.status().message();
  prepared->impl()->view.descriptor.format = PreparedFormat::kGpuF16;
  buffers.prepared = &*prepared;
  const Status status = try_run(workspace.data(), workspace.size());
  expect(status, StatusCode::kInvalidArgument, "prepared");
  EXPECT_EQ(status.message(), "prepared: made on cuda; must be made on the plan's device, cpu");
}

TEST_F(Refusal, Prepare) {
  const Plan oracle = *make_plan(kProblem, {.strategy = StrategyId::kReference});
  EXPECT_EQ(prepare(oracle, buffers).status().code(), StatusCode::kUnsupported);
  plan = *make_plan(kProblem, {.prepared = true});
  for (const uint8_t* Buffers::*scales : {&Buffers::gate_scales, &Buffers::up_scales}) {
    Buffers broken = buffers;
    broken.*scales = nullptr;
    EXPECT_EQ(prepare(plan, broken).status().observed(), "null");
  }
}

TEST(Api, PreparedWeightsOutliveTheRawOnes) {
  Rng rng;
  RandomCase data(kProblem, rng, Values::kRandom);
  const Plan plan = *make_plan(kProblem, {.prepared = true});
  auto prepared = prepare(plan, data.buffers());
  ASSERT_TRUE(prepared.ok()) << prepared.status().message();
  EXPECT_FALSE(prepared->empty());
  EXPECT_EQ(prepared->size_bytes(), plan.prepared_bytes);
  const PreparedWeights moved = *std::move(prepared);

  Buffers buffers = test::without_weights(data.buffers());
  buffers.prepared = &moved;
  for (const int64_t m : {int64_t{1}, kProblem.m}) {  // m and isa may differ from the plan's
    for (const Isa isa : device_caps().isas) {
      Problem problem = kProblem;
      problem.m = m;
      data.poison_d();
      RunInfo info;
      const Status status = run(problem, buffers, {.isa = isa, .prepared = true}, &info);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(info.isa, isa);
      Buffers raw = data.buffers();
      EXPECT_TRUE(test::within_bound(problem, raw, isa));
    }
  }
}

TEST(Api, NoTokensNothingHappens) {
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    Problem problem = kProblem;
    problem.m = 0;
    problem.l = 2;
    problem.grouping = grouping;
    Rng rng;
    RandomCase data(
        problem, rng, Values::kRandom,
        grouping == Grouping::kMasked ? std::vector<int32_t>{0, 0} : std::vector<int32_t>{0, 0, 0});
    RunInfo info;
    const Status status = run(problem, data.buffers(), {}, &info);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(info.threads, 0);
  }
}

TEST(Api, OnePlanServesManyThreads) {
  Problem problem{.m = 40, .n = 64, .k = 128};
  const Plan plan = *make_plan(problem, {.threads = 2});
  Rng rng;
  RandomCase data(problem, rng, Values::kRandom);
  const int64_t d_bytes = data.d.data.size();
  std::vector<Guarded<uint8_t>> outputs, workspaces;
  for (int i = 0; i < 4; ++i) {
    outputs.emplace_back(d_bytes);
    workspaces.emplace_back(plan.workspace_bytes);
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Buffers buffers = data.buffers();
      buffers.d = outputs[i].data();
      for (int round = 0; round < 5; ++round) {
        EXPECT_TRUE(run(plan, buffers, workspaces[i].data(), plan.workspace_bytes).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(run(problem, data.buffers()).ok());
  for (const auto& output : outputs) {
    EXPECT_EQ(std::memcmp(output.data(), data.d.data.data(), static_cast<size_t>(d_bytes)), 0);
  }
}

}  // namespace
}  // namespace dualgemm
