// The choice of a plan, on machines and with strategies that exist only here.
#include "plan/choose.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dualgemm {
namespace {

// Supports and plans what its members say.
class FakeStrategy final : public Strategy {
 public:
  FakeStrategy(StrategyId id, int64_t workspace = 64, int64_t prepared = 0)
      : id_(id), workspace_(workspace), prepared_(prepared) {}

  StrategyId id() const noexcept override { return id_; }
  DeviceKind device() const noexcept override { return DeviceKind::kCpu; }
  Status supports(const core::CheckedProblem& problem, const DeviceCaps&) const override {
    const int64_t m = problem.problem().m;
    if (m <= max_m) return {};
    return Status::unsupported("m", std::to_string(m), "this fake has a limit");
  }
  Status plan(Plan& plan, const DeviceCaps&) const override {
    if (plan.isa == lacks) return Status::unsupported("isa", name_of(plan.isa), "not in this fake");
    plan.workspace_bytes = workspace_;
    plan.prepared_bytes = prepared_;
    plan.kernel = "tile";
    plan.shape.tile_m = 4;
    plan.shape.tile_n = 16;
    plan.shape.tile_k = 512;
    return {};
  }
  const char* how_it_works() const noexcept override { return "not at all"; }
  const char* numerics(const Plan&) const noexcept override { return "nothing is computed"; }
  Preparation preparation(const Plan&) const noexcept override {
    if (must_prepare) return Preparation::kRequired;
    return prepared_ > 0 ? Preparation::kOptional : Preparation::kNone;
  }
  int64_t workspace_bytes(const Plan&) const override { return workspace_; }
  PreparedDescriptor prepared_descriptor(const Plan&) const override { return {}; }
  Status prepare(const Plan&, const core::CheckedProblem&, const Buffers&,
                 uint8_t*) const override {
    return {};
  }
  Status run(const Plan&, const core::CheckedProblem&, const Buffers&, void*,
             RunInfo*) const override {
    return {};
  }

  int64_t max_m = 1000;
  Isa lacks = Isa::kAuto;
  bool must_prepare = false;

 private:
  StrategyId id_;
  int64_t workspace_, prepared_;
};

const FakeStrategy reference{StrategyId::kReference, 0}, two_pass{StrategyId::kTwoPass, 4096},
    fused{StrategyId::kFused, 64, 1000}, fp8{StrategyId::kFp8};
const std::vector<const Strategy*> kAll{&reference, &two_pass, &fused, &fp8};

const Problem kProblem{.m = 8, .n = 32, .k = 64};

DeviceCaps machine(std::vector<Isa> isas) {
  DeviceCaps caps;
  caps.name = "made up";
  caps.isas = std::move(isas);
  caps.cores = 6;
  return caps;
}
const DeviceCaps kAmx = machine({Isa::kAmxBf16, Isa::kAvx512Vnni, Isa::kAvx2, Isa::kScalar});
const DeviceCaps kOld = machine({Isa::kAvx2, Isa::kScalar});

Expected<Plan> choose(const PlanOptions& options, const DeviceCaps& caps = kAmx,
                      const std::string& force = "", const Problem& problem = kProblem,
                      const std::vector<const Strategy*>& strategies = kAll) {
  return plan::choose(problem, options, caps, strategies, force);
}

const Status* reason(const Plan& plan, const std::string& name) {
  for (const RejectedCandidate& candidate : plan.rejected) {
    if (candidate.name == name) return &candidate.reason;
  }
  return nullptr;
}

void expect_error(const Expected<Plan>& plan, StatusCode code, const std::string& argument,
                  const std::string& observed) {
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), code) << plan.status().message();
  EXPECT_EQ(plan.status().argument(), argument) << plan.status().message();
  EXPECT_EQ(plan.status().observed(), observed) << plan.status().message();
}

TEST(Choose, AutoIsFusedOnTheBestIsaWithAllCoresThatPay) {
  const Problem large{.m = 64, .n = 4096, .k = 4096};
  EXPECT_EQ(choose({}, kAmx, "", large)->threads, 6);
  const auto plan = choose({});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->strategy, StrategyId::kFused);
  EXPECT_EQ(plan->device, DeviceKind::kCpu);
  EXPECT_EQ(plan->isa, Isa::kAmxBf16);
  EXPECT_EQ(plan->threads, 1) << "a small call";
  EXPECT_EQ(plan->workspace_bytes, 64);
  EXPECT_EQ(plan->prepared_bytes, 1000);
  EXPECT_EQ(plan->problem, kProblem);
  EXPECT_FALSE(plan->prepared);
}

TEST(Choose, RecordsWhatWasNotChosen) {
  const auto plan = choose({});
  ASSERT_TRUE(plan.ok());
  ASSERT_NE(reason(*plan, "two_pass"), nullptr);
  EXPECT_EQ(reason(*plan, "two_pass")->message(),
            "two_pass: possible, not chosen; needs 4096 bytes of workspace, fused needs 64");
  EXPECT_NE(reason(*plan, "reference"), nullptr);
  EXPECT_EQ(reason(*plan, "fused"), nullptr) << "the chosen one";
}

TEST(Choose, SameInputsSamePlan) {
  const auto first = choose({}), second = choose({});
  EXPECT_EQ(first->explain(), second->explain());
}

TEST(Choose, NamedStrategyAndThreads) {
  const auto plan = choose({.strategy = StrategyId::kTwoPass, .threads = 3}, kOld);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->strategy, StrategyId::kTwoPass);
  EXPECT_EQ(plan->isa, Isa::kAvx2);
  EXPECT_EQ(plan->threads, 3);
}

TEST(Choose, ForcedIsa) {
  EXPECT_EQ(choose({.isa = Isa::kScalar})->isa, Isa::kScalar);
  EXPECT_EQ(choose({}, kAmx, "avx2")->isa, Isa::kAvx2);
  EXPECT_EQ(choose({.isa = Isa::kScalar}, kAmx, "avx2")->isa, Isa::kScalar) << "the option wins";
  EXPECT_EQ(choose({}, kAmx, "auto")->isa, Isa::kAmxBf16);
  expect_error(choose({}, kAmx, "sse9"), StatusCode::kInvalidArgument, "DUALGEMM_FORCE_ISA",
               "\"sse9\"");
  expect_error(choose({}, kOld, "avx512_vnni"), StatusCode::kUnsupported, "DUALGEMM_FORCE_ISA",
               "avx512_vnni");
  expect_error(choose({.isa = Isa::kAmxBf16}, kOld), StatusCode::kUnsupported, "isa", "amx_bf16");
}

TEST(Choose, BatchInvarianceExcludesAmxAndFp8) {
  Problem problem = kProblem;
  problem.batch_invariant = true;
  const auto plan = choose({}, kAmx, "", problem);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->isa, Isa::kAvx512Vnni);
  ASSERT_NE(reason(*plan, "isa:amx_bf16"), nullptr);
  EXPECT_EQ(reason(*plan, "isa:amx_bf16")->observed(), "amx_bf16");
  ASSERT_NE(reason(*plan, "fp8"), nullptr);
  EXPECT_NE(reason(*plan, "fp8")->rule().find("batch_invariant"), std::string::npos);
  expect_error(choose({.isa = Isa::kAmxBf16}, kAmx, "", problem), StatusCode::kUnsupported, "isa",
               "amx_bf16");
  expect_error(choose({.strategy = StrategyId::kFp8}, kAmx, "", problem), StatusCode::kUnsupported,
               "strategy", "fp8");
  EXPECT_TRUE(choose({.strategy = StrategyId::kFp8}).ok()) << "without the promise it may run";
}

TEST(Choose, PairsOfBf16AreForBf16Rows) {
  const DeviceCaps caps = machine({Isa::kAvx512Bf16, Isa::kAvx512Vnni, Isa::kScalar});
  Problem problem = kProblem;
  const auto nvfp4 = choose({}, caps, "", problem);
  EXPECT_EQ(nvfp4->isa, Isa::kAvx512Vnni);
  EXPECT_EQ(reason(*nvfp4, "isa:avx512_bf16")->rule(), "only bf16 activations gain by it");
  problem.a.type = DataType::kBF16;
  EXPECT_EQ(choose({}, caps, "", problem)->isa, Isa::kAvx512Bf16);
  problem.batch_invariant = true;
  const auto invariant = choose({}, caps, "", problem);
  EXPECT_EQ(invariant->isa, Isa::kAvx512Vnni);
  EXPECT_EQ(reason(*invariant, "isa:avx512_bf16")->rule(),
            "batch_invariant excludes it: it adds in another order");
  expect_error(choose({.isa = Isa::kAvx512Bf16}, caps, "", problem), StatusCode::kUnsupported,
               "isa", "avx512_bf16");
}

TEST(Choose, IsaThatTheStrategyLacksIsSkipped) {
  FakeStrategy picky{StrategyId::kFused};
  picky.lacks = Isa::kAmxBf16;
  const auto plan = choose({}, kAmx, "", kProblem, {&reference, &picky});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->strategy, StrategyId::kFused);
  EXPECT_EQ(plan->isa, Isa::kAvx512Vnni);
  EXPECT_EQ(reason(*plan, "isa:amx_bf16")->rule(), "not in this fake");
  expect_error(
      choose({.strategy = StrategyId::kFused, .isa = Isa::kAmxBf16}, kAmx, "", kProblem, {&picky}),
      StatusCode::kUnsupported, "isa", "amx_bf16");
}

TEST(Choose, FallsBackInOrderOfPreference) {
  FakeStrategy small{StrategyId::kFused};
  small.max_m = 4;
  const auto plan = choose({}, kOld, "", kProblem, {&reference, &two_pass, &small});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->strategy, StrategyId::kTwoPass);
  EXPECT_EQ(reason(*plan, "fused")->message(), "m: 8; this fake has a limit");
  expect_error(choose({.strategy = StrategyId::kFused}, kOld, "", kProblem, {&reference, &small}),
               StatusCode::kUnsupported, "m", "8");
  expect_error(choose({}, kOld, "", kProblem, {&small}), StatusCode::kUnsupported, "m", "8");
}

TEST(Choose, AutoNeverTakesALossyStrategy) {
  expect_error(choose({}, kOld, "", kProblem, {&fp8}), StatusCode::kUnsupported, "strategy",
               "auto");
}

TEST(Choose, PreparedNeedsAStrategyThatPrepares) {
  const auto plan = choose({.prepared = true});
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->prepared);
  EXPECT_EQ(reason(*plan, "two_pass")->argument(), "prepared");
  expect_error(choose({.strategy = StrategyId::kTwoPass, .prepared = true}),
               StatusCode::kUnsupported, "prepared", "true");
}

TEST(Choose, RefusesWhatIsNotThere) {
  expect_error(choose({.device = DeviceKind::kCuda}), StatusCode::kUnsupported, "device", "cuda");
  expect_error(choose({.strategy = StrategyId::kStreams}), StatusCode::kUnsupported, "strategy",
               "streams");
}

TEST(Choose, RefusesBrokenOptionsAndProblems) {
  expect_error(choose({.strategy = static_cast<StrategyId>(99)}), StatusCode::kInvalidArgument,
               "strategy", "99");
  expect_error(choose({.device = static_cast<DeviceKind>(3)}), StatusCode::kInvalidArgument,
               "device", "3");
  expect_error(choose({.isa = static_cast<Isa>(-1)}), StatusCode::kInvalidArgument, "isa", "-1");
  expect_error(choose({.threads = -1}), StatusCode::kInvalidArgument, "threads", "-1");
  expect_error(choose({.threads = 1025}), StatusCode::kInvalidArgument, "threads", "1025");
  Problem problem = kProblem;
  problem.k = 40;
  expect_error(choose({}, kAmx, "", problem), StatusCode::kInvalidArgument, "k", "40");
}

TEST(Plan, ConfigNamesEverythingThatMatters) {
  Plan plan = *choose({.threads = 2}, kOld);
  EXPECT_EQ(plan.config(), "cpu_avx2_fused_tile_t4x16_k512_p2");
  plan.kernel = "gemv";
  plan.prepared = true;
  EXPECT_EQ(plan.config(), "cpu_avx2_fused_gemv_t4x16_k512_p2_prepared");
  plan.shape.tile_m = plan.shape.tile_k = 0;
  EXPECT_EQ(plan.config(), "cpu_avx2_fused_p2_prepared");
}

TEST(Plan, ExplainTeaches) {
  Problem problem = kProblem;
  problem.batch_invariant = true;
  const std::string text = choose({.threads = 6}, kAmx, "", problem)->explain();
  for (const char* part :
       {"plan       cpu_avx512_vnni_fused_tile_t4x16_k512_p6\n",
        "D[8 x 32] = silu(alpha_gate A Gate^T) * (alpha_up A Up^T), k = 64\n",
        "A e2m1, weights e2m1, D f16; 0.000 GFLOP on 0.002 MB of weights\n",
        "strategy   fused: not at all\n", "device     cpu, avx512_vnni, 6 threads\n",
        "threads    about 0.000 ms of work for one; each further one needs 0.020 ms",
        "regime     tile",
        "tile       4 rows x (16 columns of Gate + 16 of Up), 512 of k decoded at a time\n",
        "weights    unpacked; prepare()",
        "memory     64 bytes of workspace, 1000 bytes if prepared\n",
        "numerics   nothing is computed\n",
        "not        isa:amx_bf16: isa: amx_bf16; batch_invariant",
        "not        two_pass: possible, not chosen; needs 4096"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  }
}

TEST(Plan, ExplainNamesBatchesAndExperts) {
  Problem problem = kProblem;
  problem.l = 3;
  EXPECT_NE(choose({}, kOld, "", problem)->explain().find(", 3 batches\n"), std::string::npos);
  problem.grouping = Grouping::kMasked;
  EXPECT_NE(choose({}, kOld, "", problem)->explain().find(", 3 experts (masked)\n"),
            std::string::npos);
}

// A strategy that runs on prepared weights only gets them, asked for or not.
TEST(Choose, ThePlanSaysWhatPreparationIs) {
  FakeStrategy cached{StrategyId::kCached, 64, 1000};
  cached.must_prepare = true;
  const auto plan = [&](StrategyId id, bool prepared = false) {
    return choose({.strategy = id, .prepared = prepared}, kOld, "", kProblem,
                  {&two_pass, &fused, &cached});
  };
  EXPECT_EQ(plan(StrategyId::kTwoPass)->preparation, Preparation::kNone);
  EXPECT_EQ(plan(StrategyId::kTwoPass, true).status().message(),
            "prepared: true; two_pass on scalar has no weights to prepare");
  EXPECT_EQ(plan(StrategyId::kFused)->preparation, Preparation::kOptional);
  EXPECT_FALSE(plan(StrategyId::kFused)->prepared);
  EXPECT_TRUE(plan(StrategyId::kFused, true)->prepared);
  EXPECT_EQ(plan(StrategyId::kCached)->preparation, Preparation::kRequired);
  EXPECT_TRUE(plan(StrategyId::kCached)->prepared);
}

// A GPU's strategy and capabilities, made up.
class FakeGpuStrategy final : public Strategy {
 public:
  StrategyId id() const noexcept override { return StrategyId::kFused; }
  DeviceKind device() const noexcept override { return DeviceKind::kCuda; }
  Status supports(const core::CheckedProblem&, const DeviceCaps&) const override { return {}; }
  Status plan(Plan& plan, const DeviceCaps&) const override {
    plan.kernel = "made_up";
    plan.shape.tile_m = 128;
    plan.shape.tile_n = 64;
    plan.shape.tile_k = 256;
    plan.shape.stages = 5;
    return {};
  }
  const char* how_it_works() const noexcept override { return "not at all"; }
  const char* numerics(const Plan&) const noexcept override { return "nothing is computed"; }
  Preparation preparation(const Plan&) const noexcept override { return Preparation::kNone; }
  int64_t workspace_bytes(const Plan&) const override { return 0; }
  PreparedDescriptor prepared_descriptor(const Plan&) const override { return {}; }
  Status prepare(const Plan&, const core::CheckedProblem&, const Buffers&,
                 uint8_t*) const override {
    return {};
  }
  Status run(const Plan&, const core::CheckedProblem&, const Buffers&, void*,
             RunInfo*) const override {
    return {};
  }
};

DeviceCaps gpu(int compute_capability) {
  DeviceCaps caps;
  caps.kind = DeviceKind::kCuda;
  caps.name = "made up GPU";
  caps.compute_capability = compute_capability;
  caps.num_sms = 148;
  if (compute_capability == 100) caps.isas = {Isa::kSm100a};
  return caps;
}

TEST(ChooseOnGpu, RefusesAGpuWithoutSms) {
  const FakeGpuStrategy on_gpu;
  const std::vector<const Strategy*> all{&on_gpu};
  for (const int sms : {0, -1, 65537}) {
    DeviceCaps caps = gpu(100);
    caps.num_sms = sms;
    expect_error(choose({.device = DeviceKind::kCuda}, caps, "", kProblem, all),
                 StatusCode::kInvalidArgument, "caps.num_sms", std::to_string(sms));
  }
}

TEST(ChooseOnGpu, TakesItsOwnStrategiesAndNotTheCpuOnes) {
  const FakeGpuStrategy on_gpu;
  const std::vector<const Strategy*> all{&two_pass, &fused, &on_gpu};
  const auto plan = choose({.device = DeviceKind::kCuda}, gpu(100), "avx2", kProblem, all);
  ASSERT_TRUE(plan.ok()) << plan.status().message();  // the CPU's DUALGEMM_FORCE_ISA is not for it
  EXPECT_EQ(plan->device, DeviceKind::kCuda);
  EXPECT_EQ(plan->config(), "cuda_sm100a_fused_made_up_t128x64x256_s5_f16");
  EXPECT_NE(plan->explain().find("5 stages"), std::string::npos) << plan->explain();
  EXPECT_EQ(choose({}, kOld, "", kProblem, all)->device, DeviceKind::kCpu);
  expect_error(choose({.strategy = StrategyId::kTwoPass, .device = DeviceKind::kCuda}, gpu(100), "",
                      kProblem, all),
               StatusCode::kUnsupported, "strategy", "two_pass");
}

TEST(ChooseOnGpu, RefusesAGpuWithoutKernels) {
  const FakeGpuStrategy on_gpu;
  const auto plan = choose({.device = DeviceKind::kCuda}, gpu(75), "", kProblem, {&on_gpu});
  expect_error(plan, StatusCode::kUnsupported, "device", "made up GPU of compute capability 7.5");
  EXPECT_EQ(plan.status().rule(), "the CUDA strategies need 8.0 or later");
}

}  // namespace
}  // namespace dualgemm
