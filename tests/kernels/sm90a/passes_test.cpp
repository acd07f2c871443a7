// fused_epilogue and fused_sequential by the wgmma kernel: what lies between Gate's product and the
// epilogue, halves of weights that overlap or begin anywhere, everything that an epilogue does.
#include <algorithm>

#include "cuda/strategies/passes_kernel.hpp"
#include "kernels/simulation/simulation.hpp"
#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/factors.hpp"
#include "support/nvfp4_output.hpp"

namespace dualgemm::test {
namespace {

using cuda::GateProduct;
using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

constexpr GateProduct kBoth[] = {GateProduct::kInMemory, GateProduct::kKept};

const char* name_of(GateProduct gate) {
  return gate == GateProduct::kInMemory ? "R1 in memory" : "sums kept";
}

struct PassesRun {
  GateProduct gate;
  int tile_m = 0;  // 0: what a GPU of `sms` SMs gets
  int sms = 4;
  int64_t misalign = 0;
  size_t launches = 0;  // filled in
};

AssertionResult simulate(RandomCase& data, PassesRun& run) {
  const cuda::PassesKernel& kernel = cuda::passes_kernel_sm90a();
  Plan plan;
  plan.problem = data.problem;
  plan.isa = Isa::kSm90a;
  plan.unaligned = run.misalign % 16 != 0;
  DeviceCaps caps;
  caps.num_sms = run.sms;
  PlanConstraints constraints;
  if (run.tile_m != 0) constraints.tile_m = run.tile_m;
  Status status = kernel.supports(data.problem, run.gate);
  if (status.ok()) status = kernel.plan(plan, run.gate, caps, constraints);
  if (!status.ok()) return AssertionFailure() << status.message();
  Simulation simulation(data, run.misalign);
  void* const workspace = simulation.scratch("workspace", kernel.workspace_bytes(plan, run.gate));
  const auto launches = kernel.launches(plan, run.gate, simulation.buffers(), workspace,
                                        [] { return Expected(simulated_encode_tiled()); });
  if (!launches) {
    return AssertionFailure() << launches.status().message() << "\n" << ptxsim::last_encode_error();
  }
  run.launches = launches->size();
  for (const cuda::KernelLaunch& launch : *launches) {
    if (AssertionResult result = simulation.run(launch, {}); !result) return result;
  }
  simulation.download_d(data);
  return AssertionSuccess();
}

struct PassesCase {
  Problem problem;
  int tile_m = 0;
  int64_t misalign = 0;
};

void expect_passes_right(const PassesCase& c) {
  const Problem& p = c.problem;
  for (const GateProduct gate : kBoth) {
    if (gate == GateProduct::kKept && c.tile_m != 0 && c.tile_m != 64 && c.tile_m != 128) continue;
    if (gate == GateProduct::kKept && p.m <= 8) {
      EXPECT_EQ(cuda::passes_kernel_sm90a().supports(p, gate).argument(), "m");
      continue;
    }
    SCOPED_TRACE(::testing::Message()
                 << name_of(gate) << ", m " << p.m << " n " << p.n << " k " << p.k << " l " << p.l
                 << ", a " << dualgemm::name_of(p.a.type) << ", d " << dualgemm::name_of(p.d.type)
                 << ", " << dualgemm::name_of(p.act.kind) << ", tile_m " << c.tile_m
                 << ", misalign " << c.misalign);
    Rng rng;
    RandomCase data(p, rng, Values::kRandom);
    if (p.l > 1) add_alphas_and_row_scales(data, rng);
    PassesRun run{.gate = gate, .tile_m = c.tile_m, .misalign = c.misalign};
    ASSERT_TRUE(simulate(data, run));
    EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
  }
}

Problem with_scales(Problem p, ScaleLayout gate, ScaleLayout up) {
  p.gate.scale_layout = gate;
  p.up.scale_layout = up;
  return p;
}

// 1 to 31 columns have no first half, 33 one of 16; swizzled scales are cut at 128.
TEST(Sm90aPasses, RaggedRowsAndColumnsInEveryLayout) {
  constexpr ScaleLayout kLinear = ScaleLayout::kLinear, kSwizzled = ScaleLayout::kSwizzled128x4;
  int next = 0;
  for (const int64_t m : {1, 40, 129}) {
    for (const int64_t n : {1, 33, 96, 160, 300}) {
      Problem p{.m = m, .n = n, .k = 272, .a = {.type = kTypesOfA[next % 3]}};
      p.bias = static_cast<BiasType>(next % 3);
      p.d.type = next % 2 == 0 ? DataType::kBF16 : DataType::kF32;
      expect_passes_right({with_scales(p, next % 2 == 0 ? kLinear : kSwizzled,
                                       next % 4 < 2 ? kLinear : kSwizzled)});
      ++next;
    }
  }
}

TEST(Sm90aPasses, EveryTile) {
  for (const int tile_m : {8, 16, 32, 64, 128, 256})
    expect_passes_right({{.m = 70, .n = 200, .k = 1040}, tile_m});
}

TEST(Sm90aPasses, BatchesStridesAndMisalignment) {
  Problem p{.m = 13, .n = 70, .k = 96, .l = 3, .d = {.type = DataType::kF32}};
  p.gate.ld = 128;
  p.up.ld = 104;  // 52 bytes: copied
  p.d.ld = 77;
  p.d.batch_stride = 77 * 14;
  p.gate.batch_stride = 128 * 71;
  p.bias = BiasType::kF32;
  p.bias_stride = 75;
  expect_passes_right({p});
  p.up.ld = 0;
  expect_passes_right({p, 0, 4});
}

TEST(Sm90aPasses, EveryActivation) {
  for (const Activation& act : every_activation()) {
    Problem p{.m = 20, .n = 48, .k = 128};
    p.act = act;
    expect_passes_right({p});
  }
}

TEST(Sm90aPasses, ExactSumsAreTheOracles) {
  for (const GateProduct gate : kBoth) {
    for (const DataType type : {DataType::kE2M1, DataType::kBF16}) {
      Problem p{.m = 70, .n = 136, .k = 1280, .a = {.type = type}};
      p.d.type = DataType::kF32;
      p.act.kind = ActivationKind::kIdentity;
      Rng rng;
      RandomCase data(p, rng, Values::kExact);
      ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
      const std::vector<uint8_t> expected(data.d.data.data(),
                                          data.d.data.data() + data.d.data.size());
      data.poison_d();
      PassesRun run{.gate = gate};
      ASSERT_TRUE(simulate(data, run)) << name_of(gate);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), data.d.data.data()))
          << name_of(gate);
      EXPECT_EQ(run.launches, gate == GateProduct::kInMemory ? 4u : 2u) << "a's preparation each";
    }
  }
}

TEST(Sm90aPasses, Nvfp4OutputIsTheWideOneQuantized) {
  for (const GateProduct gate : kBoth) {
    for (const bool swizzled : {false, true}) {
      const Problem p =
          with_nvfp4_output({.m = 70, .n = 208, .k = 272, .bias = BiasType::kF32}, swizzled, true);
      TwoOutputs both(p);
      both.change([](RandomCase& data) { make_extreme(data, 1); });
      PassesRun run{.gate = gate};
      ASSERT_TRUE(simulate(both.wide, run));
      ASSERT_TRUE(simulate(both.narrow, run));
      EXPECT_TRUE(both.agree()) << name_of(gate);
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
