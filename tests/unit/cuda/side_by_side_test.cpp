// Two products side by side by every kernel that runs here, and through linear.hpp: exact inputs
// bit for bit as the oracle has them, random ones within the bound.
#include "support/side_by_side.hpp"

#include "dualgemm/linear.hpp"
#include "unit/cuda/tested_kernel.hpp"

namespace dualgemm::test {
namespace {

const std::vector<DataType> kTypesOfGpus{DataType::kE2M1, DataType::kF16, DataType::kBF16};

TEST_P(EveryKernelOnGpu, WritesBothProductsSideBySide) {
  const TestedKernel& kernel = GetParam();
  Rng rng;
  for (Problem p :
       side_by_side_problems(kernel.a_types, kernel.tile_m, std::max<int64_t>(kernel.tile_n, 16),
                             k_for(kernel, 784), rng)) {
    p.m = rows_for(kernel, p.m);
    p.grouping = Grouping::kNone;
    if (!kernel.suits(p)) continue;
    const int64_t ctas = rng.chance(0.3) ? 5 : 0;
    expect_side_by_side(
        p,
        [&](RandomCase& data) {
          KernelRun(kernel, data, ctas).run(data);
          return ::testing::AssertionSuccess();
        },
        rng);
  }
}

// Through plans, as a caller has it: dense, and groups in every way.
TEST(SideBySideOnGpu, ThroughPlansDenseAndGroups) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const Isa isa : gpu_caps().isas) {
    for (const bool prepared : {false, true}) {
      for (const int64_t tile_m : {8, 16, 64, 300}) {
        for (const Problem& p : side_by_side_problems(kTypesOfGpus, tile_m, 80, 1040, rng)) {
          SCOPED_TRACE(::testing::Message() << name_of(isa) << (prepared ? ", prepared" : ""));
          expect_side_by_side(
              p,
              [&](RandomCase& data) -> ::testing::AssertionResult {
                OnGpu on_gpu(data);
                GpuRun run(data.problem, on_gpu.buffers(),
                           {.strategy = StrategyId::kFused, .isa = isa, .prepared = prepared});
                if (!run.status.ok()) return ::testing::AssertionFailure() << run.status.message();
                const Status status = run.run(on_gpu.buffers());
                if (!status.ok()) return ::testing::AssertionFailure() << status.message();
                on_gpu.download_d(data);
                return ::testing::AssertionSuccess();
              },
              rng);
        }
      }
    }
  }
}

// A product of a user's: W in either layout, halves that overlap, all types of D.
TEST(LinearOnGpu, AsTheCpusWithinTheBound) {
  DUALGEMM_NEEDS_GPU();
  Rng rng;
  for (const int64_t m : {1, 3, 16, 70, 513}) {
    for (const int64_t n : {16, 96, 272, 720}) {
      for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
        LinearProblem linear{.m = m, .n = n, .k = 1024, .bias = any_bias(rng)};
        linear.w.scale_layout = layout;
        linear.d.type = static_cast<DataType>(rng.integer(0, 3));
        linear.residual = linear.d.type != DataType::kE2M1;
        SCOPED_TRACE(::testing::Message() << m << " x " << n << ", " << name_of(layout) << ", d "
                                          << name_of(linear.d.type));
        const Expected<Problem> problem = dual_problem(linear);
        ASSERT_TRUE(problem.ok()) << problem.status().message();
        RandomCase data(*problem, rng, Values::kRandom);
        // One W that holds both halves, as dual_buffers() cuts it.
        data.alpha_up = data.alpha_gate;
        data.poison_d();
        OnGpu on_gpu(data);
        const Status status =
            dualgemm::run(*problem, on_gpu.buffers(), {.device = DeviceKind::kCuda});
        ASSERT_TRUE(status.ok()) << status.message();
        on_gpu.download_d(data);
        EXPECT_TRUE(within_bound(*problem, data.buffers(), reference::Accumulation::kAnyOrder));
        EXPECT_TRUE(others_are_poison(data));
      }
    }
  }
}

TEST(SideBySideOnGpu, OnlyFusedWritesIt) {
  const Problem p{.m = 8, .n = 64, .k = 64, .combine = Combine::kSideBySide, .up_column = 64};
  for (const Strategy* strategy : cuda::strategies()) {
    if (strategy->id() == StrategyId::kFused) continue;
    const Status status = strategy->supports(checked(p), made_up_gpu(90));
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << strategy->name();
    EXPECT_EQ(status.argument(), "combine") << strategy->name();
  }
}

}  // namespace
}  // namespace dualgemm::test
