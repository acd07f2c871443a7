// The fused strategy as a plan chooses it, on the GPU at hand: any problem within the oracle's
// bound, on its best kernels and on the portable ones, with unpacked and prepared weights;
// repeated and recorded calls with the same bits.
#include <gtest/gtest.h>

#include "cuda/runtime/graph_timer.hpp"
#include "support/bound.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::test {
namespace {

Problem random_fused_problem(Rng& rng) {
  constexpr int64_t kRows[] = {1, 2, 7, 8, 9, 16, 17, 31, 33, 63, 64, 65, 127, 129, 200, 257, 300};
  constexpr int64_t kCols[] = {1, 7, 8, 31, 32, 33, 63, 64, 65, 130, 257};
  constexpr int64_t kDepths[] = {16, 32, 48, 64, 240, 256, 272, 1024, 1040};
  constexpr DataType kActivations[] = {DataType::kE2M1, DataType::kE2M1, DataType::kF16,
                                       DataType::kBF16};
  constexpr DataType kOutputs[] = {DataType::kF16, DataType::kBF16, DataType::kF32,
                                   DataType::kE2M1};
  Problem p{.m = rng.pick(kRows), .n = rng.pick(kCols), .k = rng.pick(kDepths)};
  p.l = rng.chance(0.25) ? 2 : 1;
  p.a.type = rng.pick(kActivations);
  p.d.type = rng.pick(kOutputs);
  if (p.d.type == DataType::kE2M1) {
    p.n = (p.n + 15) / 16 * 16;
    if (rng.chance(0.5)) p.d.scale_layout = ScaleLayout::kSwizzled128x4;
  }
  p.act = test::any_activation(rng);
  p.batch_invariant = rng.chance(0.3);
  for (Matrix* matrix : {&p.a, &p.gate, &p.up}) {
    if (matrix->type == DataType::kE2M1 && rng.chance(0.5)) {
      matrix->scale_layout = ScaleLayout::kSwizzled128x4;
    }
    if (rng.chance(0.3)) matrix->ld = p.k + 2 * rng.integer(1, 20);
  }
  return p;
}

// Whether the kernels of the GPU at hand have something to prepare for every problem here:
// Blackwell's do for A in NVFP4 without groups.
std::vector<bool> kinds_of_weights() {
  if (gpu_caps().isas.front() == Isa::kSm90a) return {false, true};
  return {false};
}

TEST(FusedOnGpu, RandomProblemsLieWithinTheBound) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const Isa isa : {Isa::kAuto, Isa::kSm80}) {
    for (int round = 0; round < 60; ++round) {
      const Problem p = random_fused_problem(rng);
      RandomCase data(p, rng, rng.chance(0.3) ? Values::kWide : Values::kRandom);
      const bool unaligned = rng.chance(0.3);
      const bool prepared = isa == Isa::kAuto && round % 2 == 1 && kinds_of_weights().back();
      Shifts shifts = Shifts::all(unaligned ? (p.a.type == DataType::kE2M1 ? 1 : 2) : 0);
      if (prepared) shifts.weights = rng.integer(0, 20);
      OnGpu on_gpu(data, shifts);
      GpuRun run(p, on_gpu.buffers(),
                 {.strategy = StrategyId::kFused,
                  .isa = isa,
                  .prepared = prepared,
                  .unaligned = unaligned});
      ASSERT_TRUE(run.status.ok()) << run.status.message();
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

void expect_the_same_bits(GpuRun& run, OnGpu& on_gpu) {
  SCOPED_TRACE(run.plan.config());
  const Status first = run.run(on_gpu.buffers());
  ASSERT_TRUE(first.ok()) << first.message();
  const std::vector<uint8_t> bits = on_gpu.d();
  for (int call = 1; call < 32; ++call) {
    on_gpu.poison_d();
    ASSERT_TRUE(run.run(on_gpu.buffers()).ok());
    ASSERT_EQ(on_gpu.d(), bits) << "call " << call;
  }
  on_gpu.poison_d();
  const auto seconds = cuda::time_graph(2, 3, [&](void* stream, int) {
    return run.enqueue(on_gpu.buffers(), static_cast<cudaStream_t>(stream));
  });
  ASSERT_TRUE(seconds.ok()) << seconds.status().message();
  EXPECT_EQ(on_gpu.d(), bits) << "replayed";
}

// As plans share the work out among all SMs of this GPU.
TEST(FusedOnGpu, ThirtyCallsAndAGraphGiveTheSameBits) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const int64_t m : {1, 16, 48, 64, 128, 300, 1024}) {
    const Problem p{.m = m, .n = 1600, .k = 4096};
    RandomCase data(p, rng, Values::kRandom);
    OnGpu on_gpu(data);
    for (const bool prepared : kinds_of_weights()) {
      GpuRun run(p, on_gpu.buffers(), {.strategy = StrategyId::kFused, .prepared = prepared});
      ASSERT_NO_FATAL_FAILURE(expect_the_same_bits(run, on_gpu));
    }
  }
}

// The first rows of `p`, whose D is on the GPU, alone.
void expect_rows_alone_the_same(Problem p, OnGpu& on_gpu, bool prepared) {
  const PlanOptions options{.strategy = StrategyId::kFused, .prepared = prepared};
  GpuRun all(p, on_gpu.buffers(), options);
  ASSERT_TRUE(all.run(on_gpu.buffers()).ok());
  const std::vector<uint8_t> bits = on_gpu.d();
  for (const int64_t m : {1, 8, 17, 64, 65, 130, 256}) {
    p.m = m;
    GpuRun some(p, on_gpu.buffers(), options);
    on_gpu.poison_d();
    ASSERT_TRUE(some.run(on_gpu.buffers()).ok());
    const std::vector<uint8_t> got = on_gpu.d();
    EXPECT_TRUE(std::equal(got.begin(), got.begin() + m * p.n * 2, bits.begin()))
        << "m " << m << ", " << some.plan.config();
    EXPECT_TRUE(std::all_of(got.begin() + m * p.n * 2, got.end(),
                            [](uint8_t byte) { return byte == kPoison; }))
        << "rows beyond m = " << m;
  }
}

// The bits of a row must not depend on how many rows there are.
TEST(FusedOnGpu, BatchInvariantRowsDoNotDependOnM) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    SCOPED_TRACE(name_of(type));
    const Problem p{.m = 300, .n = 200, .k = 1296, .a = {.type = type}, .batch_invariant = true};
    RandomCase data(p, rng, Values::kWide);
    OnGpu on_gpu(data);
    for (const bool prepared : kinds_of_weights())
      ASSERT_NO_FATAL_FAILURE(expect_rows_alone_the_same(p, on_gpu, prepared));
  }
}

}  // namespace
}  // namespace dualgemm::test
