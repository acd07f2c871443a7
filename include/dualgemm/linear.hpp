// One product, with the same formats, layouts, groups, outputs and prepared weights as the dual
// one:
//
//   D[l] = act(alpha * A[l] * W[l]^T + bias[l]) + residual[l]       act: by default the identity
//   A: m x k    W: n x k    D and the residual: m x n    bias: n
//
//   // prologue: linear_operands          (m, n, k, and where A, W, their scales and D lie)
//   dualgemm::LinearProblem problem{.m = m, .n = n, .k = k};
//   dualgemm::LinearBuffers buffers{.a = a, .a_scales = a_scales, .w = w, .w_scales = w_scales,
//                                   .alpha = alpha, .d = d};
//   dualgemm::Status status = dualgemm::run(problem, buffers);
//   if (!status.ok()) return report(status.message());
//
// The kernels are those of the dual product: W's rows are cut into two halves, and a tile holds the
// products of columns j and up_column + j. So everything else of dualgemm.hpp works on what
// dual_problem() and dual_buffers() return: plans, prepare(), workspaces, run().
#pragma once

#include <cstdint>

#include "dualgemm/dualgemm.hpp"

namespace dualgemm {

struct LinearProblem {
  int64_t m = 0;  // rows of A and D (kContiguous: in total)
  int64_t n = 0;  // rows of W, columns of D
  int64_t k = 0;  // columns of A and W; a multiple of 16
  int64_t l = 1;  // batches or experts
  Matrix a{};
  Matrix w{};                        // always kE2M1
  Matrix d{.type = DataType::kF16};  // kE2M1: n % 16 == 0, no residual
  Grouping grouping = Grouping::kNone;
  bool batch_invariant = false;     // as Problem::batch_invariant
  BiasType bias = BiasType::kNone;  // of LinearBuffers::bias
  bool residual = false;            // LinearBuffers::residual is added, in FP32 and last
  // The factor that one product gives: silu is x*sigmoid(x). Not one of the two SwiGLU kinds.
  Activation act{.kind = ActivationKind::kIdentity};
  int64_t a_rows = 0;  // as Problem::a_rows
  bool operator==(const LinearProblem&) const = default;
};

// As Buffers; what is not said here is said there.
struct LinearBuffers {
  const void* a = nullptr;
  const uint8_t* a_scales = nullptr;
  const float* a_row_scale = nullptr;
  const void* w = nullptr;  // null is legal when prepared weights are given
  const uint8_t* w_scales = nullptr;
  float alpha = 1.0f;                      // dequantising global scale of A times that of W
  const float* alpha_per_batch = nullptr;  // optional [l]; replaces alpha
  const void* bias = nullptr;              // [l][n]
  const void* residual = nullptr;          // as D; may be D
  const int32_t* expert_offsets = nullptr;
  const int32_t* expert_rows = nullptr;
  const int32_t* row_experts = nullptr;
  const int32_t* a_row_index = nullptr;
  void* d = nullptr;
  uint8_t* d_scales = nullptr;
  float d_global_scale = 1.0f;
  const PreparedWeights* prepared = nullptr;
  const PreparedView* prepared_view = nullptr;
  void* stream = nullptr;
};

// The dual problem that computes it, for make_plan(), operand_sizes(), validate(): kSideBySide, or
// kActivatedSideBySide where act is not the identity. Its n is the number of rows of one half: Gate
// is the first n rows of W, Up the last n. Scales can be cut only at multiples of 16 rows (128 if
// swizzled), so the halves overlap unless W's rows are a multiple of 32 (256); the rows in both are
// computed twice and stored once. An error is about `problem` itself.
Expected<Problem> dual_problem(const LinearProblem& problem);

// The buffers that go with it. Precondition: dual_problem(problem).ok().
Buffers dual_buffers(const LinearProblem& problem, const LinearBuffers& buffers);

Expected<Plan> make_plan(const LinearProblem& problem, const PlanOptions& options = {});
Status validate(const LinearProblem& problem, const LinearBuffers& buffers);

// One call for everything, as the run() of dualgemm.hpp.
Status run(const LinearProblem& problem, const LinearBuffers& buffers,
           const PlanOptions& options = {}, RunInfo* info = nullptr);

}  // namespace dualgemm
