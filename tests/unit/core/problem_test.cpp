#include "core/problem.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace dualgemm::core {
namespace {

TEST(Problem, TightStridesAreResolved) {
  const ResolvedProblem r = resolve({.m = 5, .n = 48, .k = 80, .l = 3});
  EXPECT_EQ(r.a.rows, 5);
  EXPECT_EQ(r.a.cols, 80);
  EXPECT_EQ(r.a.ld, 80);
  EXPECT_EQ(r.a.batch_stride, 400);
  EXPECT_EQ(r.a.sf_cols, 5);
  EXPECT_EQ(r.a.scale_ld, 5);
  EXPECT_EQ(r.a.scale_batch_stride, 25);
  EXPECT_EQ(r.gate.rows, 48);
  EXPECT_EQ(r.up.cols, 80);
  EXPECT_EQ(r.d.rows, 5);
  EXPECT_EQ(r.d.cols, 48);
  EXPECT_EQ(r.d.ld, 48);
  EXPECT_EQ(r.d.sf_cols, 0) << "f16 has no scales";
}

TEST(Problem, GivenStridesAreKept) {
  Problem p{.m = 5, .n = 48, .k = 80, .l = 3};
  p.a = {.ld = 96, .batch_stride = 1000, .scale_ld = 7, .scale_batch_stride = 50};
  const ResolvedMatrix a = resolve(p).a;
  EXPECT_EQ(a.ld, 96);
  EXPECT_EQ(a.batch_stride, 1000);
  EXPECT_EQ(a.scale_ld, 7);
  EXPECT_EQ(a.scale_batch_stride, 50);
  EXPECT_EQ(a.row_bytes(), 48);
  // First byte to one past the last: not the padding of the last row.
  EXPECT_EQ(a.data_span_bytes(3), (2 * 1000 + 4 * 96 + 80) / 2);
  EXPECT_EQ(a.scale_span_bytes(3), 2 * 50 + 4 * 7 + 5);
}

TEST(Problem, SwizzledSpansHoldWholeTiles) {
  Problem p{.m = 129, .n = 16, .k = 80, .l = 2};
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  const ResolvedMatrix a = resolve(p).a;
  EXPECT_EQ(a.scale_batch_stride, 2 * 2 * 512);
  EXPECT_EQ(a.scale_span_bytes(2), 2 * 2 * 2 * 512);
  EXPECT_EQ(a.scale_map()(128, 4), 3 * 512);
}

TEST(Problem, SpansOfEveryType) {
  Problem p{.m = 3, .n = 16, .k = 16, .l = 1};
  for (const auto& [type, bits] : {std::pair{DataType::kE2M1, 4}, std::pair{DataType::kF16, 16},
                                   std::pair{DataType::kBF16, 16}, std::pair{DataType::kF32, 32}}) {
    p.a.type = type;
    EXPECT_EQ(bits_of(type), bits);
    EXPECT_EQ(bytes_of(type, 48), 48 * bits / 8);
    EXPECT_EQ(resolve(p).a.data_span_bytes(1), 48 * bits / 8) << name_of(type);
    EXPECT_EQ(resolve(p).a.scale_span_bytes(1), type == DataType::kE2M1 ? 3 : 0);
  }
}

TEST(Problem, NoRowsTakeNoBytes) {
  Problem p{.m = 0, .n = 16, .k = 16, .l = 2, .grouping = Grouping::kMasked};
  EXPECT_EQ(resolve(p).a.data_span_bytes(2), 0);
  EXPECT_EQ(resolve(p).a.scale_span_bytes(2), 0);
}

std::vector<RowGroup> groups_of(const Problem& problem, const Buffers& buffers) {
  std::vector<RowGroup> all;
  RowGroups groups(problem, buffers);
  for (RowGroup group; groups.next(group);) all.push_back(group);
  RowGroup group;
  EXPECT_FALSE(groups.next(group)) << "the end must stay the end";
  return all;
}

void expect_group(const RowGroup& group, RowGroup want) {
  EXPECT_EQ(group.batch, want.batch);
  EXPECT_EQ(group.row_begin, want.row_begin);
  EXPECT_EQ(group.rows, want.rows);
  EXPECT_EQ(group.a_batch, want.a_batch);
  EXPECT_EQ(group.sf_row_begin, want.sf_row_begin);
  EXPECT_EQ(group.d_sf_row_begin, want.d_sf_row_begin);
}

TEST(RowGroups, BatchesAreGroups) {
  const auto groups = groups_of({.m = 7, .n = 16, .k = 16, .l = 2}, {});
  ASSERT_EQ(groups.size(), 2u);
  expect_group(groups[0], {0, 0, 7, 0, 0, 0});
  expect_group(groups[1], {1, 0, 7, 1, 0, 0});
}

TEST(RowGroups, MaskedExpertsHaveTheirOwnRowCounts) {
  const int32_t rows[] = {3, 0, 7};
  const auto groups = groups_of({.m = 7, .n = 16, .k = 16, .l = 3, .grouping = Grouping::kMasked},
                                {.expert_rows = rows});
  ASSERT_EQ(groups.size(), 3u);
  expect_group(groups[0], {0, 0, 3, 0, 0, 0});
  expect_group(groups[1], {1, 0, 0, 1, 0, 0});
  expect_group(groups[2], {2, 0, 7, 2, 0, 0});
}

TEST(RowGroups, ContiguousExpertsStartWholeTilesInSwizzledScalesOnly) {
  const int32_t offsets[] = {0, 130, 130, 131, 200};
  Problem p{.m = 200, .n = 16, .k = 16, .l = 4, .grouping = Grouping::kContiguous};
  p.a.scale_layout = ScaleLayout::kSwizzled128x4;  // D stays linear
  const auto groups = groups_of(p, {.expert_offsets = offsets});
  ASSERT_EQ(groups.size(), 4u);
  expect_group(groups[0], {0, 0, 130, 0, 0, 0});
  expect_group(groups[1], {1, 130, 0, 0, 256, 130});
  expect_group(groups[2], {2, 130, 1, 0, 256, 130});
  expect_group(groups[3], {3, 131, 69, 0, 384, 131});
  std::swap(p.a.scale_layout, p.d.scale_layout);
  expect_group(groups_of(p, {.expert_offsets = offsets})[3], {3, 131, 69, 0, 131, 384});
}

// Runs of neighbours, wherever they begin, in one matrix of scales; -1 and what is no expert
// between.
TEST(RowGroups, RowsThatNameTheirExperts) {
  const int32_t experts[] = {-1, 2, 2, 0, -1, 0, 3, 1, INT32_MIN, 1};
  Problem p{.m = 10, .n = 16, .k = 16, .l = 3, .grouping = Grouping::kContiguous};
  p.a.scale_layout = p.d.scale_layout = ScaleLayout::kSwizzled128x4;
  const auto groups = groups_of(p, {.row_experts = experts});
  ASSERT_EQ(groups.size(), 5u);
  expect_group(groups[0], {2, 1, 2, 0, 1, 1});
  expect_group(groups[1], {0, 3, 1, 0, 3, 3});
  expect_group(groups[2], {0, 5, 1, 0, 5, 5});
  expect_group(groups[3], {1, 7, 1, 0, 7, 7});
  expect_group(groups[4], {1, 9, 1, 0, 9, 9});
  const int32_t nobody[] = {-1, 3, 4, -2, -1, -1, -1, -1, -1, -1};
  EXPECT_TRUE(groups_of(p, {.row_experts = nobody}).empty());
}

TEST(Problem, SideBySideHasColumnsOfBothAndABiasStride) {
  Problem p{.m = 4, .n = 48, .k = 32, .l = 3, .bias = BiasType::kBF16};
  p.combine = Combine::kSideBySide;
  p.up_column = 32;
  p.d.type = DataType::kE2M1;
  EXPECT_EQ(resolve(p).d.cols, 80);
  EXPECT_EQ(resolve(p).d.ld, 80);
  EXPECT_EQ(resolve(p).d.sf_cols, 5);
  EXPECT_EQ(bias_span_bytes(resolve(p)), 3 * 48 * 2);
  p.bias_stride = 80;
  EXPECT_EQ(bias_span_bytes(resolve(p)), (2 * 80 + 48) * 2);
}

TEST(Problem, FlopsCountMultiplyAndAdd) {
  EXPECT_EQ(flops({.m = 2, .n = 3, .k = 16, .l = 5}), 4.0 * 2 * 3 * 16 * 5);
  EXPECT_EQ(flops({.m = 2, .n = 3, .k = 16, .l = 5, .grouping = Grouping::kContiguous}),
            4.0 * 2 * 3 * 16)
      << "the rows of contiguous groups are shared out, not repeated";
}

}  // namespace
}  // namespace dualgemm::core
