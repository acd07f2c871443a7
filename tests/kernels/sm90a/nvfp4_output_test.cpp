// D as NVFP4, whether tiles are whole, shared or paired: the FP32 result of the same kernel,
// quantised.
#include "support/nvfp4_output.hpp"
#include "kernels/sm90a/simulated_run.hpp"

namespace dualgemm::test {
namespace {

struct TileCase {
  int tile_m, tile_n, k_warpgroups, max_ctas;
  int64_t m, n, k;
  bool prepared;
};

// 16 x 32 with four k-warpgroups, 64 x 64 with two, 128 and 256 rows; a wave, a shared rest, pairs.
constexpr TileCase kTileCases[] = {
    {16, 32, 4, 4, 11, 80, 1040, false},  {16, 32, 4, 2, 16, 32, 2048, true},
    {32, 32, 3, 2, 20, 48, 784, true},    {64, 64, 2, 4, 61, 80, 528, false},
    {128, 64, 1, 5, 140, 96, 272, false}, {128, 64, 1, 2, 100, 64, 528, true},
    {256, 64, 1, 1, 130, 48, 272, true},
};

TEST(Sm90aNvfp4Output, IsTheWideOutputQuantized) {
  int next = 0, shared = 0;
  for (const TileCase& c : kTileCases) {
    Problem p{.m = c.m, .n = c.n, .k = c.k};
    if (next % 3 == 2) p.a.type = DataType::kBF16;
    p.bias = static_cast<BiasType>(next % 3);
    p = with_nvfp4_output(p, next % 2 == 0, next % 3 == 0);
    SCOPED_TRACE(::testing::Message() << "case " << next);
    TwoOutputs both(p);
    both.change([next](RandomCase& data) { make_extreme(data, next); });
    SimulatedRun run{.tile_m = c.tile_m,
                     .tile_n = c.tile_n,
                     .k_warpgroups = c.k_warpgroups,
                     .max_ctas = c.max_ctas,
                     .prepared = c.prepared,
                     .misalign = 0};
    ASSERT_TRUE(simulate(both.wide, run));
    ASSERT_TRUE(simulate(both.narrow, run));
    EXPECT_TRUE(both.agree());
    shared += run.shares_tiles || run.pairs_ctas;
    ++next;
  }
  EXPECT_GE(shared, 2);
}

}  // namespace
}  // namespace dualgemm::test
