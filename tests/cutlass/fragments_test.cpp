// Where the sm_120a kernel puts what mma.sync multiplies, against what CuTe's traits of the same
// instruction say, which CUTLASS's sm120 kernels are made from.
#include <gtest/gtest.h>

#include <cute/atom/mma_traits_sm120.hpp>

#include "support/nvf4_fragments.hpp"

namespace {

using cutlass::float_e2m1_t;
using cutlass::float_ue4m3_t;
using Traits =
    cute::MMA_Traits<cute::SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<float_e2m1_t, float_e2m1_t,
                                                                   float, float_ue4m3_t, 16>>;
constexpr int kRows = 16, kCols = 8, kBlock = 16, kK = 64;  // CuTe counts rows first, then k

TEST(Sm120aFragments, AreCutes) {
  const Traits::ALayout a;
  const Traits::BLayout b;
  const Traits::CLayout d;
  for (int lane = 0; lane < 32; ++lane) {
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < 8; ++i) {
        const auto [row, k] = dualgemm::test::place_in_a(lane, j, i);
        EXPECT_EQ(int(a(lane, 8 * j + i)), row + kRows * k) << lane << " " << j << " " << i;
      }
      const auto [row, col] = dualgemm::test::place_in_d(lane, j);
      EXPECT_EQ(int(d(lane, j)), row + kRows * col) << lane << " " << j;
    }
    for (int j = 0; j < 2; ++j) {
      for (int i = 0; i < 8; ++i) {
        const auto [col, k] = dualgemm::test::place_in_b(lane, j, i);
        EXPECT_EQ(int(b(lane, 8 * j + i)), col + kCols * k) << lane << " " << j << " " << i;
      }
    }
  }
}

// CuTe gives every lane of a quad scales, so that any thread-id finds what it selects: the same
// ones that ours puts there.
TEST(Sm120aFragments, ScalesAreCutes) {
  const Traits::SFALayout a;
  const Traits::SFBLayout b;
  for (int lane = 0; lane < 32; ++lane) {
    for (int k = 0; k < kK; k += kBlock) {
      EXPECT_EQ(int(a(lane, k)), dualgemm::test::row_of_sfa(lane) + kRows * k) << lane;
      EXPECT_EQ(int(b(lane, k)), dualgemm::test::col_of_sfb(lane) + kCols * k) << lane;
    }
  }
}

}  // namespace
