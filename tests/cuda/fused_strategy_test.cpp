// The fused strategy as a plan chooses it, on the GPU at hand: any problem within the oracle's
// bound, on its best kernels and on the portable ones; repeated and recorded calls with the same
// bits.
#include <gtest/gtest.h>

#include "cuda/on_gpu.hpp"
#include "cuda/runtime/graph_timer.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

Problem random_problem(Rng& rng) {
  constexpr int64_t kRows[] = {1, 2, 7, 8, 9, 16, 17, 31, 33, 63, 64, 65, 127, 129, 200, 257, 300};
  constexpr int64_t kCols[] = {1, 7, 8, 31, 32, 33, 63, 64, 65, 130, 257};
  constexpr int64_t kDepths[] = {16, 32, 48, 64, 240, 256, 272, 1024, 1040};
  constexpr DataType kActivations[] = {DataType::kE2M1, DataType::kE2M1, DataType::kF16,
                                       DataType::kBF16};
  constexpr DataType kOutputs[] = {DataType::kF16, DataType::kBF16, DataType::kF32};
  Problem p{.m = rng.pick(kRows), .n = rng.pick(kCols), .k = rng.pick(kDepths)};
  p.l = rng.chance(0.25) ? 2 : 1;
  p.a.type = rng.pick(kActivations);
  p.d.type = rng.pick(kOutputs);
  p.act.kind = static_cast<ActivationKind>(rng.integer(0, 7));
  p.batch_invariant = rng.chance(0.3);
  for (Matrix* matrix : {&p.a, &p.gate, &p.up}) {
    if (matrix->type == DataType::kE2M1 && rng.chance(0.5)) {
      matrix->scale_layout = ScaleLayout::kSwizzled128x4;
    }
    if (rng.chance(0.3)) matrix->ld = p.k + 2 * rng.integer(1, 20);
  }
  return p;
}

TEST(FusedOnGpu, RandomProblemsLieWithinTheBound) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const Isa isa : {Isa::kAuto, Isa::kSm80}) {
    for (int round = 0; round < 60; ++round) {
      const Problem p = random_problem(rng);
      RandomCase data(p, rng, rng.chance(0.3) ? Values::kWide : Values::kRandom);
      const bool unaligned = rng.chance(0.3);
      OnGpu on_gpu(data, unaligned ? (p.a.type == DataType::kE2M1 ? 1 : 2) : 0);
      GpuRun run(p, on_gpu.buffers(),
                 {.strategy = StrategyId::kFused, .isa = isa, .unaligned = unaligned});
      SCOPED_TRACE(run.plan.config() + ": m " + std::to_string(p.m) + " n " + std::to_string(p.n) +
                   " k " + std::to_string(p.k) + " l " + std::to_string(p.l) + ", a " +
                   name_of(p.a.type) + (unaligned ? ", unaligned" : ""));
      on_gpu.poison_d();
      const Status status = run.run(on_gpu.buffers());
      ASSERT_TRUE(status.ok()) << status.message();
      on_gpu.download_d(data);
      ASSERT_TRUE(within_bound(p, data.buffers(), run.info.isa));
    }
  }
}

// As plans share the work out among all SMs of this GPU.
TEST(FusedOnGpu, ThirtyCallsAndAGraphGiveTheSameBits) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const int64_t m : {1, 16, 48, 64, 128, 300, 1024}) {
    const Problem p{.m = m, .n = 1600, .k = 4096};
    RandomCase data(p, rng, Values::kRandom);
    OnGpu on_gpu(data);
    GpuRun run(p, on_gpu.buffers(), {.strategy = StrategyId::kFused});
    ASSERT_TRUE(run.run(on_gpu.buffers()).ok()) << run.plan.config();
    const std::vector<uint8_t> bits = on_gpu.d();
    for (int call = 1; call < 32; ++call) {
      on_gpu.poison_d();
      ASSERT_TRUE(run.run(on_gpu.buffers()).ok());
      ASSERT_EQ(on_gpu.d(), bits) << run.plan.config() << ", call " << call;
    }
    on_gpu.poison_d();
    const auto seconds = cuda::time_graph(2, 3, [&](void* stream, int) {
      return run.enqueue(on_gpu.buffers(), static_cast<cudaStream_t>(stream));
    });
    ASSERT_TRUE(seconds.ok()) << seconds.status().message();
    EXPECT_EQ(on_gpu.d(), bits) << run.plan.config() << ", replayed";
  }
}

// The bits of a row must not depend on how many rows there are.
TEST(FusedOnGpu, BatchInvariantRowsDoNotDependOnM) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    Problem p{.m = 300, .n = 200, .k = 1296, .a = {.type = type}, .batch_invariant = true};
    RandomCase data(p, rng, Values::kWide);
    OnGpu on_gpu(data);
    GpuRun all(p, on_gpu.buffers(), {.strategy = StrategyId::kFused});
    ASSERT_TRUE(all.run(on_gpu.buffers()).ok());
    const std::vector<uint8_t> bits = on_gpu.d();
    for (const int64_t m : {1, 8, 17, 64, 65, 130, 256}) {
      p.m = m;
      GpuRun some(p, on_gpu.buffers(), {.strategy = StrategyId::kFused});
      on_gpu.poison_d();
      ASSERT_TRUE(some.run(on_gpu.buffers()).ok());
      const std::vector<uint8_t> got = on_gpu.d();
      EXPECT_TRUE(std::equal(got.begin(), got.begin() + m * p.n * 2, bits.begin()))
          << name_of(type) << ", m " << m << ", " << some.plan.config();
      EXPECT_TRUE(std::all_of(got.begin() + m * p.n * 2, got.end(),
                              [](uint8_t byte) { return byte == kPoison; }))
          << "rows beyond m = " << m;
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
