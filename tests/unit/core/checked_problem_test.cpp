// A CheckedProblem is what validate() lets pass, resolved; there is none of anything else.
#include "core/checked_problem.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#include "dualgemm/dualgemm.hpp"

namespace dualgemm::core {
namespace {

static_assert(!std::is_default_constructible_v<CheckedProblem>);
static_assert(!std::is_constructible_v<CheckedProblem, Problem>);
static_assert(!std::is_convertible_v<Problem, CheckedProblem>);

TEST(CheckedProblem, IsTheResolvedProblem) {
  const Problem problem{.m = 3, .n = 8, .k = 32, .l = 2};
  const auto checked = CheckedProblem::of(problem);
  ASSERT_TRUE(checked) << checked.status().message();
  EXPECT_EQ(checked->problem(), problem);
  EXPECT_EQ(checked->resolved().problem, problem);
  EXPECT_EQ(checked->resolved().a.ld, 32);
  EXPECT_EQ(checked->resolved().gate.rows, 8);
  EXPECT_EQ(checked->resolved().d.batch_stride, 3 * 8);
}

TEST(CheckedProblem, RefusesAsValidateDoes) {
  const Problem bad[] = {
      {.m = 1, .n = 8, .k = 40},
      {.m = -1, .n = 8, .k = 32},
      {.m = 1, .n = 8, .k = 32, .a = {.ld = 31}},
      {.m = 1, .n = int64_t{1} << 60, .k = 32},
  };
  for (const Problem& problem : bad) {
    const auto checked = CheckedProblem::of(problem);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.status().message(), validate(problem).message());
    EXPECT_NE(checked.status().code(), StatusCode::kOk);
  }
}

}  // namespace
}  // namespace dualgemm::core
