// Which problems the kernel takes, with which instance, and which operands must be copied first.
#include <fmt/format.h>

#include "core/arena.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/convert/repack.hpp"
#include "cuda/kernels/convert/tma_operand.hpp"
#include "cuda/kernels/sm100a/extents.hpp"
#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/runtime/limits.hpp"

namespace dualgemm::cuda::sm100a {
namespace {

constexpr int64_t kWorkspaceAlignment = 64;  // what the library's interface promises

}  // namespace

Status check_operands(const Problem& problem) {
  if (problem.a.type != DataType::kE2M1) {
    return Status::unsupported("a.type", dualgemm::name_of(problem.a.type),
                               "the sm_100a kernel takes e2m1");
  }
  DUALGEMM_TRY(check_extents(problem));
  const core::ResolvedProblem resolved = core::resolve(problem);
  DUALGEMM_TRY(check_strides("a", resolved.a));
  DUALGEMM_TRY(check_strides("gate", resolved.gate));
  return check_strides("up", resolved.up);
}

Status supports(const Problem& problem) {
  if (problem.grouping != Grouping::kNone) {
    return Status::unsupported("grouping", dualgemm::name_of(problem.grouping),
                               "the sm_100a kernel takes none");
  }
  DUALGEMM_TRY(check_operands(problem));
  int64_t tiles = ceil_div(problem.m, kTileM) * ceil_div(problem.n, 64);  // below 2^50
  if (!__builtin_mul_overflow(tiles, problem.l, &tiles) && tiles <= kMaxCtas) return {};
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "must be at most 2^31 - 1 tiles of 128 x 64");
}

const Instance* find_instance(int64_t tile_n, DataType output) {
  for (const Instance& instance : instances()) {
    if (instance.config == Config{static_cast<int>(tile_n), output_type_of(output)})
      return &instance;
  }
  return nullptr;
}

const Instance& choose_instance(const Problem& problem, int num_sms) {
  return *find_instance(choose_tile_n(problem.m, problem.n, problem.l, num_sms), problem.d.type);
}

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

}  // namespace dualgemm::cuda::sm100a
