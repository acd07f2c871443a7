// The steps of a gated MLP: what each computes, and where in the one workspace its results lie.
#pragma once

#include <cstdint>
#include <vector>

#include "core/gather.hpp"
#include "dualgemm/experts.hpp"
#include "dualgemm/mlp.hpp"

namespace dualgemm::api {

// Whether X goes through the workspace, transformed and not quantised.
bool stores_x(const MlpProblem& problem);
// Whether H is quantised by a step of its own.
bool quantizes_h_apart(const MlpProblem& problem);
// Whether rows are tokens', with ids of experts.
inline bool is_routed(const MlpProblem& problem) { return problem.top_k > 0; }
// Rows of the products, and what groups they are.
inline int64_t product_rows(const MlpProblem& problem) {
  return is_routed(problem) ? problem.m * problem.top_k : problem.m;
}
inline Grouping product_grouping(const MlpProblem& problem) {
  return is_routed(problem) ? Grouping::kContiguous : problem.grouping;
}

// X as NVFP4, of `problem.quantize_x`.
QuantizeProblem quantize_problem_of(const MlpProblem& problem);
// H as NVFP4, of quantizes_h_apart().
QuantizeProblem quantize_h_problem_of(const MlpProblem& problem);
// X, or H in its place, transformed and not quantised.
TransformProblem transform_x_problem_of(const MlpProblem& problem);
TransformProblem transform_h_problem_of(const MlpProblem& problem);
// Without a gate: H = act(X * Up^T). Precondition of the next three, too: it is valid.
LinearProblem up_problem_of(const MlpProblem& problem, bool by_index = true);
// H = act(X * Gate^T) (*) (X * Up^T), or the two halves of up_problem_of(). by_index: where
// is_routed(), X is read by index; else its rows have been gathered.
Problem gate_up_problem_of(const MlpProblem& problem, bool by_index = true);
// Y = H * Down^T.
LinearProblem down_problem_of(const MlpProblem& problem);
// The steps around them. Precondition: is_routed().
RoutingProblem routing_problem_of(const MlpProblem& problem);
CombineProblem combine_problem_of(const MlpProblem& problem);

// Offsets into the workspace, each at a multiple of 64.
struct MlpWorkspace {
  int64_t x_codes = 0, x_scales = 0, x_row_scale = 0;
  int64_t x = 0;  // of stores_x()
  int64_t h = 0, h_scales = 0;
  int64_t h_codes = 0, h_row_scale = 0;  // of quantizes_h_apart(), with h_scales
  int64_t offsets = 0, row_tokens = 0, token_places = 0, row_scale = 0;  // of is_routed()
  int64_t rows_x = 0, rows_x_scales = 0;  // X, or its codes, gathered
  int64_t rows_y = 0;                     // of Down
  int64_t gate_up = 0, down = 0;          // of the two plans
  int64_t bytes = 0;                      // in all
};
// Precondition: valid problems, and plans of them.
MlpWorkspace workspace_of(const MlpProblem& problem, const Plan& gate_up, const Plan& down);

// The buffers of each step; `workspace` begins at a multiple of 64.
QuantizeBuffers quantize_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                                    const MlpWorkspace& places, void* workspace);
QuantizeBuffers quantize_h_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                                      const MlpWorkspace& places, void* workspace);
RoutingBuffers routing_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                                  const MlpWorkspace& places, void* workspace);
CombineBuffers combine_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                                  const MlpWorkspace& places, void* workspace);
// What is gathered where the products do not read X by index; the second one is of NVFP4's scales.
std::vector<core::Gather> gathers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                                     const MlpWorkspace& places, void* workspace);
TransformBuffers transform_x_buffers_of(const MlpBuffers& buffers, const MlpWorkspace& places,
                                        void* workspace);
TransformBuffers transform_h_buffers_of(const MlpBuffers& buffers, const MlpWorkspace& places,
                                        void* workspace);
// Gate and Up alone, for prepare().
Buffers gate_up_weights_of(const MlpProblem& problem, const MlpBuffers& buffers);
Buffers gate_up_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                           const MlpWorkspace& places, void* workspace, bool by_index = true);
LinearBuffers down_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                              const MlpWorkspace& places, void* workspace);

}  // namespace dualgemm::api
