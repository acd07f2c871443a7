// Problems of experts' groups for every kernel, and what must hold of D afterwards: rows within the
// bound, every other byte as it was.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reference/bound.hpp"
#include "support/bound.hpp"
#include "support/factors.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {

// What kernels make of offsets or counts that cannot be: no row outside 0 .. m-1 or with two
// owners.
inline std::vector<int32_t> cut_experts(const Problem& p, std::vector<int32_t> experts) {
  int32_t before = 0;
  for (int32_t& number : experts) {
    number = std::clamp<int32_t>(number, before, static_cast<int32_t>(p.m));
    if (p.grouping == Grouping::kContiguous) before = number;
  }
  return experts;
}

struct GroupedCase {
  Problem problem;
  std::vector<int32_t> experts;  // offsets or counts; empty: random ones
};

inline std::string describe(const GroupedCase& one) {
  const Problem& p = one.problem;
  std::string text = std::string(name_of(p.grouping)) + ", m " + std::to_string(p.m) + " n " +
                     std::to_string(p.n) + " k " + std::to_string(p.k) + " l " +
                     std::to_string(p.l) + ", a " + name_of(p.a.type) + " " +
                     name_of(p.a.scale_layout) + ", d " + name_of(p.d.type) + ", bias " +
                     name_of(p.bias) + ", experts";
  for (const int32_t number : one.experts) text += " " + std::to_string(number);
  if (p.a_rows > 0) text += ", by index of " + std::to_string(p.a_rows);
  return text;
}

// One of each way that rows fall to experts, for tiles of tile_m rows and tile_n columns: at
// random, none at all, all in one, one row each, exactly a tile and a row more, in many experts.
// Types, layouts, bias and strides change from case to case.
inline std::vector<GroupedCase> grouped_cases(const std::vector<DataType>& a_types, int64_t tile_m,
                                              int64_t tile_n, int64_t k, Rng& rng) {
  std::vector<GroupedCase> cases;
  const auto add = [&](Grouping grouping, int64_t m, int64_t l, std::vector<int32_t> experts) {
    const auto next = static_cast<int64_t>(cases.size());
    Problem p{.m = m, .n = tile_n + next % 5 - 2, .k = k, .l = l, .grouping = grouping};
    p.a.type = a_types[cases.size() % a_types.size()];
    p.d.type = static_cast<DataType>(next % 4);
    p.bias = any_bias(rng);
    if (rng.chance(0.5)) p.gate.scale_layout = ScaleLayout::kSwizzled128x4;
    if (rng.chance(0.5)) p.up.scale_layout = ScaleLayout::kSwizzled128x4;
    if (p.a.type == DataType::kE2M1 && rng.chance(0.6))
      p.a.scale_layout = ScaleLayout::kSwizzled128x4;
    if (p.d.type == DataType::kE2M1) {
      p.n = tile_n / 16 * 16 + next % 3 * 16;
      if (rng.chance(0.5)) p.d.scale_layout = ScaleLayout::kSwizzled128x4;
    }
    if (rng.chance(0.3)) p.d.ld = p.n + 4;
    cases.push_back({p, std::move(experts)});
  };
  const auto t = static_cast<int32_t>(tile_m);
  for (int round = 0; round < 2; ++round) {
    add(Grouping::kContiguous, 3 * tile_m + 1, 5, {});
    add(Grouping::kMasked, 2 * tile_m + 1, 4, {});
    add(Grouping::kContiguous, 2 * tile_m - 1, 3, {0, 0, 2 * t - 1, 2 * t - 1});
    add(Grouping::kMasked, tile_m, 3, {0, t, 0});
    add(Grouping::kContiguous, 3 * tile_m + 3, 4, {0, 1, t + 1, 2 * t + 2, 3 * t + 3});
    add(Grouping::kMasked, tile_m + 1, 4, {1, t, t + 1, t - 1});
  }
  add(Grouping::kMasked, 3, 3, {0, 0, 0});
  add(Grouping::kContiguous, 9, 70, {});
  add(Grouping::kMasked, 2, 40, {});
  add(Grouping::kContiguous, 5, 1, {});
  return cases;
}

// Rows of A by index: contiguous groups, some of which leave rows to no expert, and A of fewer rows
// than the products have, or of more.
inline std::vector<GroupedCase> indexed_cases(const std::vector<DataType>& a_types, int64_t tile_m,
                                              int64_t tile_n, int64_t k, Rng& rng) {
  std::vector<GroupedCase> cases;
  for (GroupedCase& one : grouped_cases(a_types, tile_m, tile_n, k, rng)) {
    Problem& p = one.problem;
    if (p.grouping != Grouping::kContiguous) continue;
    p.a_rows = rng.chance(0.5) ? rng.integer(1, p.m) : rng.integer(p.m, 2 * p.m);
    if (!one.experts.empty() && rng.chance(0.7)) {
      const auto last = static_cast<int32_t>(rng.integer(0, p.m));
      for (int32_t& offset : one.experts) offset = std::min(offset, last);
    }
    if (rng.chance(0.3)) p.a.ld = p.k + 64;
    cases.push_back(std::move(one));
  }
  return cases;
}

// Every byte of D that belongs to no expert's row is as it was: poison, or in place the residual.
inline ::testing::AssertionResult others_are_poison(RandomCase& data) {
  const Problem& p = data.problem;
  const core::ResolvedMatrix& d = data.resolved.d;
  std::vector<bool> written(static_cast<size_t>(data.d.data.size()));
  const Buffers buffers = data.buffers();
  core::RowGroups all(p, buffers);
  for (core::RowGroup group; all.next(group);) {
    for (int64_t row = group.row_begin; row < group.row_begin + group.rows; ++row) {
      const int64_t first = core::bytes_of(d.type, group.a_batch * d.batch_stride + row * d.ld);
      std::fill_n(written.begin() + first, core::bytes_of(d.type, d.cols), true);
    }
  }
  for (int64_t i = 0; i < data.d.data.size(); ++i) {
    const uint8_t before = data.in_place ? data.residual[i] : kPoison;
    if (written[static_cast<size_t>(i)] || data.d.data[i] == before) continue;
    return ::testing::AssertionFailure() << "byte " << i << " of D belongs to no row, was written";
  }
  return ::testing::AssertionSuccess();
}

using SimulateCase = std::function<::testing::AssertionResult(RandomCase&)>;

inline void expect_right(const GroupedCase& one, const SimulateCase& simulate, Rng& rng) {
  SCOPED_TRACE(describe(one));
  const Problem& p = one.problem;
  std::vector<int32_t> rows;
  if (p.grouping == Grouping::kContiguous && one.experts.empty() && rng.chance(0.5))
    rows = random_row_experts(rng, p.l, p.m);
  RandomCase data(p, rng, Values::kRandom, one.experts, rows);
  if (rng.chance(0.5)) add_alphas_and_row_scales(data, rng);
  ASSERT_TRUE(simulate(data));
  EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
  EXPECT_TRUE(others_are_poison(data));
}

// Offsets and counts that fall, are negative or too large: the same as with what is left when they
// are cut, and nothing outside the arrays is touched, of which the interpreter tells.
inline void expect_cut(Problem p, const SimulateCase& simulate, Rng& rng) {
  constexpr int32_t kOdd[] = {INT32_MIN, -7, -1, 0, 1, INT32_MAX};
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    p.grouping = grouping;
    const auto most = static_cast<int32_t>(p.m);
    std::vector<int32_t> odd(static_cast<size_t>(p.l + (grouping == Grouping::kContiguous)));
    for (int32_t& number : odd) {
      number = rng.chance(0.4) ? kOdd[rng.integer(0, 5)]
                               : static_cast<int32_t>(rng.integer(-most, 2 * most));
    }
    SCOPED_TRACE(describe({p, odd}));
    const std::vector<int32_t> cut = cut_experts(p, odd);
    RandomCase data(p, rng, Values::kRandom, cut);
    auto& experts = grouping == Grouping::kContiguous ? data.expert_offsets : data.expert_rows;
    experts = odd;
    ASSERT_TRUE(simulate(data));
    experts = cut;
    EXPECT_TRUE(within_bound(p, data.buffers(), reference::Accumulation::kAnyOrder));
    EXPECT_TRUE(others_are_poison(data));
  }
}

// An index of at least 71 rows, some of them outside of A: the same as with A's last row there.
inline void expect_index_cut(RandomCase& data, const SimulateCase& simulate) {
  const auto a_rows = static_cast<int32_t>(data.problem.a_rows);
  std::vector<int32_t> odd = data.a_row_index, cut;
  odd[0] = -1, odd[69] = INT32_MIN, odd[70] = INT32_MAX, odd.back() = a_rows;
  for (const int32_t row : odd) cut.push_back(row >= 0 && row < a_rows ? row : a_rows - 1);
  data.a_row_index = odd;
  ASSERT_TRUE(simulate(data));
  data.a_row_index = cut;
  EXPECT_TRUE(within_bound(data.problem, data.buffers(), reference::Accumulation::kAnyOrder));
  EXPECT_TRUE(others_are_poison(data));
}

}  // namespace dualgemm::test
