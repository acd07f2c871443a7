// The sm_80 kernel on a GPU of compute capability 8.0 or later, every instance: random shapes
// against the oracle's bound, exact sums with ==, repeated calls with the same bits. What the host
// decides needs no GPU.
#include <gtest/gtest.h>

#include "cuda/kernels/sm80/launch.hpp"
#include "cuda/on_gpu.hpp"
#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

namespace sm80 = cuda::sm80;

#define DUALGEMM_NEEDS_MMA_SYNC()                       \
  if (!has_gpu() || gpu_caps().compute_capability < 80) \
  GTEST_SKIP() << "no GPU of compute capability 8.0 or later"

std::vector<uint8_t> run(RandomCase& data, int64_t tile_m, int64_t shift = 0) {
  OnGpu device(data, shift);
  device.poison_d();
  const sm80::Instance* const instance =
      sm80::find_instance(data.problem.a.type, tile_m, sm80::Pass::kFused);
  const Status status = cuda::enqueue(
      sm80::build_launch(data.resolved, device.buffers(), nullptr, *instance), nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  const Status done = cuda::synchronize(nullptr);
  EXPECT_TRUE(done.ok()) << done.message();
  return device.d();
}

constexpr DataType kTypesOfA[] = {DataType::kE2M1, DataType::kF16, DataType::kBF16};

TEST(Sm80OnGpu, RandomShapesLieWithinTheBound) {
  DUALGEMM_NEEDS_MMA_SYNC();
  Rng rng;
  for (int round = 0; round < 60; ++round) {
    Problem p{.m = rng.integer(1, 150), .n = rng.integer(1, 90), .k = 16 * rng.integer(1, 60)};
    p.l = rng.chance(0.3) ? 2 : 1;
    p.a.type = kTypesOfA[round % 3];
    const DataType outputs[] = {DataType::kF16, DataType::kBF16, DataType::kF32};
    p.d.type = outputs[rng.integer(0, 2)];
    p.act.kind = static_cast<ActivationKind>(rng.integer(0, 7));
    for (Matrix* matrix : {&p.a, &p.gate, &p.up}) {
      if (matrix->type == DataType::kE2M1 && rng.chance(0.5))
        matrix->scale_layout = ScaleLayout::kSwizzled128x4;
      if (rng.chance(0.3)) matrix->ld = p.k + 2 * rng.integer(0, 40);
    }
    RandomCase data(p, rng, Values::kRandom);
    const int64_t shift = rng.chance(0.3) ? 4 * rng.integer(0, 20) : 0;
    SCOPED_TRACE(::testing::Message() << "m " << p.m << " n " << p.n << " k " << p.k << " l " << p.l
                                      << ", a " << name_of(p.a.type) << ", shift " << shift);
    const std::vector<uint8_t> got = run(data, p.m <= 8 ? 8 : 64, shift);
    std::copy(got.begin(), got.end(), data.d.data.data());
    ASSERT_TRUE(within_bound(p, data.buffers(), Isa::kSm80));
  }
}

TEST(Sm80OnGpu, ExactSumsAreTheOraclesAndNoTileChangesABit) {
  DUALGEMM_NEEDS_MMA_SYNC();
  Rng rng;
  for (const DataType type : kTypesOfA) {
    Problem p{.m = 130, .n = 200, .k = 1344, .a = {.type = type}, .d = {.type = DataType::kF32}};
    p.act.kind = ActivationKind::kIdentity;
    RandomCase data(p, rng, Values::kExact), other(p, rng, Values::kWide);
    const std::vector<uint8_t> got = run(data, 64);
    data.poison_d();
    ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), data.d.data.data())) << name_of(type);
    const std::vector<uint8_t> bits = run(other, 64);
    EXPECT_EQ(bits, run(other, 8)) << name_of(type);
    for (int call = 0; call < 30; ++call) ASSERT_EQ(bits, run(other, 64)) << name_of(type);
    std::copy(bits.begin(), bits.end(), other.d.data.data());
    EXPECT_TRUE(within_bound(p, other.buffers(), Isa::kSm80)) << name_of(type);
  }
}

TEST(Sm80Choice, TilesAndRefusals) {
  for (const auto pass : {sm80::Pass::kFused, sm80::Pass::kSequential, sm80::Pass::kUp}) {
    const auto tile_m = [&](int64_t m) {
      return sm80::tile_m_of(sm80::choose_instance({.m = m, .n = 1, .k = 16}, pass).config);
    };
    EXPECT_EQ(tile_m(8), 8);
    EXPECT_EQ(tile_m(9), 64);
    EXPECT_EQ(sm80::find_instance(DataType::kF16, 16, pass), nullptr);
  }
  EXPECT_EQ(sm80::supports({.m = 1, .n = 1, .k = 16}).message(), "ok");
  EXPECT_EQ(sm80::supports({.m = 1, .n = 1, .k = 16, .a = {.type = DataType::kF32}}).message(),
            "a.type: f32; the sm_80 kernel takes e2m1, f16 or bf16");
  EXPECT_EQ(sm80::supports({.m = 1, .n = 16, .k = 16, .d = {.type = DataType::kE2M1}}).message(),
            "d.type: e2m1; the sm_80 kernel writes f16, bf16 or f32");
  EXPECT_EQ(sm80::supports({.m = 1, .n = 1, .k = 16, .grouping = Grouping::kMasked}).message(),
            "grouping: masked; the sm_80 kernel takes none");
  EXPECT_EQ(sm80::supports({.m = int64_t{1} << 31, .n = 1, .k = 16}).message(),
            "m: 2147483648; must be below 2^31 on this GPU");
  const Problem large{.m = 1 << 20, .n = 1 << 19, .k = 16};
  EXPECT_EQ(sm80::supports(large).message(), "ok");
  EXPECT_EQ(sm80::supports_r1(large).message(),
            "m, n, l: 1048576, 524288, 1; the gate product in FP32 must be at most 2^40 bytes");
  EXPECT_EQ(sm80::r1_bytes({.m = 3, .n = 17, .k = 16, .l = 2}), 3 * 2 * 24 * 4);
}

}  // namespace
}  // namespace dualgemm::test
