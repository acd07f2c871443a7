#include "tools/verify/operands.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "core/problem.hpp"
#include "dualgemm/dualgemm.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm::verify {
namespace {

Problem problem_of(int64_t m, int64_t n, int64_t k) {
  Problem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  return problem;
}

bool same(const AlignedBytes& x, const AlignedBytes& y) {
  return x.size() == y.size() &&
         (x.size() == 0 || std::memcmp(x.data(), y.data(), static_cast<size_t>(x.size())) == 0);
}

TEST(AlignedBytes, AlignedFilledAndBounded) {
  const Expected<AlignedBytes> bytes = allocate_filled(100, 0xAB);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes->data()) % 64, 0u);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(bytes->data()[i], 0xAB);
  const Expected<AlignedBytes> huge = allocate_filled(int64_t{1} << 60, 0);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.status().code(), StatusCode::kOutOfMemory);
  EXPECT_FALSE(allocate_filled(-1, 0).ok());
  EXPECT_TRUE(allocate_filled(0, 0).ok());
}

TEST(RandomOperands, DependOnTheSeedAndNotOnThreads) {
  const Problem problem = problem_of(9, 33, 64);
  const char* const set = std::getenv("DUALGEMM_NUM_THREADS");
  const std::string before = set == nullptr ? "" : set;  // "" is not set
  setenv("DUALGEMM_NUM_THREADS", "1", 1);
  const Expected<Operands> one = random_operands(problem, RandomKind::kEdges, 5);
  setenv("DUALGEMM_NUM_THREADS", "3", 1);
  const Expected<Operands> three = random_operands(problem, RandomKind::kEdges, 5);
  setenv("DUALGEMM_NUM_THREADS", before.c_str(), 1);
  const Expected<Operands> other = random_operands(problem, RandomKind::kEdges, 6);
  ASSERT_TRUE(one.ok() && three.ok() && other.ok());
  EXPECT_TRUE(same(one->a, three->a) && same(one->gate_scales, three->gate_scales) &&
              same(one->up, three->up));
  EXPECT_EQ(one->a_row_scale, three->a_row_scale);
  EXPECT_FALSE(same(one->a, other->a));
  EXPECT_FALSE(same(one->gate, one->up));
}

TEST(RandomOperands, EdgesHoldEveryEdgeAndNoNan) {
  const Expected<Operands> operands =
      random_operands(problem_of(64, 64, 1024), RandomKind::kEdges, 1);
  ASSERT_TRUE(operands.ok());
  std::set<uint8_t> scales;
  for (int64_t i = 0; i < operands->gate_scales.size(); ++i)
    scales.insert(operands->gate_scales.data()[i]);
  for (const uint8_t edge : {0x00, 0x01, 0x07, 0x08, 0x38, 0x48, 0x80, 0xB8})
    EXPECT_TRUE(scales.count(edge)) << int{edge};
  EXPECT_FALSE(scales.count(0x7F) || scales.count(0xFF));
  EXPECT_EQ(operands->a_row_scale.size(), 64u);  // odd seed
}

TEST(RandomOperands, BiasesOfTheProblemsType) {
  Problem problem = problem_of(3, 33, 64);
  problem.l = 2;
  EXPECT_EQ(random_operands(problem, RandomKind::kUniform, 5)->buffers().bias_gate, nullptr);
  for (const BiasType type : {BiasType::kF32, BiasType::kBF16}) {
    problem.bias = type;
    const Expected<Operands> operands = random_operands(problem, RandomKind::kUniform, 5);
    Expected<Output> output = allocate_output(problem);
    ASSERT_TRUE(operands.ok() && output.ok());
    EXPECT_EQ(operands->bias_gate.size(), 2 * 33 * core::bytes_of(type));
    EXPECT_EQ(operands->bias_up.size(), operands->bias_gate.size());
    EXPECT_FALSE(same(operands->bias_gate, operands->bias_up));
    Buffers buffers = operands->buffers();
    output->attach_to(buffers);
    EXPECT_EQ(validate(problem, buffers).message(), "ok");
  }
}

// The alphas keep D in fp16's range and away from 0, so that nothing is compared with infinity.
TEST(RandomOperands, ProductsHaveTheDeviationPromised) {
  for (const RandomKind kind : {RandomKind::kUniform, RandomKind::kEdges}) {
    for (const DataType a_type : {DataType::kE2M1, DataType::kBF16}) {
      Problem problem = problem_of(32, 64, 512);
      problem.a.type = a_type;
      problem.act.kind = ActivationKind::kIdentity;  // D = g * u
      problem.d.type = DataType::kF32;
      const Expected<Operands> operands = random_operands(problem, kind, 2);
      Expected<Output> output = allocate_output(problem);
      ASSERT_TRUE(operands.ok() && output.ok());
      Buffers buffers = operands->buffers();
      output->attach_to(buffers);
      PlanOptions options;
      options.strategy = StrategyId::kReference;
      const Status status = run(problem, buffers, options);
      ASSERT_TRUE(status.ok()) << status.message();
      double squares = 0.0;
      for (int i = 0; i < 32 * 64; ++i) {
        const double d = reinterpret_cast<const float*>(output->d.data())[i];
        ASSERT_TRUE(std::isfinite(d));
        squares += d * d;
      }
      const double deviation = std::sqrt(squares / (32 * 64));  // 2 * 1.5 = 3 expected
      EXPECT_GT(deviation, 1.5) << name_of(a_type);
      EXPECT_LT(deviation, 6.0) << name_of(a_type);
    }
  }
}

TEST(RandomOperands, RefusesInvalidProblems) {
  EXPECT_FALSE(random_operands(problem_of(4, 4, 17), RandomKind::kUniform, 1).ok());
  Problem grouped = problem_of(4, 16, 16);
  grouped.grouping = Grouping::kContiguous;
  EXPECT_EQ(random_operands(grouped, RandomKind::kUniform, 1, {.rows = ExpertRows::kNobody})
                .status()
                .message(),
            "rows: nobody; offsets give every row to an expert");
}

TEST(RandomOperands, RaggedRowsLeaveAnExpertOutAndOneExpertMayHaveAll) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Problem p = problem_of(40, 16, 16);
    p.l = 5;
    p.grouping = Grouping::kContiguous;
    const std::vector<int32_t> offsets =
        random_operands(p, RandomKind::kUniform, seed)->expert_offsets;
    ASSERT_EQ(offsets.size(), 6u);
    EXPECT_EQ(offsets.front(), 0);
    EXPECT_EQ(offsets.back(), 40);
    EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end()));
    EXPECT_NE(std::adjacent_find(offsets.begin(), offsets.end()), offsets.end()) << "none is empty";
    EXPECT_GE(std::set<int32_t>(offsets.begin(), offsets.end()).size(), 4u) << "fewer than three";

    const auto experts_of = [&](ExpertRows rows) {
      return random_operands(p, RandomKind::kUniform, seed, {.row_experts = true, .rows = rows})
          ->row_experts;
    };
    const std::vector<int32_t> ragged = experts_of(ExpertRows::kRagged);
    const auto is_expert = [](int32_t expert) { return expert >= 0 && expert < 5; };
    const auto computed = std::count_if(ragged.begin(), ragged.end(), is_expert);
    EXPECT_GT(computed, 20);
    EXPECT_LT(computed, 40);
    const std::vector<int32_t> one = experts_of(ExpertRows::kOneExpert);
    EXPECT_EQ(std::set<int32_t>(one.begin(), one.end()).size(), 1u);
    const std::vector<int32_t> nobody = experts_of(ExpertRows::kNobody);
    EXPECT_TRUE(std::none_of(nobody.begin(), nobody.end(), is_expert));

    p.grouping = Grouping::kMasked;
    const std::vector<int32_t> rows = random_operands(p, RandomKind::kUniform, seed)->expert_rows;
    ASSERT_EQ(rows.size(), 5u);
    EXPECT_GE(std::count(rows.begin(), rows.end(), 0), 1);
    EXPECT_TRUE(std::all_of(rows.begin(), rows.end(), [](int32_t r) { return r >= 0 && r <= 40; }));
  }
}

TEST(RandomNormal, MomentsAndOutliers) {
  std::vector<float> values(64 * 1024);
  ASSERT_TRUE(random_normal(DataType::kF32, 64 * 1024, 2.0, 0, 1.0, 9, values.data()).ok());
  double sum = 0.0, squares = 0.0;
  for (const float v : values) sum += v, squares += static_cast<double>(v) * v;
  EXPECT_NEAR(sum / values.size(), 0.0, 0.05);
  EXPECT_NEAR(std::sqrt(squares / values.size()), 2.0, 0.05);

  ASSERT_TRUE(random_normal(DataType::kF32, 64 * 1024, 1.0, 1024, 20.0, 9, values.data()).ok());
  int loud = 0;
  for (int col = 0; col < 1024; ++col) {
    double column = 0.0;
    for (int row = 0; row < 64; ++row)
      column += std::abs(values[static_cast<size_t>(row * 1024 + col)]);
    loud += column / 64 > 8.0;
  }
  EXPECT_GE(loud, 4);
  EXPECT_LE(loud, 48);
  EXPECT_FALSE(random_normal(DataType::kE2M1, 16, 1.0, 0, 1.0, 9, values.data()).ok());
}

TEST(RandomShapes, AreValidReproducibleAndSuitQuantisedOutput) {
  for (const DataType type : {DataType::kF16, DataType::kE2M1}) {
    const std::vector<RandomShape> shapes = random_shapes(type, 50, 11),
                                   again = random_shapes(type, 50, 11);
    ASSERT_EQ(shapes.size(), 50u);
    std::set<int64_t> ms;
    for (size_t i = 0; i < shapes.size(); ++i) {
      Problem problem = problem_of(shapes[i].m, shapes[i].n, shapes[i].k);
      problem.l = shapes[i].l;
      problem.d.type = type;
      EXPECT_TRUE(validate(problem).ok()) << validate(problem).message();
      EXPECT_EQ(shapes[i].m, again[i].m);
      EXPECT_EQ(shapes[i].seed, again[i].seed);
      ms.insert(shapes[i].m);
    }
    EXPECT_GE(ms.size(), 8u);
  }
}

}  // namespace
}  // namespace dualgemm::verify
