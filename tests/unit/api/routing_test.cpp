// route_tokens() and combine_tokens() on the CPU, and what they refuse.
#include <gtest/gtest.h>

#include "kernels/experts/routing_checks.hpp"

namespace dualgemm::test {
namespace {

struct OnCpu {
  void* put(const char*, const void* from, int64_t bytes, int64_t shift, bool) {
    if (bytes == 0) return nullptr;
    arrays.emplace_back(static_cast<size_t>(bytes + shift));
    std::memcpy(arrays.back().data() + shift, from, static_cast<size_t>(bytes));
    return arrays.back().data() + shift;
  }
  void get(const void* address, void* to, int64_t bytes) {
    if (bytes > 0) std::memcpy(to, address, static_cast<size_t>(bytes));
  }
  static ::testing::AssertionResult as_result(const Status& status) {
    return status.ok() ? ::testing::AssertionSuccess()
                       : ::testing::AssertionFailure() << status.message();
  }
  ::testing::AssertionResult route(const RoutingProblem& p, const RoutingBuffers& b) {
    return as_result(p.tokens == 0 ? Status() : route_tokens(p, b));
  }
  ::testing::AssertionResult combine(const CombineProblem& p, const CombineBuffers& b) {
    return as_result(combine_tokens(p, b));
  }
  std::vector<std::vector<uint8_t>> arrays;
};

TEST(Routing, IdsToRowsOfExperts) {
  Rng rng;
  for (int i = 0; i < 300; ++i) {
    RoutingCase c = routing_case(random_routing(rng), rng, rng.chance(0.3));
    SCOPED_TRACE(c.describe());
    const Status status = route_tokens(c.problem, c.buffers());
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(is_routed_right(c));
  }
  OnCpu device;
  check_large_routes(device);
}

TEST(Routing, RowsToTokens) {
  OnCpu device;
  check_random_combines(device, 300);
}

// The same bits for any number of threads.
TEST(Routing, AnyNumberOfThreads) {
  Rng rng;
  CombineCase c = random_combine(rng);
  c.problem.tokens = 0;
  while (c.problem.tokens < 20) c = random_combine(rng);
  const std::vector<uint8_t> expected = combined(c);
  for (const int threads : {1, 2, 7}) {
    std::fill(c.y.begin(), c.y.end(), kPoison);
    ASSERT_TRUE(combine_tokens(c.problem, c.buffers(), {.threads = threads}).ok());
    EXPECT_EQ(c.y, expected) << threads;
  }
}

void expect_refused(const Status& status, const std::string& argument) {
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.argument(), argument) << status.message();
}

TEST(Routing, WhatIsRefused) {
  const RoutingProblem p{.tokens = 3, .top_k = 2, .experts = 4};
  expect_refused(validate(RoutingProblem{.tokens = -1}), "tokens");
  expect_refused(validate(RoutingProblem{.tokens = 1, .top_k = 0}), "top_k");
  expect_refused(validate(RoutingProblem{.tokens = 1 << 30, .top_k = 4}), "tokens * top_k");
  expect_refused(validate(RoutingProblem{.tokens = 1, .experts = 0}), "experts");
  expect_refused(validate(RoutingProblem{.tokens = 1, .named_experts = -1}), "named_experts");
  expect_refused(validate(RoutingProblem{.tokens = 1, .weights_type = DataType::kE2M1}),
                 "weights_type");
  Rng rng;
  RoutingCase c = routing_case(p, rng);
  c.scales_rows = true;
  c.weights.clear(), c.token_scale.clear();
  c.poison();
  const auto with = [&](auto change) {
    RoutingBuffers b = c.buffers();
    change(b);
    return route_tokens(p, b);
  };
  const float scale[3] = {};
  expect_refused(with([](RoutingBuffers& b) { b.ids = nullptr; }), "ids");
  expect_refused(with([&](RoutingBuffers& b) { b.expert_map = c.offsets.data(); }), "expert_map");
  expect_refused(with([](RoutingBuffers& b) { b.offsets = nullptr; }), "offsets");
  expect_refused(with([&](RoutingBuffers& b) { b.places = b.row_tokens; }), "places");
  expect_refused(with([&](RoutingBuffers& b) { b.row_scale = nullptr, b.token_scale = scale; }),
                 "token_scale");
  expect_refused(
      with([&](RoutingBuffers& b) { b.ids = reinterpret_cast<const uint8_t*>(c.ids.data()) + 1; }),
      "ids");
  EXPECT_TRUE(std::all_of(c.offsets.begin(), c.offsets.end(),
                          [](int32_t offset) { return offset == 0x5A5A5A5A; }));

  CombineCase d = random_combine(rng);
  while (d.problem.tokens == 0 || d.problem.residual) d = random_combine(rng);
  const auto combining = [&](auto change) {
    CombineProblem q = d.problem;
    CombineBuffers b = d.buffers();
    change(q, b);
    return combine_tokens(q, b);
  };
  expect_refused(combining([](CombineProblem& q, CombineBuffers&) { q.cols = 24; }), "cols");
  expect_refused(combining([](CombineProblem& q, CombineBuffers&) { q.y.type = DataType::kE2M1; }),
                 "y.type");
  expect_refused(combining([](CombineProblem& q, CombineBuffers&) { q.residual = true; }),
                 "residual");
  expect_refused(combining([](CombineProblem&, CombineBuffers& b) { b.residual = b.y; }),
                 "residual");
  expect_refused(
      combining([](CombineProblem&, CombineBuffers& b) { b.y = const_cast<void*>(b.rows); }), "y");
}

}  // namespace
}  // namespace dualgemm::test
