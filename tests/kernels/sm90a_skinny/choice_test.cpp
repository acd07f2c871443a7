// Which tiles the kernel for few rows is given, and what it refuses.
#include "cuda/kernels/sm90a_skinny/launch.hpp"
#include "support/nvfp4_output.hpp"

namespace dualgemm::test {
namespace {

// Only tiles of whole blocks are chosen.
TEST(Sm90aSkinnyNvfp4Output, TilesHaveWholeBlocks) {
  namespace skinny = cuda::sm90a_skinny;
  for (int64_t n = 16; n < 4096; n += 208) {
    const Problem p = with_nvfp4_output({.m = 4, .n = n, .k = 256}, true, false);
    for (const bool prepared : {false, true})
      EXPECT_EQ(skinny::choose_instance(p, 132, prepared).config.units % 2, 0) << n;
    EXPECT_EQ(skinny::find_instance(p, 8, false), nullptr);
    EXPECT_EQ(skinny::find_instance(p, 24, true), nullptr);
  }
}

TEST(Sm90aSkinnyChoice, TilesAndRefusals) {
  namespace skinny = cuda::sm90a_skinny;
  const auto cols = [](int64_t n) {
    return skinny::tile_n_of(
        skinny::choose_instance({.m = 1, .n = n, .k = 4096}, 132, false).config);
  };
  EXPECT_EQ(cols(4096), 32);  // 128 tiles for 132 SMs
  EXPECT_EQ(cols(3072), 24);
  EXPECT_EQ(cols(1024), 8);
  EXPECT_EQ(cols(14336), 24);
  EXPECT_EQ(
      skinny::tile_n_of(skinny::choose_instance({.m = 1, .n = 14336, .k = 4096}, 132, true).config),
      32);  // the fourth tile, of 16, costs less than the fifth of 24
  const auto faster = [](int64_t n, int64_t m = 1) {
    return skinny::is_faster({.m = m, .n = n, .k = 4096}, 132, false);
  };
  for (const int64_t n : {8, 512, 1024, 3072, 4096, 4224, 5120, 8192}) EXPECT_TRUE(faster(n)) << n;
  EXPECT_FALSE(faster(4232));   // a second tile for a few
  EXPECT_FALSE(faster(14336));  // a decoded five times by a CTA
  EXPECT_TRUE(faster(4096, 8));
  const auto prepared_faster = [](int64_t n, int64_t m, DataType a = DataType::kE2M1) {
    Problem p{.m = m, .n = n, .k = 4096};
    p.a.type = a;
    return skinny::is_faster(p, 132, true);
  };
  for (const int64_t n : {3072, 4232, 14336, 18432}) EXPECT_TRUE(prepared_faster(n, 8)) << n;
  for (const int64_t n : {3072, 4232, 8192, 11008}) EXPECT_TRUE(prepared_faster(n, 16)) << n;
  EXPECT_TRUE(prepared_faster(14336, 9));  // a decoded four times by a CTA
  EXPECT_TRUE(prepared_faster(14336, 9, DataType::kF16));
  EXPECT_FALSE(prepared_faster(17408, 9));  // five times
  EXPECT_FALSE(prepared_faster(28672, 9, DataType::kF16));
  for (const int64_t m : {1, 8, 9, 16}) {
    const skinny::Config& config =
        skinny::choose_instance({.m = m, .n = 3072, .k = 4096}, 132, true).config;
    EXPECT_EQ(config.tile_m, m <= 8 ? 8 : 16) << m;
    EXPECT_EQ(skinny::tile_n_of(config), 24) << m;
  }
  EXPECT_EQ(skinny::supports({.m = 16, .n = 1, .k = 64}, true).message(), "ok");
  EXPECT_EQ(skinny::supports({.m = 17, .n = 1, .k = 64}, true).message(),
            "m: 17; must be at most 16 for this kernel");
  const auto message = [](const Problem& p) { return skinny::supports(p, false).message(); };
  EXPECT_EQ(message({.m = 8, .n = 1, .k = 64}), "ok");
  EXPECT_EQ(message({.m = 9, .n = 1, .k = 64}), "m: 9; must be at most 8 for this kernel");
  EXPECT_EQ(message({.m = 1, .n = 1, .k = 80}), "k: 80; must be a multiple of 64 for this kernel");
  EXPECT_EQ(message({.m = 1, .n = 2, .k = 64, .gate = {.ld = 80}}),
            "gate: a stride of 40 bytes; must be a multiple of 16 for this kernel");
  EXPECT_EQ(message({.m = 1, .n = 2, .k = 64, .gate = {.ld = int64_t{1} << 31}}),
            "gate: a stride of 1073741824 bytes; must be below 2^30 for this kernel");
  EXPECT_EQ(message({.m = 1, .n = 4096, .k = 64, .up = {.scale_ld = 1 << 20}}),
            "up_scales: 4096 rows, 1048576 bytes apart; must be below 2^32 bytes for this kernel");
}

}  // namespace
}  // namespace dualgemm::test
