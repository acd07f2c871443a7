// Every compiled kernel on a GPU: random problems near the edges of its tiles against the oracle's
// bound, exact sums with ==, and the same bits in repeated, recorded and concurrent calls.
#include <gtest/gtest.h>

#include "cuda/runtime/graph_timer.hpp"
#include "reference/dual_gemm.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/factors.hpp"
#include "unit/cuda/tested_kernel.hpp"

namespace dualgemm::test {
namespace {

constexpr DataType kOutputs[] = {DataType::kF16, DataType::kBF16, DataType::kF32};

// Within 2 of a multiple of `unit`, at least 1, at most about `most`.
int64_t near_multiple(Rng& rng, int64_t unit, int64_t most) {
  return std::clamp<int64_t>(unit * rng.integer(0, most / unit) + rng.integer(-2, 2), 1, most);
}

// Gaps between rows, scale rows and batches, which RandomCase fills with poison.
void add_strides(Problem& p, Rng& rng, const TestedKernel& kernel) {
  for (auto [matrix, rows] : {std::pair{&p.a, p.m}, {&p.gate, p.n}, {&p.up, p.n}}) {
    // Elements and scales by which codes lie at multiples of 16 bytes and scales at multiples of 4.
    const bool any = matrix == &p.a ? kernel.any_alignment : kernel.any_weights();
    const int64_t step = any ? 2 : 32, scale_step = any ? 1 : 4;
    const auto even = [&](int64_t most) { return step * rng.integer(0, (most + step - 1) / step); };
    const bool packed = matrix->type == DataType::kE2M1;
    if (packed && rng.chance(0.5)) matrix->scale_layout = ScaleLayout::kSwizzled128x4;
    if (rng.chance(0.4)) matrix->ld = p.k + even(80);
    if (packed && matrix->scale_layout == ScaleLayout::kLinear && rng.chance(0.3)) {
      matrix->scale_ld = p.k / 16 + scale_step * rng.integer(0, 20 / scale_step);
    }
    if (rng.chance(0.3)) {
      matrix->batch_stride = rows * std::max(matrix->ld, p.k) + even(64);
    }
    if (packed && rng.chance(0.3)) {  // beyond the tight one, which the layout decides
      const core::ResolvedProblem tight = core::resolve(p);
      const core::ResolvedMatrix& resolved = matrix == &p.a      ? tight.a
                                             : matrix == &p.gate ? tight.gate
                                                                 : tight.up;
      matrix->scale_batch_stride =
          resolved.scale_batch_stride + scale_step * rng.integer(0, 40 / scale_step);
    }
  }
  if (rng.chance(0.4)) p.d.ld = p.n + rng.integer(0, 9);
  if (rng.chance(0.3)) p.d.batch_stride = p.m * std::max(p.d.ld, p.n) + rng.integer(0, 40);
}

// Where a kernel for few rows splits k among its warps, a warp takes several k-tiles only
// in a long k: 28 k-tiles of 256 for 16 warps, and 32 and a part of one.
constexpr int64_t kLongK[] = {7168, 8192 + 192};

bool is_for_few_rows(const TestedKernel& kernel) { return kernel.most_m <= 16; }

// The k to test at: `usual`, and the long ones where they are cheap.
std::vector<int64_t> ks_for(const TestedKernel& kernel, int64_t usual) {
  std::vector<int64_t> ks{k_for(kernel, usual)};
  if (is_for_few_rows(kernel)) ks.insert(ks.end(), std::begin(kLongK), std::end(kLongK));
  return ks;
}

Problem random_problem(Rng& rng, const TestedKernel& kernel, int round) {
  constexpr double kMaxProducts = 24e6;  // of the oracle, which takes a second for about 1e9
  Problem p;
  p.m = rows_for(kernel, near_multiple(rng, kernel.tile_m, 300));
  p.n = near_multiple(rng, kernel.tile_n, 260);
  p.l = rng.chance(0.3) ? rng.integer(2, 3) : 1;
  const double products = static_cast<double>(p.m * p.n * p.l);
  const auto most = static_cast<int64_t>(std::clamp(kMaxProducts / products / 16.0, 20.0, 132.0));
  p.k = k_for(kernel, 16 * near_multiple(rng, 16, most));
  if (is_for_few_rows(kernel) && round < 4) p.k = kLongK[round % 2];
  p.a.type = rng.pick(kernel.a_types);
  p.d.type = rng.pick(kOutputs);
  p.act = test::any_activation(rng);
  p.bias = any_bias(rng);
  add_strides(p, rng, kernel);
  return p;
}

std::string describe(const Problem& p) {
  return "m " + std::to_string(p.m) + " n " + std::to_string(p.n) + " k " + std::to_string(p.k) +
         " l " + std::to_string(p.l) + ", a " + name_of(p.a.type) + " ld " +
         std::to_string(p.a.ld) + " " + name_of(p.a.scale_layout) + ", gate ld " +
         std::to_string(p.gate.ld) + " " + name_of(p.gate.scale_layout) + ", d " +
         name_of(p.d.type) + ", " + name_of(p.act.kind) + ", bias " + name_of(p.bias);
}

// Bytes between the rows of D are not the kernel's.
void expect_padding_untouched(const RandomCase& data) {
  const core::ResolvedMatrix& d = data.resolved.d;
  const int64_t element = core::bytes_of(d.type, 1);
  std::vector<bool> used(static_cast<size_t>(data.d.data.size()), false);
  for (int64_t l = 0; l < data.problem.l; ++l) {
    for (int64_t row = 0; row < d.rows; ++row) {
      const auto begin = used.begin() + (l * d.batch_stride + row * d.ld) * element;
      std::fill(begin, begin + d.cols * element, true);
    }
  }
  for (int64_t i = 0; i < data.d.data.size(); ++i) {
    ASSERT_TRUE(used[static_cast<size_t>(i)] || data.d.data[i] == kPoison)
        << "byte " << i << " between the rows of d was written";
  }
}

Shifts random_shifts(const TestedKernel& kernel, Rng& rng) {
  Shifts shifts;
  if (kernel.any_alignment && rng.chance(0.3)) shifts = Shifts::all(4 * rng.integer(0, 15));
  if (kernel.prepared() && rng.chance(0.3)) shifts.weights = rng.integer(0, 63);
  return shifts;
}

TEST_P(EveryKernelOnGpu, RandomProblemsLieWithinTheBound) {
  Rng rng;
  constexpr Values kValues[] = {Values::kRandom, Values::kRandom, Values::kChallenge,
                                Values::kWide};
  for (int round = 0; round < 16; ++round) {
    const Problem p = random_problem(rng, GetParam(), round);
    RandomCase data(p, rng, rng.pick(kValues));
    if (rng.chance(0.4)) add_alphas_and_row_scales(data, rng);
    const int64_t ctas = rng.chance(0.5) ? 0 : rng.integer(1, 12);
    const Shifts shifts = random_shifts(GetParam(), rng);
    SCOPED_TRACE(describe(p) + ", ctas " + std::to_string(ctas) + ", shifts " +
                 std::to_string(shifts.a) + " " + std::to_string(shifts.weights));
    KernelRun(GetParam(), data, ctas, shifts).run(data);
    ASSERT_TRUE(within_bound(p, data.buffers(), GetParam().isa));
    ASSERT_NO_FATAL_FAILURE(expect_padding_untouched(data));
  }
}

void expect_exact_sums(const TestedKernel& kernel, const Problem& p, Rng& rng) {
  SCOPED_TRACE(describe(p));
  RandomCase data(p, rng, Values::kExact);
  const std::vector<uint8_t> got = KernelRun(kernel, data, 7).run();
  data.poison_d();
  ASSERT_TRUE(reference::dual_gemm(p, data.buffers()).ok());
  EXPECT_TRUE(std::equal(got.begin(), got.end(), data.d.data.data()));
}

// kExact promises exact sums of any 7280 products, were all of them as large as can be (2304 in
// units of 1/16). The magnitudes of kLongK's 8384 random ones add up to about 1/18 of 2^24 units.
TEST_P(EveryKernelOnGpu, ExactSumsAreTheOraclesBitForBit) {
  Rng rng;
  for (const DataType type : GetParam().a_types) {
    for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
      for (const int64_t k : ks_for(GetParam(), 1344)) {
        Problem p{.m = rows_for(GetParam(), GetParam().tile_m + 3), .n = 200, .k = k};
        p.a.type = type;
        p.gate.scale_layout = p.up.scale_layout = layout;
        p.d.type = DataType::kF32;
        p.act.kind = ActivationKind::kIdentity;
        p.bias = any_bias(rng);
        ASSERT_NO_FATAL_FAILURE(expect_exact_sums(GetParam(), p, rng));
      }
    }
  }
}

// What scripts/gpu_check runs under compute-sanitizer: tails of m, n and k, tiles that CTAs share.
TEST_P(EveryKernelOnGpu, SmallProblem) {
  Rng rng;
  for (const DataType type : GetParam().a_types) {
    Problem p{.m = rows_for(GetParam(), std::min<int64_t>(GetParam().tile_m + 1, 33)),
              .n = 67,
              .k = k_for(GetParam(), 1040)};
    p.a.type = type;
    p.gate.scale_layout = ScaleLayout::kSwizzled128x4;
    p.d.ld = 69;
    p.bias = BiasType::kBF16;
    RandomCase data(p, rng, Values::kRandom);
    add_alphas_and_row_scales(data, rng);
    const Shifts shifts{.a = GetParam().any_alignment ? 4 : 0,
                        .weights = GetParam().any_weights() ? 4 : 0};
    KernelRun(GetParam(), data, 2, shifts).run(data);
    EXPECT_TRUE(within_bound(p, data.buffers(), GetParam().isa)) << name_of(type);
  }
}

struct OwnStream {
  cudaStream_t stream = nullptr;
  OwnStream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess); }
  ~OwnStream() { EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
};

void expect_the_same_bits(const TestedKernel& kernel, const Problem& p, Rng& rng) {
  SCOPED_TRACE(describe(p));
  RandomCase data(p, rng, Values::kRandom), other(p, rng, Values::kWide);
  KernelRun first(kernel, data), second(kernel, other);
  const std::vector<uint8_t> bits = first.run(), other_bits = second.run();
  ASSERT_NE(bits, other_bits);
  for (int call = 1; call < 32; ++call) ASSERT_EQ(first.run(), bits) << "call " << call;

  first.poison_d();
  const auto seconds =
      cuda::time_graph(2, 3, [&](void* stream, int) { return first.enqueue(stream); });
  ASSERT_TRUE(seconds.ok()) << seconds.status().message();
  EXPECT_EQ(first.d(), bits) << "replayed from a graph";

  const OwnStream streams[2];
  first.poison_d();
  second.poison_d();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (int call = 0; call < 20; ++call) {
    ASSERT_TRUE(first.enqueue(streams[0].stream).ok());
    ASSERT_TRUE(second.enqueue(streams[1].stream).ok());
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(first.d(), bits) << "beside another stream";
  EXPECT_EQ(second.d(), other_bits) << "beside another stream";
}

// More tiles than one wave of CTAs, so that rings go round and CTAs share tiles where they can.
TEST_P(EveryKernelOnGpu, ThirtyCallsAGraphAndTwoStreamsGiveTheSameBits) {
  Rng rng;
  const TestedKernel& kernel = GetParam();
  for (const DataType type : kernel.a_types) {
    for (const int64_t k : ks_for(kernel, 2048 + 64)) {
      Problem p{
          .m = rows_for(kernel, std::min<int64_t>(2 * kernel.tile_m - 1, 300)), .n = 1600, .k = k};
      p.a.type = type;
      ASSERT_NO_FATAL_FAILURE(expect_the_same_bits(kernel, p, rng));
    }
  }
}

// Few tiles for many CTAs: some kernels then put two CTAs to work on one tile.
TEST_P(EveryKernelOnGpu, FewTilesForManyCtas) {
  constexpr int64_t kCtas = 20;
  Rng rng;
  const TestedKernel& kernel = GetParam();
  for (const DataType type : kernel.a_types) {
    for (const int64_t k : ks_for(kernel, 2048 - 48)) {
      Problem p{
          .m = std::max<int64_t>(kernel.tile_m - 3, 1), .n = kCtas / 2 * kernel.tile_n - 5, .k = k};
      p.a.type = type;
      SCOPED_TRACE(describe(p));
      RandomCase data(p, rng, Values::kRandom);
      KernelRun run(kernel, data, kCtas);
      const std::vector<uint8_t> bits = run.run();
      for (int call = 1; call < 32; ++call) ASSERT_EQ(run.run(), bits) << "call " << call;
      std::copy(bits.begin(), bits.end(), data.d.data.data());
      ASSERT_TRUE(within_bound(p, data.buffers(), kernel.isa));
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
