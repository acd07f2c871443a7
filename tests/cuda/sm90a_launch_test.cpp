// The sm_90a kernel on a GPU that has wgmma, every instance: random shapes against the oracle's
// bound, exact sums with ==, repeated, recorded and concurrent calls with the same bits. What the
// host decides needs no GPU.
#include <gtest/gtest.h>

#include "cuda/kernels/sm90a/launch.hpp"
#include "cuda/on_gpu.hpp"
#include "cuda/runtime/graph_timer.hpp"
#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"

namespace dualgemm::test {
namespace {

namespace sm90a = cuda::sm90a;
using cuda::KernelLaunch;

bool has_wgmma() { return has_gpu() && gpu_caps().compute_capability == 90; }
#define DUALGEMM_NEEDS_WGMMA() \
  if (!has_wgmma()) GTEST_SKIP() << "no GPU of compute capability 9.0 on this machine"

// One problem on the GPU with one instance, ready to be enqueued again and again.
struct Ready {
  OnGpu device;
  GuardedDevice workspace;
  std::vector<KernelLaunch> launches;
  bool shares_tiles = false;

  Ready(RandomCase& data, const sm90a::Instance& instance, int64_t max_ctas, int64_t shift)
      : device(data, shift) {
    const auto schedule = sm90a::make_schedule(data.problem, instance.config, max_ctas);
    const auto pieces =
        sm90a::plan_workspace(data.resolved, instance.config, schedule, shift % 16 != 0);
    shares_tiles = schedule.shared_blocks != 0;
    workspace = GuardedDevice(pieces.bytes, 64);
    const auto encode = cuda::driver_encode_tiled();
    EXPECT_TRUE(encode.ok());
    auto made = sm90a::build_launches(data.resolved, device.buffers(), pieces, workspace.data(),
                                      instance, schedule, *encode);
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (made) launches = *std::move(made);
  }
  void enqueue(cudaStream_t stream = nullptr) {
    for (const KernelLaunch& launch : launches) {
      const Status status = cuda::enqueue(launch, stream);
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
  std::vector<uint8_t> run() {
    device.poison_d();
    enqueue();
    const Status status = cuda::synchronize(nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    static_cast<void>(workspace.download());  // its margins
    return device.d();
  }
};

// Sizes near the edges of tiles, stages and 16-blocks.
Problem random_problem(Rng& rng, int tokens) {
  const auto edge = [&](int64_t unit, int64_t most) {
    return std::clamp<int64_t>(unit * rng.integer(0, most / unit) + rng.integer(-2, 2), 1, most);
  };
  Problem p{.m = edge(tokens, 300), .n = edge(32, 260), .k = 16 * edge(16, 130)};
  p.l = rng.chance(0.3) ? rng.integer(2, 3) : 1;
  const DataType types[] = {DataType::kE2M1, DataType::kF16, DataType::kBF16};
  p.a.type = types[rng.integer(0, 2)];
  const DataType outputs[] = {DataType::kF16, DataType::kBF16, DataType::kF32};
  p.d.type = outputs[rng.integer(0, 2)];
  p.act.kind = static_cast<ActivationKind>(rng.integer(0, 7));
  for (Matrix* matrix : {&p.a, &p.gate, &p.up}) {
    if (matrix->type == DataType::kE2M1 && rng.chance(0.5))
      matrix->scale_layout = ScaleLayout::kSwizzled128x4;
    if (rng.chance(0.3)) matrix->ld = p.k + 2 * rng.integer(0, 40);
  }
  if (rng.chance(0.3)) p.d.ld = p.n + rng.integer(0, 9);
  return p;
}

TEST(Sm90aOnGpu, RandomShapesLieWithinTheBound) {
  DUALGEMM_NEEDS_WGMMA();
  Rng rng;
  for (const sm90a::Instance& instance : sm90a::instances()) {
    for (int round = 0; round < 12; ++round) {
      Problem p = random_problem(rng, instance.config.tokens);
      if (instance.config.bf16) p.a = {.type = DataType::kBF16};
      if (!instance.config.bf16 && p.a.type == DataType::kBF16) p.a.type = DataType::kF16;
      RandomCase data(p, rng, round % 2 == 0 ? Values::kRandom : Values::kChallenge);
      const int64_t ctas = rng.chance(0.5) ? gpu_caps().num_sms : rng.integer(1, 12);
      const int64_t shift = rng.chance(0.3) ? 2 * rng.integer(0, 20) : 0;
      SCOPED_TRACE(::testing::Message()
                   << instance.entry << ", m " << p.m << " n " << p.n << " k " << p.k << " l "
                   << p.l << ", a " << name_of(p.a.type) << ", d " << name_of(p.d.type) << ", "
                   << name_of(p.act.kind) << ", ctas " << ctas << ", shift " << shift);
      Ready ready(data, instance, ctas, p.d.type == DataType::kF32 ? shift / 4 * 4 : shift);
      const std::vector<uint8_t> got = ready.run();
      std::copy(got.begin(), got.end(), data.d.data.data());
      ASSERT_TRUE(within_bound(p, data.buffers(), Isa::kSm90a));
    }
  }
}

TEST(Sm90aOnGpu, ExactSumsAreTheOraclesBitForBit) {
  DUALGEMM_NEEDS_WGMMA();
  Rng rng;
  for (const sm90a::Instance& instance : sm90a::instances()) {
    Problem p{.m = instance.config.tokens + 3, .n = 200, .k = 1344, .d = {.type = DataType::kF32}};
    p.a.type = instance.config.bf16 ? DataType::kBF16 : DataType::kE2M1;
    p.act.kind = ActivationKind::kIdentity;
    RandomCase data(p, rng, Values::kExact);
    Ready ready(data, instance, 7, 0);
    const std::vector<uint8_t> got = ready.run();
    data.poison_d();
    ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), data.d.data.data())) << instance.entry;
  }
}

// All 16 codes with every finite scale: nothing of the decoding is left out.
TEST(Sm90aOnGpu, EveryCodeAndScale) {
  DUALGEMM_NEEDS_WGMMA();
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    Problem p{.m = 8, .n = 256, .k = 256, .a = {.type = type}, .d = {.type = DataType::kF32}};
    p.act.kind = ActivationKind::kIdentity;
    RandomCase data(p, rng, Values::kWide);
    Ready ready(data, sm90a::choose_instance(p, 132), 132, 0);
    const std::vector<uint8_t> got = ready.run();
    std::copy(got.begin(), got.end(), data.d.data.data());
    EXPECT_TRUE(within_bound(p, data.buffers(), Isa::kSm90a)) << name_of(type);
  }
}

TEST(Sm90aOnGpu, ThirtyCallsAndAGraphGiveTheSameBits) {
  DUALGEMM_NEEDS_WGMMA();
  Rng rng;
  int shared = 0;
  for (const int64_t m : {1, 16, 48, 64, 128, 300, 1024}) {
    Problem p{.m = m, .n = 1600, .k = 4096};
    RandomCase data(p, rng, Values::kRandom);
    Ready ready(data, sm90a::choose_instance(p, gpu_caps().num_sms), gpu_caps().num_sms, 0);
    shared += ready.shares_tiles;
    const std::vector<uint8_t> bits = ready.run();
    for (int call = 0; call < 30; ++call) ASSERT_EQ(ready.run(), bits) << "m " << m;
    ready.device.poison_d();
    const auto seconds = cuda::time_graph(2, 3, [&](void* stream, int) -> Status {
      for (const KernelLaunch& launch : ready.launches)
        DUALGEMM_TRY(cuda::enqueue(launch, static_cast<cudaStream_t>(stream)));
      return {};
    });
    ASSERT_TRUE(seconds.ok()) << seconds.status().message();
    EXPECT_EQ(ready.device.d(), bits) << "m " << m;
  }
  EXPECT_GE(shared, 2) << "no tile was shared between CTAs";
}

TEST(Sm90aOnGpu, TwoStreamsAtOnce) {
  DUALGEMM_NEEDS_WGMMA();
  Rng rng;
  Problem p{.m = 24, .n = 1600, .k = 4096};
  RandomCase data(p, rng, Values::kRandom), other(p, rng, Values::kRandom);
  const sm90a::Instance& instance = sm90a::choose_instance(p, gpu_caps().num_sms);
  Ready first(data, instance, gpu_caps().num_sms, 0),
      second(other, instance, gpu_caps().num_sms, 0);
  const std::vector<uint8_t> first_bits = first.run(), second_bits = second.run();
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) {
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  }
  first.device.poison_d();
  second.device.poison_d();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (int call = 0; call < 20; ++call) {
    first.enqueue(streams[0]);
    second.enqueue(streams[1]);
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(first.device.d(), first_bits);
  EXPECT_EQ(second.device.d(), second_bits);
  for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
}

TEST(Sm90aChoice, PlansForAGpuThatIsNotThere) {
  DeviceCaps caps;
  caps.kind = DeviceKind::kCuda;
  caps.compute_capability = 90;
  caps.isas = cuda::isas_of(90);
  caps.num_sms = 132;
  const auto plan = [&](const Problem& problem) {
    return *plan::choose(problem, {.device = DeviceKind::kCuda}, caps, cuda::strategies(), "");
  };
  const Plan one = plan({.m = 1, .n = 4096, .k = 7168});
  EXPECT_EQ(one.config(), "cuda_sm90a_fused_c128_p4_t8x32x256_s12_f16");
  EXPECT_EQ(one.workspace_bytes, 7168 * 2);  // a, decoded
  const Plan shared = plan({.m = 1, .n = 3072, .k = 7168});
  EXPECT_EQ(shared.ctas, 132);
  EXPECT_GT(shared.workspace_bytes, 7168 * 2 + 132 * 8 * 64 * 4 - 1);  // and partial sums
  EXPECT_EQ(plan({.m = 1, .n = 3072, .k = 7168, .batch_invariant = true}).ctas, 24);  // whole tiles
}

TEST(Sm90aChoice, SchedulesAndRefusals) {
  const auto tokens = [](int64_t m) {
    return sm90a::choose_instance({.m = m, .n = 4096, .k = 7168}, 132).config.tokens;
  };
  EXPECT_EQ(tokens(1), 8);
  EXPECT_EQ(tokens(9), 16);
  EXPECT_EQ(tokens(33), 32);
  EXPECT_EQ(tokens(65), 64);
  EXPECT_EQ(tokens(256), 128);  // 64 tiles of 256 rows would leave half of the SMs idle
  EXPECT_EQ(tokens(4096), 256);
  for (const int64_t ctas : {1, 5, 78, 132}) {  // made again from its own CTAs: the same
    for (const int64_t m : {1, 40, 256, 1024}) {
      const Problem p{.m = m, .n = 3072, .k = 7168};
      const sm90a::Config& config = sm90a::choose_instance(p, 132).config;
      const sm90a::Schedule once = sm90a::make_schedule(p, config, ctas);
      const sm90a::Schedule again = sm90a::make_schedule(p, config, once.ctas);
      EXPECT_EQ(once.ctas, again.ctas);
      EXPECT_EQ(once.whole_tiles, again.whole_tiles);
      EXPECT_EQ(once.shared_blocks, again.shared_blocks);
    }
  }
  EXPECT_EQ(sm90a::supports({.m = 1, .n = 1, .k = 16}).message(), "ok");
  EXPECT_EQ(sm90a::supports({.m = 1, .n = 1, .k = 16, .a = {.type = DataType::kF32}}).message(),
            "a.type: f32; the sm_90a kernel takes e2m1, f16 or bf16");
  EXPECT_EQ(sm90a::supports({.m = 1, .n = 1, .k = 16, .grouping = Grouping::kMasked}).message(),
            "grouping: masked; the sm_90a kernel takes none");
  EXPECT_EQ(sm90a::supports({.m = int64_t{1} << 31, .n = 1, .k = 16}).message(),
            "m: 2147483648; must be below 2^31 on this GPU");
}

}  // namespace
}  // namespace dualgemm::test
