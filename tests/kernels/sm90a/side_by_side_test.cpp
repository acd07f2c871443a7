// Two products side by side in D: support/side_by_side.hpp.
#include "support/side_by_side.hpp"

#include "kernels/sm90a/simulated_run.hpp"

namespace dualgemm::test {
namespace {

struct TileShape {
  int tile_m, tile_n, k_warpgroups;
  bool bf16, prepared;
};
// Those that groups have, too.
constexpr TileShape kTileShapes[] = {{16, 32, 4, false, true},
                                     {32, 64, 2, true, false},
                                     {64, 128, 1, false, false},
                                     {128, 64, 1, true, true},
                                     {256, 64, 1, false, true}};

void expect_every_type_and_grouping(const TileShape& shape) {
  Rng rng;
  const std::vector<DataType> types =
      shape.bf16 ? std::vector{DataType::kBF16} : std::vector{DataType::kE2M1, DataType::kF16};
  int next = 0;
  for (const Problem& p : side_by_side_problems(types, shape.tile_m, shape.tile_n, 528, rng)) {
    const int ctas = 1 + next++ % 5;
    expect_side_by_side(
        p,
        [&](RandomCase& data) {
          SimulatedRun run{.tile_m = shape.tile_m,
                           .tile_n = shape.tile_n,
                           .k_warpgroups = shape.k_warpgroups,
                           .max_ctas = ctas,
                           .prepared = shape.prepared};
          return simulate(data, run);
        },
        rng);
  }
}

TEST(Sm90aSideBySide, TilesOf16Rows) { expect_every_type_and_grouping(kTileShapes[0]); }
TEST(Sm90aSideBySide, TilesOf32Rows) { expect_every_type_and_grouping(kTileShapes[1]); }
TEST(Sm90aSideBySide, TilesOf64Rows) { expect_every_type_and_grouping(kTileShapes[2]); }
TEST(Sm90aSideBySide, TilesOf128Rows) { expect_every_type_and_grouping(kTileShapes[3]); }
TEST(Sm90aSideBySide, TilesOf256Rows) { expect_every_type_and_grouping(kTileShapes[4]); }

// One of 64 rows keeps one output: the host takes the other.
TEST(Sm90aSideBySide, Choice) {
  namespace sm90a = cuda::sm90a;
  Problem p{.m = 64, .n = 4096, .k = 7168};
  const auto suits = [&](const sm90a::Instance& instance) {
    return sm90a::is_for(instance.config, p);
  };
  const auto all = sm90a::instances();
  const auto many = std::count_if(all.begin(), all.end(), suits);
  p.combine = Combine::kSideBySide;
  EXPECT_LT(std::count_if(all.begin(), all.end(), suits), many);
  for (const int64_t n : {64, 512, 1024, 2048, 4096}) {
    for (const int64_t m : {8, 33, 48, 64, 100}) {
      p.m = m, p.n = n;
      EXPECT_TRUE(suits(sm90a::choose_instance(p, 132, true))) << m << " " << n;
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
