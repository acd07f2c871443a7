// Whole benchmark shapes with few rows of bf16: all clusters, 28 tiles of k.
#include "kernels/simulation/full_shape.hpp"
#include "kernels/sm100a_w4a16/simulated_run.hpp"

namespace dualgemm::test {
namespace {

void run_whole(int64_t m, int64_t n, int64_t k) {
  const Problem p = with_rows({.m = m, .n = n, .k = k}, DataType::kBF16);
  const auto& instance = cuda::sm100a_w4a16::choose_instance(p, 148);
  const W4a16Run run{.tile_m = instance.config.tile_m,
                     .persistent = instance.config.grouped,
                     .split = cuda::sm100a_w4a16::choose_split(p, instance, 148),
                     .max_ctas = 148};
  expect_whole_shape_right(p, run, reference::Accumulation::kAnyOrder);
}

TEST(Sm100aW4a16FullShape, DISABLED_M1N4096K7168) { run_whole(1, 4096, 7168); }
TEST(Sm100aW4a16FullShape, DISABLED_M64N4096K7168) { run_whole(64, 4096, 7168); }
TEST(Sm100aW4a16FullShape, DISABLED_PersistentM16N28672K4096) { run_whole(16, 28672, 4096); }

}  // namespace
}  // namespace dualgemm::test
