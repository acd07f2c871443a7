// Which instance two products side by side are given.
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda/kernels/sm90a/launch.hpp"

namespace dualgemm::test {
namespace {

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
