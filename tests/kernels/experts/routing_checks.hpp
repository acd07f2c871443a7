// The same cases for any device: one that interprets PTX, or a GPU. A Device has
//   void* put(const char* name, const void* from, int64_t bytes, int64_t shift, bool read_only)
//   void get(const void* address, void* to, int64_t bytes)    // and looks at what lies around
//   AssertionResult route(problem, buffers), combine(problem, buffers), gather(core::Gather)
#pragma once

#include <gtest/gtest.h>

#include "core/gather.hpp"
#include "support/routing_case.hpp"

namespace dualgemm::test {

template <class Device>
void expect_routed(Device& device, RoutingCase c) {
  SCOPED_TRACE(c.describe());
  const auto put = [&](const char* name, const auto& array, bool read_only) -> void* {
    using Element = typename std::decay_t<decltype(array)>::value_type;
    if (array.empty()) return nullptr;
    return device.put(name, array.data(), static_cast<int64_t>(array.size() * sizeof(Element)), 0,
                      read_only);
  };
  RoutingBuffers b;
  b.ids = put("ids", c.ids, true);
  b.expert_map = static_cast<int32_t*>(put("expert_map", c.expert_map, true));
  b.weights = put("weights", c.weights, true);
  b.token_scale = static_cast<float*>(put("token_scale", c.token_scale, true));
  b.offsets = static_cast<int32_t*>(put("offsets", c.offsets, false));
  b.row_tokens = static_cast<int32_t*>(put("row_tokens", c.row_tokens, false));
  b.places = static_cast<int32_t*>(put("places", c.places, false));
  b.row_scale = static_cast<float*>(put("row_scale", c.row_scale, false));
  ASSERT_TRUE(device.route(c.problem, b));
  const auto get = [&](const void* from, auto& array) {
    device.get(from, array.data(), static_cast<int64_t>(array.size() * sizeof(array[0])));
  };
  get(b.offsets, c.offsets);
  get(b.row_tokens, c.row_tokens);
  get(b.places, c.places);
  if (b.row_scale != nullptr) get(b.row_scale, c.row_scale);
  ASSERT_TRUE(is_routed_right(c));
}

template <class Device>
void expect_combined(Device& device, CombineCase c, int64_t shift, bool in_place) {
  const CombineProblem& p = c.problem;
  SCOPED_TRACE(::testing::Message()
               << p.tokens << " tokens, top " << p.top_k << ", " << p.cols << " columns of "
               << name_of(p.rows.type) << " to " << name_of(p.y.type) << ", shift " << shift);
  const auto put = [&](const char* name, const std::vector<uint8_t>& array, DataType type,
                       bool read_only) {
    const int64_t element = core::bytes_of(type, 1);
    return device.put(name, array.data(), static_cast<int64_t>(array.size()),
                      (shift + element - 1) / element * element, read_only);
  };
  const std::vector<uint8_t> expected = combined(c);
  if (in_place && p.residual) c.y = c.residual;
  CombineBuffers b;
  b.rows = put("rows", c.rows, p.rows.type, true);
  b.places = static_cast<int32_t*>(
      device.put("places", c.places.data(), static_cast<int64_t>(c.places.size() * 4), 0, true));
  b.weights = put("weights", c.weights, p.weights_type, true);
  b.y = put("y", c.y, p.y.type, false);
  b.residual = !p.residual ? nullptr : in_place ? b.y : put("residual", c.residual, p.y.type, true);
  ASSERT_TRUE(device.combine(p, b));
  device.get(b.y, c.y.data(), static_cast<int64_t>(c.y.size()));
  ASSERT_EQ(c.y, expected);
}

template <class Device>
void check_random_routes(Device& device, int cases) {
  Rng rng;
  for (int i = 0; i < cases; ++i)
    expect_routed(device, routing_case(random_routing(rng), rng, rng.chance(0.3)));
}

// More ids than a warp counts at a time, more experts than a CTA has threads, the most there may
// be.
template <class Device>
void check_large_routes(Device& device) {
  Rng rng;
  for (const RoutingProblem& p :
       {RoutingProblem{.tokens = 900, .top_k = 8, .experts = 128},
        RoutingProblem{.tokens = 5001, .top_k = 8, .experts = 130},
        RoutingProblem{.tokens = 130, .top_k = 8, .experts = 1500, .wide_ids = true},
        RoutingProblem{.tokens = 50, .top_k = 6, .experts = kMostRoutedExperts},
        RoutingProblem{.tokens = 200, .top_k = 4, .experts = 3, .named_experts = 9000}}) {
    expect_routed(device, routing_case(p, rng));
    expect_routed(device, routing_case(p, rng, true));
  }
}

template <class Device>
void check_random_combines(Device& device, int cases) {
  Rng rng;
  for (int i = 0; i < cases; ++i)
    expect_combined(device, random_combine(rng), rng.integer(0, 1) * rng.integer(1, 15),
                    rng.chance(0.3));
}

template <class Device>
void check_gathers(Device& device) {
  Rng rng;
  for (const int64_t bytes : {1, 7, 16, 36, 512, 4096 + 16}) {
    const int64_t from_rows = rng.integer(1, 40), rows = rng.integer(1, 90);
    const int64_t stride = bytes + 4 * rng.integer(0, 3);
    std::vector<uint8_t> from(static_cast<size_t>(from_rows * stride));
    for (uint8_t& byte : from) byte = rng.byte();
    std::vector<int32_t> index(static_cast<size_t>(rows));
    for (int32_t& one : index) one = static_cast<int32_t>(rng.integer(0, from_rows - 1));
    std::vector<uint8_t> to(static_cast<size_t>(rows * bytes), kPoison), want = to;
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(want.data() + row * bytes, from.data() + index[static_cast<size_t>(row)] * stride,
                  static_cast<size_t>(bytes));
    auto* const target = static_cast<uint8_t*>(
        device.put("to", to.data(), static_cast<int64_t>(to.size()), 0, false));
    const core::Gather gather{
        .from = static_cast<uint8_t*>(
            device.put("from", from.data(), static_cast<int64_t>(from.size()), 0, true)),
        .from_row_bytes = stride,
        .row_bytes = bytes,
        .from_rows = from_rows,
        .index = static_cast<int32_t*>(device.put("index", index.data(), rows * 4, 0, true)),
        .rows = rows,
        .to = target};
    ASSERT_TRUE(device.gather(gather));
    device.get(target, to.data(), static_cast<int64_t>(to.size()));
    ASSERT_EQ(to, want) << bytes << " bytes";
  }
}

}  // namespace dualgemm::test
