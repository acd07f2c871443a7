// Results of groups of experts: all rows that are an expert's are judged, and that nothing was
// written in the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/problem.hpp"
#include "dualgemm/dualgemm.hpp"
#include "tools/verify/check.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::verify {
namespace {

struct GroupedResult {
  Problem problem;
  Operands operands;
  Output output;
  Buffers buffers;
};

// By the oracle. Odd seeds have row scales.
GroupedResult make_grouped(Problem p, const RandomGroups& groups, uint64_t seed = 7) {
  Expected<Operands> operands = random_operands(p, RandomKind::kEdges, seed, groups);
  EXPECT_TRUE(operands.ok()) << operands.status().message();
  Expected<Output> output = allocate_output(p);
  EXPECT_TRUE(output.ok());
  GroupedResult result{p, *std::move(operands), *std::move(output), {}};
  result.buffers = result.operands.buffers();
  result.output.attach_to(result.buffers);
  const Status status = run(p, result.buffers, {.strategy = StrategyId::kReference});
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

CheckReport check(const GroupedResult& result, int64_t samples = 0) {
  const Expected<CheckReport> report =
      check_result(result.problem, result.buffers, Isa::kScalar, {samples, 3, kUnwritten});
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? *report : CheckReport();
}

int64_t rows_of_groups(const GroupedResult& result) {
  int64_t rows = 0;
  core::RowGroups all(result.problem, result.buffers);
  for (core::RowGroup group; all.next(group);) rows += group.rows;
  return rows;
}

Problem grouped_problem(Grouping grouping, DataType d_type = DataType::kF32) {
  Problem p{.m = 40, .n = 48, .k = 64, .l = 5};
  p.grouping = grouping;
  p.d.type = d_type;
  if (d_type == DataType::kE2M1) {
    p.d.scale_layout = p.a.scale_layout = ScaleLayout::kSwizzled128x4;
    p.gate.scale_layout = p.up.scale_layout = ScaleLayout::kSwizzled128x4;
  }
  return p;
}

TEST(CheckGroups, RightResultsPassWholeSampledAndAgainstEachOther) {
  for (const DataType type : {DataType::kF16, DataType::kF32, DataType::kE2M1}) {
    for (const auto& [grouping, row_experts] : {std::pair{Grouping::kContiguous, false},
                                                {Grouping::kContiguous, true},
                                                {Grouping::kMasked, false}}) {
      for (const ExpertRows rows :
           {ExpertRows::kRagged, ExpertRows::kOneExpert, ExpertRows::kNobody}) {
        if (rows == ExpertRows::kNobody && grouping == Grouping::kContiguous && !row_experts)
          continue;
        SCOPED_TRACE(::testing::Message() << name_of(type) << ", " << dualgemm::name_of(grouping)
                                          << ", " << row_experts << ", " << name_of(rows));
        const GroupedResult right =
            make_grouped(grouped_problem(grouping, type), {row_experts, rows});
        const int64_t elements = rows_of_groups(right) * 48;
        EXPECT_EQ(elements == 0, rows == ExpertRows::kNobody);
        const CheckReport whole = check(right);
        EXPECT_TRUE(whole.passed());
        EXPECT_EQ(whole.compared, elements);
        EXPECT_EQ(whole.nothing_to_compare, elements == 0);
        const CheckReport sampled = check(right, 20);
        EXPECT_TRUE(sampled.passed());
        EXPECT_LE(sampled.compared, elements);
        const auto same = check_against(right.problem, right.buffers, right.buffers, Isa::kScalar);
        EXPECT_EQ(same->compared, elements);
        const auto difference = output_difference(right.problem, right.buffers, right.buffers);
        EXPECT_EQ(difference->elements, elements);
        EXPECT_EQ(difference->differing, 0);
      }
    }
  }
}

// The last element of the last expert that has rows; its batch is the expert.
TEST(CheckGroups, OneElementIsEnough) {
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    GroupedResult wrong = make_grouped(grouped_problem(grouping), {});
    core::RowGroup last{};
    core::RowGroups all(wrong.problem, wrong.buffers);
    for (core::RowGroup group; all.next(group);) {
      if (group.rows > 0) last = group;
    }
    const int64_t row = last.row_begin + last.rows - 1;
    auto* const d = reinterpret_cast<float*>(wrong.output.d.data());
    d[(last.a_batch * 40 + row) * 48 + 47] += 1.0f;
    const CheckReport report = check(wrong);
    EXPECT_FALSE(report.passed());
    EXPECT_EQ(report.failed, 1);
    EXPECT_EQ(report.worst_batch, last.batch);
    EXPECT_EQ(report.worst_row, row);
    EXPECT_EQ(report.worst_col, 47);
    EXPECT_EQ(report.picture().find('X') == std::string::npos, false);
  }
}

TEST(CheckGroups, RowsOfNobodyMustStayAsTheyWere) {
  for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kE2M1}) {
    for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
      const bool row_experts = grouping == Grouping::kContiguous;
      GroupedResult wrong =
          make_grouped(grouped_problem(grouping, type), {row_experts, ExpertRows::kRagged});
      std::vector<bool> computed(static_cast<size_t>(row_experts ? 40 : 200));
      core::RowGroups all(wrong.problem, wrong.buffers);
      for (core::RowGroup group; all.next(group);) {
        for (int64_t row = 0; row < group.rows; ++row)
          computed[static_cast<size_t>(group.a_batch * 40 + group.row_begin + row)] = true;
      }
      const auto row = std::find(computed.begin(), computed.end(), false) - computed.begin();
      wrong.output.d.data()[core::bytes_of(type, row * 48 + 47)] = 0;
      const CheckReport report = check(wrong);
      EXPECT_FALSE(report.passed()) << name_of(type);
      EXPECT_EQ(report.failed, 0);
      EXPECT_EQ(report.written_elsewhere, 2);  // at least a byte of NVFP4, so of two neighbours
      const auto ignored = check_result(wrong.problem, wrong.buffers, Isa::kScalar);
      EXPECT_TRUE(ignored->passed()) << "what was there before is not known";
    }
  }
}

}  // namespace
}  // namespace dualgemm::verify
