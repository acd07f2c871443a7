// Whole benchmark shapes of the challenge, one for each tile: 64 pairs of CTAs or more, up to 28
// tiles of k.
#include "kernels/simulation/full_shape.hpp"
#include "kernels/sm100a_pair/simulated_run.hpp"

namespace dualgemm::test {
namespace {

void run_whole(const Problem& p, int tile_n, bool prepared) {
  expect_whole_shape_right(p, SimulatedRun{.tile_n = tile_n, .prepared = prepared},
                           reference::Accumulation::kTensorCoreStep);
}

TEST(Sm100aPairFullShape, DISABLED_M256N4096K7168) {
  run_whole(swizzled({.m = 256, .n = 4096, .k = 7168}), 64, false);
}
TEST(Sm100aPairFullShape, DISABLED_M512N3072K7168) {
  run_whole(swizzled({.m = 512, .n = 3072, .k = 7168}), 128, false);
}
TEST(Sm100aPairFullShape, DISABLED_PreparedM256N4096K7168) {
  run_whole(swizzled({.m = 256, .n = 4096, .k = 7168}), 64, true);
}
TEST(Sm100aPairFullShape, DISABLED_PreparedM512N3072K7168) {
  run_whole(swizzled({.m = 512, .n = 3072, .k = 7168}), 96, true);
}
// No plan takes these tiles on a benchmark shape.
TEST(Sm100aPairFullShape, DISABLED_PreparedM256N3072K4096OtherTiles) {
  for (const int tile_n : {80, 128})
    run_whole(swizzled({.m = 256, .n = 3072, .k = 4096}), tile_n, true);
}
TEST(Sm100aPairFullShape, DISABLED_PreparedM512N4096K7168) {
  run_whole(swizzled({.m = 512, .n = 4096, .k = 7168}), 112, true);
}
TEST(Sm100aPairFullShape, DISABLED_PreparedM256N3072K4096) {
  run_whole(swizzled({.m = 256, .n = 3072, .k = 4096}), 48, true);
}

// 96 tiles on the 74 pairs of a B200: some pairs do two.
void run_persistent(bool prepared) {
  expect_whole_shape_right(swizzled({.m = 768, .n = 4096, .k = 7168}),
                           SimulatedRun{.prepared = prepared, .persistent_ctas = 148},
                           reference::Accumulation::kTensorCoreStep);
}
TEST(Sm100aPairFullShape, DISABLED_PersistentM768N4096K7168) { run_persistent(false); }
TEST(Sm100aPairFullShape, DISABLED_PersistentPreparedM768N4096K7168) { run_persistent(true); }

}  // namespace
}  // namespace dualgemm::test
