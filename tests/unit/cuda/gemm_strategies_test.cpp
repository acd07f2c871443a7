// The strategies around plain GEMMs. Without a GPU: what they refuse and what they plan. On one:
// each against the oracle's bound, against each other bit for bit, recorded and on two streams.
#include <gtest/gtest.h>

#include <cmath>

#include "cuda/runtime/cublaslt.hpp"
#include "cuda/runtime/cublaslt_library.hpp"
#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/factors.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

constexpr StrategyId kExactOnes[] = {StrategyId::kTwoPass, StrategyId::kCached, StrategyId::kGraph,
                                     StrategyId::kStreams};
constexpr StrategyId kAll[] = {StrategyId::kTwoPass, StrategyId::kCached, StrategyId::kGraph,
                               StrategyId::kStreams, StrategyId::kFp8};

std::string refusal(StrategyId id, const Problem& problem, int compute_capability = 90) {
  return strategy_of(id).supports(checked(problem), made_up_gpu(compute_capability)).message();
}

TEST(GemmStrategies, RefuseWhatTheyCannotDo) {
  for (const StrategyId id : kAll) {
    EXPECT_EQ(refusal(id, {.m = 1, .n = 1, .k = 16}), "ok");
    EXPECT_EQ(refusal(id, {.m = 1, .n = 1, .k = 16, .grouping = Grouping::kMasked}),
              "grouping: masked; cuBLASLt's GEMMs take none");
    EXPECT_EQ(refusal(id, {.m = 1, .n = 1, .k = 16, .a = {.type = DataType::kF32}}),
              "a.type: f32; must be e2m1, f16 or bf16");
    EXPECT_EQ(refusal(id, {.m = 1, .n = 16, .k = 16, .d = {.type = DataType::kE2M1}}),
              "d.type: e2m1; must be f16, bf16 or f32");
    EXPECT_EQ(refusal(id, {.m = 1, .n = 1, .k = 16, .batch_invariant = true}),
              "batch_invariant: true; cuBLASLt's order of addition depends on m");
    EXPECT_EQ(refusal(id, {.m = int64_t{1} << 31, .n = 1, .k = 16}),
              "m: 2147483648; must be below 2^31 on a GPU");
    EXPECT_EQ(refusal(id, {.m = 1, .n = 1, .k = 16, .l = int64_t{1} << 32}),
              "l: 4294967296; must be below 2^31 on a GPU");
  }
  EXPECT_EQ(refusal(StrategyId::kFp8, {.m = 1, .n = 1, .k = 16}, 80),
            "device: made up GPU; FP8 needs compute capability 8.9");
  EXPECT_EQ(refusal(StrategyId::kTwoPass, {.m = 1, .n = 1, .k = 16}, 80), "ok");
  const Status cpu =
      strategy_of(StrategyId::kCached).supports(checked({.m = 1, .n = 1, .k = 16}), {});
  EXPECT_EQ(cpu.message(), "device: cpu; this strategy runs on a GPU");
}

Expected<Plan> strategy_plan(StrategyId id, const Problem& problem, const PlanOptions& extra = {}) {
  PlanOptions options = extra;
  options.strategy = id;
  return plan::choose(problem, options, made_up_gpu(90), cuda::strategies(), "");
}

TEST(GemmStrategies, PlansSayWhatTheyNeed) {
  constexpr int64_t kGemm = cuda::kGemmWorkspaceBytes;
  const Problem p{.m = 3, .n = 20, .k = 64};  // n is padded to 32
  const int64_t a = 512, product = 512, weights = 2 * 32 * 64 * 2;
  const auto two_pass = strategy_plan(StrategyId::kTwoPass, p);
  ASSERT_TRUE(two_pass.ok()) << two_pass.status().message();
  EXPECT_EQ(two_pass->workspace_bytes, a + weights + 2 * product + kGemm + 256);
  EXPECT_EQ(two_pass->prepared_bytes, 0);
  EXPECT_FALSE(two_pass->prepared);
  EXPECT_EQ(two_pass->isa, Isa::kSm80);
  EXPECT_EQ(two_pass->config(), "cuda_sm80_two_pass_cublaslt_f16");
  EXPECT_NE(two_pass->explain().find("kernel     cublaslt\n"), std::string::npos);
  for (const StrategyId id : {StrategyId::kCached, StrategyId::kGraph}) {
    const auto plan = strategy_plan(id, p);
    ASSERT_TRUE(plan.ok());
    EXPECT_TRUE(plan->prepared);
    EXPECT_EQ(plan->prepared_bytes, 256 + weights);  // behind a header
    EXPECT_EQ(plan->workspace_bytes, a + 2 * product + kGemm + 256);
  }
  const auto streams = strategy_plan(StrategyId::kStreams, p);
  EXPECT_EQ(streams->workspace_bytes, a + weights + 2 * product + 2 * kGemm + 256);
  const auto prepared = strategy_plan(StrategyId::kStreams, p, {.prepared = true});
  EXPECT_EQ(prepared->workspace_bytes, a + 2 * product + 2 * kGemm + 256);
  EXPECT_EQ(prepared->config(), "cuda_sm80_streams_cublaslt_f16_prepared");
  const auto fp8 = strategy_plan(StrategyId::kFp8, p);
  EXPECT_EQ(fp8->prepared_bytes, 256 + weights / 2 + 2 * 256);  // and a scale for each of 32 rows
  EXPECT_FALSE(strategy_plan(StrategyId::kTwoPass, p, {.prepared = true}).ok());
}

// Where tensor cores take NVFP4, its codes and scales are copied into cuBLASLt's layout instead.
TEST(GemmStrategies, BlackwellMultipliesNvfp4AsItIs) {
  const auto plan = [](const Problem& p, StrategyId id = StrategyId::kTwoPass) {
    return *plan::choose(p, {.strategy = id}, made_up_gpu(100), cuda::strategies(), "");
  };
  const Problem p{.m = 3, .n = 20, .k = 64};  // n is padded to 32
  const int64_t weights = 2 * (32 * 32 + 512), a = 256 + 512, products = 2 * 512;
  EXPECT_EQ(plan(p).isa, Isa::kSm100a);
  EXPECT_EQ(plan(p).config(), "cuda_sm100a_two_pass_cublaslt_f16");
  EXPECT_EQ(plan(p).workspace_bytes, a + weights + products + cuda::kGemmWorkspaceBytes + 256);
  EXPECT_EQ(plan(p, StrategyId::kCached).prepared_bytes, 256 + weights);
  Problem other = p;
  other.k = 48;  // rows of 24 bytes
  EXPECT_EQ(plan(other).isa, Isa::kSm80);
  other = p;
  other.l = 2;
  EXPECT_EQ(plan(other).isa, Isa::kSm80);
  other = p;
  other.a.type = DataType::kF16;
  EXPECT_EQ(plan(other).isa, Isa::kSm80);
  EXPECT_EQ(plan(p, StrategyId::kFp8).isa, Isa::kSm80);
}

TEST(GemmStrategies, SixteenBitActivationsAreReadInPlaceWhereTheirRowsAllowIt) {
  const auto copy_bytes = [](int64_t ld, bool unaligned, int64_t l = 1, int64_t batch_stride = 0) {
    constexpr int64_t kProducts = 2 * 256;  // of 2 or 4 rows of 16 columns
    Problem p{.m = 2, .n = 16, .k = 64, .l = l};
    p.a = {.type = DataType::kBF16, .ld = ld, .batch_stride = batch_stride};
    const auto plan = strategy_plan(StrategyId::kCached, p, {.unaligned = unaligned});
    return plan->workspace_bytes - cuda::kGemmWorkspaceBytes - 256 - kProducts;
  };
  EXPECT_EQ(copy_bytes(0, false), 0);
  EXPECT_EQ(copy_bytes(72, false), 0);
  EXPECT_EQ(copy_bytes(68, false), 256);
  EXPECT_EQ(copy_bytes(0, true), 256);
  EXPECT_EQ(copy_bytes(0, false, 2), 0);
  EXPECT_EQ(copy_bytes(0, false, 2, 128 + 4), 512);
}

TEST(CublasLt, AMissingLibraryIsNamed) {
  const char* const missing[] = {"libdualgemm_no_such_library.so.1", "libm.so.6"};
  const auto library = cuda::load_cublaslt(missing);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(library.status().argument(), "cuBLASLt");
  const std::string observed = library.status().observed();
  EXPECT_NE(observed.find("libdualgemm_no_such_library.so.1: cannot open"), std::string::npos)
      << observed;
  EXPECT_NE(observed.find("libm.so.6 lacks cublasLtCreate, "), std::string::npos) << observed;
}

// Edges of everything: one row, one column, tails of 8 and 16, several batches.
Problem random_gemm_problem(Rng& rng) {
  constexpr int64_t kRows[] = {1, 2, 7, 16, 17, 64, 65, 127, 128, 129, 200, 300};
  constexpr int64_t kCols[] = {1, 7, 8, 15, 16, 17, 63, 64, 96, 130};
  constexpr int64_t kDepths[] = {16, 32, 48, 64, 80, 256, 272, 1024};
  Problem p{.m = rng.pick(kRows), .n = rng.pick(kCols), .k = rng.pick(kDepths)};
  p.l = rng.chance(0.25) ? 3 : 1;
  for (Matrix* matrix : {&p.a, &p.gate, &p.up}) {
    if (rng.chance(0.4)) matrix->scale_layout = ScaleLayout::kSwizzled128x4;
    if (rng.chance(0.3)) matrix->ld = p.k + 2 * rng.integer(1, 20);
  }
  constexpr DataType kActivations[] = {DataType::kE2M1, DataType::kE2M1, DataType::kF16,
                                       DataType::kBF16};
  p.a.type = rng.pick(kActivations);
  if (p.a.type != DataType::kE2M1) p.a.scale_layout = ScaleLayout::kLinear;
  constexpr DataType kOutputs[] = {DataType::kF16, DataType::kBF16, DataType::kF32};
  p.d.type = rng.pick(kOutputs);
  if (rng.chance(0.3)) p.d.ld = p.n + rng.integer(1, 9);
  p.act = test::any_activation(rng);
  p.bias = any_bias(rng);
  return p;
}

std::string describe(const Problem& p, StrategyId id) {
  return std::string(name_of(id)) + ": m " + std::to_string(p.m) + " n " + std::to_string(p.n) +
         " k " + std::to_string(p.k) + " l " + std::to_string(p.l) + ", a " + name_of(p.a.type) +
         " ld " + std::to_string(p.a.ld) + ", d " + name_of(p.d.type) + ", " + name_of(p.act.kind) +
         ", bias " + name_of(p.bias);
}

TEST(GemmStrategiesOnGpu, AreWithinTheBoundAndEqual) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (int round = 0; round < 60; ++round) {
    const Problem p = random_gemm_problem(rng);
    RandomCase data(p, rng, rng.chance(0.2) ? Values::kWide : Values::kRandom);
    if (rng.chance(0.5)) add_alphas_and_row_scales(data, rng);
    const bool unaligned = rng.chance(0.3);
    OnGpu on_gpu(data, unaligned ? (p.a.type == DataType::kE2M1 ? 4 : 2) : 0);
    std::vector<uint8_t> first;
    for (const StrategyId id : kExactOnes) {
      SCOPED_TRACE(describe(p, id));
      GpuRun run(p, on_gpu.buffers(), {.strategy = id, .unaligned = unaligned});
      on_gpu.poison_d();
      const Status status = run.run(on_gpu.buffers());
      ASSERT_TRUE(status.ok()) << status.message();
      if (first.empty()) {
        on_gpu.download_d(data);
        ASSERT_TRUE(within_bound(p, data.buffers(), run.info.isa));
        first = on_gpu.d();
      }
      ASSERT_EQ(on_gpu.d(), first) << "not the bits of two_pass";
    }
  }
}

TEST(GemmStrategiesOnGpu, ExactSumsAreEqualToTheOracle) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const int64_t k : {16, 256, 7168}) {
    Problem p{.m = 70, .n = 40, .k = k, .d = {.type = DataType::kF32}};
    p.act.kind = ActivationKind::kIdentity;
    p.bias = any_bias(rng);
    RandomCase data(p, rng, Values::kExact);
    OnGpu on_gpu(data);
    RandomCase* const expected = &data;
    GpuRun run(p, on_gpu.buffers(), {.strategy = StrategyId::kTwoPass});
    ASSERT_TRUE(run.run(on_gpu.buffers()).ok());
    const std::vector<uint8_t> got = on_gpu.d();
    ASSERT_TRUE(reference::dual_gemm(p, expected->buffers()).ok());
    EXPECT_EQ(std::memcmp(got.data(), expected->d.data.data(), got.size()), 0) << "k " << k;
  }
}

TEST(GemmStrategiesOnGpu, Fp8IsNearButNotEqual) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    for (const bool prepared : {false, true}) {
      Problem p{.m = 65, .n = 200, .k = 528, .l = 2, .d = {.type = DataType::kF32}};
      p.a.type = type;
      RandomCase data(p, rng, Values::kRandom);
      add_alphas_and_row_scales(data, rng);
      OnGpu on_gpu(data);
      GpuRun run(p, on_gpu.buffers(), {.strategy = StrategyId::kFp8, .prepared = prepared});
      const Status status = run.run(on_gpu.buffers());
      ASSERT_TRUE(status.ok()) << status.message();
      on_gpu.download_d(data);
      const std::vector<uint8_t> bytes(data.d.data.begin(), data.d.data.end());
      ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
      double error = 0.0, norm = 0.0;
      for (int64_t i = 0; i < p.l * p.m * p.n; ++i) {
        const double got = load_element(bytes.data(), p.d.type, i);
        const double want = load_element(data.d.data.data(), p.d.type, i);
        ASSERT_TRUE(std::isfinite(got)) << "element " << i;
        error += (got - want) * (got - want), norm += want * want;
      }
      const double relative = std::sqrt(error / norm);
      EXPECT_LT(relative, 0.15) << name_of(type);
      EXPECT_GT(relative, 1e-3) << name_of(type) << ": E4M3 has 4 significant bits";
    }
  }
}

TEST(GemmStrategiesOnGpu, ThirtyCallsGiveTheSameBits) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  const Problem p{.m = 48, .n = 512, .k = 4096};
  RandomCase data(p, rng, Values::kRandom);
  OnGpu on_gpu(data);
  for (const StrategyId id : kAll) {
    GpuRun run(p, on_gpu.buffers(), {.strategy = id});
    ASSERT_TRUE(run.run(on_gpu.buffers()).ok()) << name_of(id);
    const std::vector<uint8_t> first = on_gpu.d();
    for (int call = 1; call < 30; ++call) {
      on_gpu.poison_d();
      ASSERT_TRUE(run.run(on_gpu.buffers()).ok());
      ASSERT_EQ(on_gpu.d(), first) << name_of(id) << ", call " << call;
    }
  }
}

// A caller's own stream, and what it records there.
struct Recording {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;

  Recording() { EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess); }
  ~Recording() {
    if (executable != nullptr) static_cast<void>(cudaGraphExecDestroy(executable));
    if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  void begin() {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  void end() {
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  }
  void replay() {
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
};

TEST(GemmStrategiesOnGpu, AreRecordedIntoACallersGraph) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  const Problem p{.m = 33, .n = 96, .k = 512};
  RandomCase data(p, rng, Values::kRandom);
  OnGpu on_gpu(data);
  for (const StrategyId id : kAll) {
    SCOPED_TRACE(name_of(id));
    GpuRun run(p, on_gpu.buffers(), {.strategy = id});
    ASSERT_TRUE(run.run(on_gpu.buffers()).ok());
    const std::vector<uint8_t> direct = on_gpu.d();
    Recording recording;
    recording.begin();
    const Status first = run.enqueue(on_gpu.buffers(), recording.stream);
    const Status second = run.enqueue(on_gpu.buffers(), recording.stream);
    recording.end();
    ASSERT_TRUE(first.ok()) << first.message();
    ASSERT_TRUE(second.ok()) << second.message();
    for (int i = 0; i < 2; ++i) {
      on_gpu.poison_d();
      recording.replay();
      EXPECT_EQ(on_gpu.d(), direct);
    }
    on_gpu.poison_d();
    ASSERT_TRUE(run.run(on_gpu.buffers()).ok()) << "after a recording";
    EXPECT_EQ(on_gpu.d(), direct);
  }
}

// The recorded work reads its arguments' memory anew, and other arguments are other work.
TEST(GemmStrategiesOnGpu, GraphFollowsItsArguments) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  const Problem p{.m = 5, .n = 40, .k = 128, .d = {.type = DataType::kF32}};
  RandomCase data(p, rng, Values::kRandom), other(p, rng, Values::kRandom);
  OnGpu on_gpu(data), other_on_gpu(other);
  GpuRun graph(p, on_gpu.buffers(), {.strategy = StrategyId::kGraph});
  GpuRun cached(p, on_gpu.buffers(), {.strategy = StrategyId::kCached});
  Buffers buffers = on_gpu.buffers();
  for (int call = 0; call < 6; ++call) {
    SCOPED_TRACE(call);
    if (call == 2) buffers.alpha_gate *= 0.5f;
    if (call == 3) buffers.a = other_on_gpu.buffers().a;
    if (call == 4) {  // the same address, another content
      ASSERT_EQ(cudaMemset(const_cast<uint8_t*>(buffers.a_scales), 0x38, 8), cudaSuccess);
    }
    on_gpu.poison_d();
    ASSERT_TRUE(cached.run(buffers).ok());
    const std::vector<uint8_t> expected = on_gpu.d();
    on_gpu.poison_d();
    ASSERT_TRUE(graph.run(buffers).ok());
    EXPECT_EQ(on_gpu.d(), expected);
  }
}

TEST(GemmStrategiesOnGpu, TwoCallersAtOnce) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  const Problem p{.m = 64, .n = 256, .k = 1024};
  RandomCase data[2] = {{p, rng, Values::kRandom}, {p, rng, Values::kRandom}};
  OnGpu on_gpu[2] = {OnGpu(data[0]), OnGpu(data[1])};
  for (const StrategyId id : kAll) {
    GpuRun runs[2] = {{p, on_gpu[0].buffers(), {.strategy = id}},
                      {p, on_gpu[1].buffers(), {.strategy = id}}};
    std::vector<uint8_t> alone[2];
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(runs[i].run(on_gpu[i].buffers()).ok()) << name_of(id);
      alone[i] = on_gpu[i].d();
      on_gpu[i].poison_d();
    }
    Recording streams[2];
    for (int call = 0; call < 10; ++call) {
      for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(runs[i].enqueue(on_gpu[i].buffers(), streams[i].stream).ok());
      }
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(on_gpu[i].d(), alone[i]) << name_of(id);
  }
}

TEST(GemmStrategiesOnGpu, WhatCannotRunWritesNothing) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  Problem p{.m = 4, .n = 16, .k = 64};
  p.a.type = DataType::kF16;
  RandomCase data(p, rng, Values::kRandom);
  OnGpu on_gpu(data, 2);
  GpuRun in_place(p, on_gpu.buffers(), {.strategy = StrategyId::kTwoPass});
  EXPECT_EQ(in_place.run(on_gpu.buffers()).message(),
            "a: address % 16 = 2; must be aligned to 16 bytes, or planned for with "
            "PlanOptions::unaligned");
  GpuRun cached(p, on_gpu.buffers(), {.strategy = StrategyId::kCached, .unaligned = true});
  cached.plan.problem.a.type = DataType::kBF16;  // the weights were prepared for fp16
  Buffers buffers = without_weights(on_gpu.buffers());
  buffers.prepared = &cached.prepared;
  EXPECT_EQ(dualgemm::run(cached.plan, buffers, cached.workspace.data(), cached.workspace.size())
                .message(),
            "prepared: gpu_f16 version 1, n 16, k 64, l 1; must be made for the plan's gpu_bf16 "
            "version 1, n 16, k 64, l 1");
  for (const uint8_t byte : on_gpu.d()) ASSERT_EQ(byte, kPoison);
}

}  // namespace
}  // namespace dualgemm::test
