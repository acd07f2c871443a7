#include "tools/cli/commands/token_rate.hpp"

#include <gtest/gtest.h>

namespace dualgemm::cli {
namespace {

TEST(TokenRate, FromTheMeasuredRateAndTheBytesOfAToken) {
  // 99 090 432 bytes in 32.1 us: 3.087e12 bytes a second.
  const std::string dense =
      tokens_a_second("NVIDIA H200", {.dense_bytes = int64_t{32} * 99'090'432});
  EXPECT_TRUE(dense.starts_with("about 974 for one sequence")) << dense;
  EXPECT_NE(dense.find("3.09 TB/s"), std::string::npos) << dense;
  const std::string other = tokens_a_second("NVIDIA H100 80GB HBM3", {.dense_bytes = 33'030'144});
  EXPECT_TRUE(other.starts_with("about 7.96e+04 for one sequence")) << other;  // 12.56 us
  const std::string sparse =
      tokens_a_second("NVIDIA H200", {.dense_bytes = 16 * int64_t{99'090'432},
                                      .expert_bytes = 128 * int64_t{99'090'432},
                                      .experts = 64,
                                      .experts_of_a_token = 8});
  EXPECT_EQ(sparse, dense);
}

TEST(TokenRate, NotMeasured) {
  EXPECT_EQ(tokens_a_second("NVIDIA GeForce RTX 3090", {.dense_bytes = 1000}), "not measured");
  EXPECT_EQ(tokens_a_second("AMD EPYC", {.dense_bytes = 1000}), "not measured");
  EXPECT_EQ(tokens_a_second("NVIDIA H200", {}), "not measured");
  EXPECT_EQ(tokens_a_second("NVIDIA H200", {.expert_bytes = 1000}), "not measured");
  EXPECT_EQ(
      tokens_a_second("NVIDIA H200", {.expert_bytes = 1000, .experts = 4, .experts_of_a_token = 5}),
      "not measured");
}

}  // namespace
}  // namespace dualgemm::cli
