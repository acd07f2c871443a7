// Baselines of whole programs: kernels are named as C++ writes them, which an other build does too.
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

#ifdef PTXSIM_NVCC_PROGRAM

namespace ptxsim_test {
namespace {

using Json = nlohmann::json;

TEST_F(Program, BaselinesOfProgramsKnowRacesOfKernelsAndOfStreams) {
  for (const auto& [part, rule, kernel] :
       {std::tuple("race", "R16", "(anonymous namespace)::racy_sum(int const*, int*)"),
        std::tuple("streams_race", "R23", "(anonymous namespace)::take(int const*, int*)")}) {
    SCOPED_TRACE(part);
    const Outcome before =
        start({"exec", "--write-baseline", "known.json", "--", PTXSIM_NVCC_PROGRAM, part});
    EXPECT_EQ(before.exit_code, 1) << before;
    const Json entries = Json::parse(read("known.json"));
    ASSERT_EQ(entries.size(), 1u) << entries;
    EXPECT_EQ(entries.at(0).at("rule"), rule);
    EXPECT_EQ(entries.at(0).at("kernel"), kernel);
    const Outcome after =
        start({"exec", "--baseline", "known.json", "--", PTXSIM_NVCC_PROGRAM, part});
    EXPECT_EQ(after.exit_code, 0) << after;
    EXPECT_TRUE(contains(after.err, "0 errors")) << after;
    EXPECT_FALSE(contains(after.err, "stale")) << after;
  }
}

// What has no rule cannot be known: the program still fails.
TEST_F(Program, BaselinesOfProgramsHaveNoFaults) {
  start({"exec", "--write-baseline", "known.json", "--", PTXSIM_NVCC_PROGRAM, "fault"});
  EXPECT_EQ(Json::parse(read("known.json")), Json::array());
  EXPECT_NE(
      start({"exec", "--baseline", "known.json", "--", PTXSIM_NVCC_PROGRAM, "fault"}).exit_code, 0);
}

}  // namespace
}  // namespace ptxsim_test

#endif
