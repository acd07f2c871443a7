// What the host decides about the sm_80 kernel; needs no GPU. On one, every_kernel_test.cpp and
// fused_strategy_test.cpp run all instances.
#include <gtest/gtest.h>

#include "cuda/kernels/sm80/launch.hpp"

namespace dualgemm::test {
namespace {

namespace sm80 = cuda::sm80;

TEST(Sm80Choice, TilesAndRefusals) {
  for (const auto pass : {sm80::Pass::kFused, sm80::Pass::kSequential, sm80::Pass::kUp}) {
    const auto tile_m = [&](int64_t m) {
      return sm80::choose_instance({.m = m, .n = 1, .k = 16}, pass).config.tile_m;
    };
    EXPECT_EQ(tile_m(8), 8);
    EXPECT_EQ(tile_m(9), 64);
    const Problem halves{.m = 1, .n = 16, .k = 16, .a = {.type = DataType::kF16}};
    EXPECT_EQ(sm80::find_instance(halves, 16, 0, pass), nullptr);
    EXPECT_EQ(sm80::find_instance(halves, 8, 24, pass), nullptr);
    Problem codes = halves;
    codes.d.type = DataType::kE2M1;
    for (codes.m = 1; codes.m < 10; codes.m += 8) {
      const sm80::Config& config = sm80::choose_instance(codes, pass).config;
      EXPECT_EQ(sm80::tile_n_of(config) % 16, 0);
      EXPECT_EQ(config.tile_m, codes.m == 1 ? 8 : 64);
    }
  }
  EXPECT_EQ(sm80::supports({.m = 1, .n = 1, .k = 16}).message(), "ok");
  EXPECT_EQ(sm80::supports({.m = 1, .n = 1, .k = 16, .a = {.type = DataType::kF32}}).message(),
            "a.type: f32; the kernels for a GPU take e2m1, f16 or bf16");
  EXPECT_EQ(sm80::supports({.m = 1, .n = 16, .k = 16, .d = {.type = DataType::kE2M1}}).message(),
            "ok");
  EXPECT_EQ(sm80::supports({.m = 1, .n = 1, .k = 16, .grouping = Grouping::kMasked}).message(),
            "ok");
  EXPECT_EQ(sm80::supports(
                {.m = 1 << 20, .n = 1 << 10, .k = 16, .l = 1 << 8, .grouping = Grouping::kMasked})
                .message(),
            "m, n, l: 1048576, 1024, 256; experts must have at most 2^31 - 1 tiles of 8 x 8");
  EXPECT_EQ(sm80::supports({.m = int64_t{1} << 31, .n = 1, .k = 16}).message(),
            "m: 2147483648; must be below 2^31 on a GPU");
  const Problem large{.m = 1 << 20, .n = 1 << 19, .k = 16};
  EXPECT_EQ(sm80::supports(large).message(), "ok");
  EXPECT_EQ(sm80::supports_r1(large).message(),
            "m, n, l: 1048576, 524288, 1; the Gate product in FP32 must be at most 2^40 bytes");
  EXPECT_EQ(sm80::r1_bytes({.m = 3, .n = 17, .k = 16, .l = 2}), 3 * 2 * 24 * 4);
}

}  // namespace
}  // namespace dualgemm::test
