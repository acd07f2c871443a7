#include "cuda/kernels/blackwell/copies.hpp"

#include "core/arena.hpp"
#include "cuda/kernels/convert/repack.hpp"

namespace dualgemm::cuda::blackwell {
namespace {

constexpr int64_t kWorkspaceAlignment = 64;  // what the library's interface promises

}  // namespace

Copies plan_copies(const core::ResolvedProblem& problem, bool unaligned, bool prepared,
                   bool linear_a) {
  const int64_t batches = problem.problem.l;
  core::Arena arena(nullptr, kWorkspaceAlignment);
  const auto data = [&](const core::ResolvedMatrix& matrix) {
    if (!unaligned && !data_needs_copy(matrix, batches)) return Copies::kDirect;
    return arena.take_offset(copied_row_bytes(matrix) * matrix.rows * batches);
  };
  const auto scales = [&](const core::ResolvedMatrix& matrix, bool linear) {
    if (matrix.type != DataType::kE2M1) return Copies::kDirect;  // there are none
    const bool suit =
        swizzled_scales_suit(matrix, batches) || (linear && linear_scales_suit(matrix, batches));
    if (!unaligned && suit) return Copies::kDirect;
    return arena.take_offset(swizzled_scale_bytes(matrix.rows, matrix.sf_cols) * batches);
  };
  Copies copies;
  copies.a = data(problem.a);
  if (!prepared) {
    copies.gate = data(problem.gate);
    copies.up = data(problem.up);
  }
  copies.sf_a = scales(problem.a, linear_a);
  if (!prepared) {
    copies.sf_gate = scales(problem.gate, false);
    copies.sf_up = scales(problem.up, false);
  }
  copies.workspace_bytes = arena.used();
  return copies;
}

}  // namespace dualgemm::cuda::blackwell
