// A whole benchmark shape of the challenge: 128 CTAs of 28 tiles of k.
#include "kernels/simulation/full_shape.hpp"
#include "kernels/sm100a/simulated_run.hpp"

namespace dualgemm::test {
namespace {

TEST(Sm100aFullShape, DISABLED_M256N4096K7168) {
  const Problem p = swizzled({.m = 256, .n = 4096, .k = 7168});
  const SimulatedRun run{.tile_n = cuda::sm100a::choose_instance(p, 148).config.tile_n};
  expect_whole_shape_right(p, run, reference::Accumulation::kTensorCoreStep);
}
TEST(Sm100aFullShape, DISABLED_M512N3072K7168) {
  const Problem p = swizzled({.m = 512, .n = 3072, .k = 7168});
  expect_whole_shape_right(p, SimulatedRun{.tile_n = 128},
                           reference::Accumulation::kTensorCoreStep);
}

}  // namespace
}  // namespace dualgemm::test
