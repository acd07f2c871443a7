// The kernels around the experts' products in the interpreter, against plain loops.
#include "cuda/kernels/experts/routing.hpp"
#include "kernels/experts/routing_checks.hpp"
#include "kernels/simulation/simulated_arrays.hpp"

namespace dualgemm::test {
namespace {

using ::testing::AssertionResult;

class SimulatedExperts : public SimulatedArrays {
 public:
  using SimulatedArrays::SimulatedArrays;
  AssertionResult route(const RoutingProblem& problem, const RoutingBuffers& buffers) {
    return run(cuda::route_launches(problem, buffers));
  }
  AssertionResult combine(const CombineProblem& problem, const CombineBuffers& buffers) {
    return run(cuda::combine_launches(problem, buffers));
  }
  AssertionResult gather(const core::Gather& gather) { return run(cuda::gather_launches(gather)); }
};

TEST(ExpertsKernels, IdsToRowsOfExperts) {
  SimulatedExperts device;
  check_random_routes(device, 60);
}
TEST(ExpertsKernels, ManyIdsAndManyExperts) {
  SimulatedExperts device;
  check_large_routes(device);
}
TEST(ExpertsKernels, EverySchedule) {
  for (const ptxsim::Schedule schedule :
       {ptxsim::Schedule::kEager, ptxsim::Schedule::kLazy, ptxsim::Schedule::kRandom}) {
    SimulatedExperts device({.schedule = schedule, .strict = true});
    check_random_routes(device, 12);
    check_random_combines(device, 6);
  }
}
TEST(ExpertsKernels, RowsToTokens) {
  SimulatedExperts device;
  check_random_combines(device, 60);
}
TEST(ExpertsKernels, RowsGathered) {
  SimulatedExperts device;
  check_gathers(device);
}
TEST(ExpertsKernels, MoreExpertsThanTheKernelCounts) {
  const auto launches = cuda::route_launches({.tokens = 1, .experts = kMostRoutedExperts + 1}, {});
  ASSERT_FALSE(launches.ok());
  EXPECT_EQ(launches.status().argument(), "experts");
}

}  // namespace
}  // namespace dualgemm::test
