// Whole benchmark shapes with few rows: all CTAs, 28 tiles of k.
#include "kernels/simulation/full_shape.hpp"
#include "kernels/sm100a_skinny/simulated_run.hpp"

namespace dualgemm::test {
namespace {

void run_whole(const Problem& p, bool prepared = false) {
  const auto& config = cuda::sm100a_skinny::choose_instance(p, 148, prepared).config;
  const SkinnyRun run{.tile_n = config.tile_n,
                      .tile_m = config.tile_m,
                      .persistent = config.grouped,
                      .max_ctas = 148,
                      .prepared = prepared};
  expect_whole_shape_right(p, run, reference::Accumulation::kTensorCoreStep);
}

TEST(Sm100aSkinnyFullShape, DISABLED_M1N4096K7168) {
  run_whole(swizzled({.m = 1, .n = 4096, .k = 7168}));
}
TEST(Sm100aSkinnyFullShape, DISABLED_M1N4096K7168Prepared) {
  run_whole(swizzled({.m = 1, .n = 4096, .k = 7168}), true);
}
TEST(Sm100aSkinnyFullShape, DISABLED_M64N4096K7168) {
  run_whole(swizzled({.m = 64, .n = 4096, .k = 7168}));
}
// Persistent CTAs.
TEST(Sm100aSkinnyFullShape, DISABLED_M16N28672K4096) {
  run_whole(swizzled({.m = 16, .n = 28672, .k = 4096}));
}
TEST(Sm100aSkinnyFullShape, DISABLED_FourExpertsN2048K7168) {
  for (const bool prepared : {false, true}) {
    run_whole(swizzled({.m = 100, .n = 2048, .k = 7168, .l = 4, .grouping = Grouping::kContiguous}),
              prepared);
  }
}

}  // namespace
}  // namespace dualgemm::test
