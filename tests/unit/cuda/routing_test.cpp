// route_tokens() and combine_tokens() on a GPU against plain loops. (The interpreter runs the same
// kernels in tests/kernels/experts.)
#include <gtest/gtest.h>

#include "api/backend.hpp"
#include "dualgemm/experts.hpp"
#include "kernels/experts/routing_checks.hpp"
#include "unit/cuda/gpu_arrays.hpp"

namespace dualgemm::test {
namespace {

using ::testing::AssertionResult;

class ExpertsDevice : public GpuArrays {
 public:
  AssertionResult route(const RoutingProblem& problem, const RoutingBuffers& buffers) {
    return done(route_tokens(problem, buffers, kOnGpu));
  }
  AssertionResult combine(const CombineProblem& problem, const CombineBuffers& buffers) {
    return done(combine_tokens(problem, buffers, kOnGpu));
  }
  AssertionResult gather(const core::Gather& gather) {
    return done(api::cuda_backend().gather_rows(gather, nullptr));
  }
};

TEST(RoutingOnGpu, IdsToRowsOfExperts) {
  DUALGEMM_NEEDS_GPU();
  ExpertsDevice device;
  check_random_routes(device, 60);
  check_large_routes(device);
}

TEST(RoutingOnGpu, RowsToTokensAndGathered) {
  DUALGEMM_NEEDS_GPU();
  ExpertsDevice device;
  check_random_combines(device, 60);
  check_gathers(device);
}

}  // namespace
}  // namespace dualgemm::test
