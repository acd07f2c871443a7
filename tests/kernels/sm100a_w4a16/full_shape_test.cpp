// Whole benchmark shapes with few rows of bf16: all clusters, 28 tiles of k.
#include "kernels/simulation/full_shape.hpp"
#include "kernels/sm100a_w4a16/simulated_run.hpp"

namespace dualgemm::test {
namespace {

void run_whole(int64_t m) {
  const Problem p = with_rows({.m = m, .n = 4096, .k = 7168}, DataType::kBF16);
  const W4a16Run run{.split = cuda::sm100a_w4a16::choose_split(p, instance_of(p, {}), 148)};
  expect_whole_shape_right(p, run, reference::Accumulation::kAnyOrder);
}

TEST(Sm100aW4a16FullShape, DISABLED_M1N4096K7168) { run_whole(1); }
TEST(Sm100aW4a16FullShape, DISABLED_M64N4096K7168) { run_whole(64); }

}  // namespace
}  // namespace dualgemm::test
