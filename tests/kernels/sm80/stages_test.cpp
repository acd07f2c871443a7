// Rings of stages at numbers of chunks of k from fewer than there are stages on, by schedules that
// put off what they can and by random ones.
#include "kernels/sm80/simulated_run.hpp"
#include "reference/dual_gemm.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm80Stages, SumsAreTheOraclesBitForBit) {
  Rng rng;
  for (const DataType type : {DataType::kE2M1, DataType::kF16, DataType::kBF16}) {
    for (const int64_t k : {64, 128, 192, 256, 320, 448}) {
      Problem p{.m = 70, .n = 24, .k = k, .a = {.type = type}, .d = {.type = DataType::kF32}};
      p.act.kind = ActivationKind::kIdentity;
      RandomCase data(p, rng, Values::kExact);
      ASSERT_TRUE(reference::dual_gemm(data.problem, data.buffers()).ok());
      const std::vector<uint8_t> sums(data.d.data.begin(), data.d.data.end());
      for (const int tile_m : {8, 48, 64, 96, 128}) {
        const bool is_between = tile_m % 48 == 0;  // for prepared weights
        for (const auto schedule : {ptxsim::Schedule::kRandom, ptxsim::Schedule::kLazy}) {
          data.poison_d();
          ASSERT_TRUE(simulate(
              data,
              {.options = {.schedule = schedule, .seed = static_cast<uint64_t>(k), .strict = true},
               .tile_m = tile_m,
               .k_parts = tile_m == 8 ? 8 : 1,
               .prepared = k % 128 == 0 || is_between}));
          EXPECT_TRUE(std::equal(sums.begin(), sums.end(), data.d.data.begin()))
              << tile_m << " rows, k " << k << ", A " << name_of(type);
        }
      }
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
