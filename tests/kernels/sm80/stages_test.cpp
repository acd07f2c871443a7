// Rings of two stages, which GPUs with 99 KB of shared memory a CTA take, and of three, at chunks
// of k from fewer than there are stages on.
#include "kernels/sm80/simulated_run.hpp"
#include "reference/dual_gemm.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm80Stages, SumsAreTheOraclesBitForBitWithTwoAndThree) {
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    for (const int64_t k : {64, 128, 192, 448}) {
      Problem p{.m = 70, .n = 24, .k = k, .a = {.type = type}, .d = {.type = DataType::kF32}};
      p.act.kind = ActivationKind::kIdentity;
      RandomCase data(p, rng, Values::kExact);
      ASSERT_TRUE(reference::dual_gemm(data.problem, data.buffers()).ok());
      const std::vector<uint8_t> sums(data.d.data.begin(), data.d.data.end());
      for (const int tile_m : {8, 64, 128}) {
        for (const int stages : {cuda::sm80::kMinStages, cuda::sm80::kMaxStages}) {
          data.poison_d();
          ASSERT_TRUE(simulate(data, {.options = {.schedule = ptxsim::Schedule::kRandom,
                                                  .seed = static_cast<uint64_t>(k),
                                                  .strict = true},
                                      .tile_m = tile_m,
                                      .k_parts = tile_m == 8 ? 8 : 1,
                                      .stages = stages,
                                      .prepared = k % 128 == 0}));
          EXPECT_TRUE(std::equal(sums.begin(), sums.end(), data.d.data.begin()))
              << tile_m << " rows, " << stages << " stages, k " << k << ", A " << name_of(type);
        }
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
