// Vector clocks of the sanitizer: joins, what covers what, sharing, relaxed barriers.
#include <gtest/gtest.h>

#include <random>

#include "check/clock.hpp"

namespace {

using ptxsim::ClockValues;
using ptxsim::SharedClock;

SharedClock clock(std::vector<uint32_t> order, std::vector<uint32_t> async = {},
                  std::vector<uint32_t> execution = {}, uint32_t started = 0) {
  return std::make_shared<ClockValues>(
      ClockValues{std::move(order), std::move(async), std::move(execution), started});
}

TEST(SanitizerClock, AnIndexPastTheEndIsZero) {
  EXPECT_EQ(ptxsim::clock_value({3, 4}, 1), 4u);
  EXPECT_EQ(ptxsim::clock_value({3, 4}, 2), 0u);
}

TEST(SanitizerClock, RaiseNeverLowers) {
  std::vector<uint32_t> values{5};
  ptxsim::raise(values, 0, 3);
  ptxsim::raise(values, 2, 7);
  EXPECT_EQ(values, (std::vector<uint32_t>{5, 0, 7}));
}

TEST(SanitizerClock, RaiseOrderRaisesExecutionOnlyWhereItIsKeptApart) {
  ClockValues together{{1}, {}, {}, 0}, apart{{1}, {}, {4}, 0};
  ptxsim::raise_order(together, 0, 6);
  ptxsim::raise_order(apart, 0, 6);
  EXPECT_TRUE(together.execution.empty());
  EXPECT_EQ(apart.order, (std::vector<uint32_t>{6}));
  EXPECT_EQ(apart.execution, (std::vector<uint32_t>{6}));
}

TEST(SanitizerClock, CoversLooksAtEveryComponent) {
  EXPECT_TRUE(ptxsim::covers(*clock({2, 3}), *clock({2, 3, 0, 0})));
  EXPECT_FALSE(ptxsim::covers(*clock({2, 3}), *clock({2, 3, 0, 1})));
  EXPECT_FALSE(ptxsim::covers(*clock({2}, {0}), *clock({2}, {1})));
  EXPECT_FALSE(ptxsim::covers(*clock({2}), *clock({2}, {}, {3})));
  EXPECT_TRUE(ptxsim::covers(*clock({2}, {}, {3}), *clock({2})));
  EXPECT_FALSE(ptxsim::covers(*clock({2}, {}, {}, 1), *clock({2}, {}, {}, 3)));
}

// Around the length of the runs in which clocks are compared.
TEST(SanitizerClock, CoversFindsOneSmallerValueAnywhere) {
  for (size_t length : {1u, 15u, 16u, 17u, 33u, 600u}) {
    const std::vector<uint32_t> part(length, 2);
    EXPECT_TRUE(ptxsim::covers(part, part));
    for (size_t i = 0; i < length; i += 5) {
      std::vector<uint32_t> less = part;
      less[i] = 1;
      EXPECT_FALSE(ptxsim::covers(less, part)) << length << " " << i;
      EXPECT_TRUE(ptxsim::covers(part, less)) << length << " " << i;
    }
  }
}

TEST(SanitizerClock, JoinSharesTheLargerClock) {
  SharedClock small = clock({1, 2});
  const SharedClock large = clock({1, 3, 4});
  ptxsim::join_into(small, large);
  EXPECT_EQ(small, large);
  SharedClock kept = large;
  ptxsim::join_into(kept, clock({1, 1}));
  EXPECT_EQ(kept, large);
}

TEST(SanitizerClock, JoinLeavesClocksThatOthersHold) {
  SharedClock mine = clock({5, 0}, {1, 0});
  const SharedClock before = mine;
  ptxsim::join_into(mine, clock({0, 6}, {0, 2}));
  EXPECT_EQ(mine->order, (std::vector<uint32_t>{5, 6}));
  EXPECT_EQ(mine->async, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(before->order, (std::vector<uint32_t>{5, 0}));
}

TEST(SanitizerClock, WhatRelaxedBarriersCarryIsNotOrder) {
  SharedClock mine = clock({5}, {}, {}, 1);
  ptxsim::join_execution_into(mine, *clock({0, 7}, {}, {}, 2));
  EXPECT_EQ(mine->order, (std::vector<uint32_t>{5}));
  EXPECT_EQ(mine->execution, (std::vector<uint32_t>{5, 7}));
  EXPECT_EQ(mine->started, 3u);
  SharedClock next = clock({1, 1, 1});
  ptxsim::join_into(next, mine);
  EXPECT_EQ(next->order, (std::vector<uint32_t>{5, 1, 1}));
  EXPECT_EQ(next->execution, (std::vector<uint32_t>{5, 7, 1}));
}

TEST(SanitizerClock, JoinIsTheLeastClockThatCoversBoth) {
  constexpr uint64_t kSeed = 20261121;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  auto any = [&] {
    std::vector<uint32_t> values(random() % 5);
    for (uint32_t& value : values) value = static_cast<uint32_t>(random() % 4);
    return values;
  };
  for (int i = 0; i < 2000; ++i) {
    const SharedClock a = clock(any(), any(), {}, random() % 4),
                      b = clock(any(), any(), {}, random() % 4);
    SharedClock joined = a;
    ptxsim::join_into(joined, b);
    EXPECT_TRUE(ptxsim::covers(*joined, *a) && ptxsim::covers(*joined, *b));
    for (uint32_t index = 0; index < 5; ++index) {
      EXPECT_EQ(
          ptxsim::clock_value(joined->order, index),
          std::max(ptxsim::clock_value(a->order, index), ptxsim::clock_value(b->order, index)));
      EXPECT_EQ(
          ptxsim::clock_value(joined->async, index),
          std::max(ptxsim::clock_value(a->async, index), ptxsim::clock_value(b->async, index)));
    }
  }
}

}  // namespace
