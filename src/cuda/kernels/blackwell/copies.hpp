// Which of a problem's operands a Blackwell kernel cannot read where they lie. Nothing here calls
// the CUDA runtime.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cuda/kernels/convert/tma_operand.hpp"

namespace dualgemm::cuda::blackwell {

// Copies that the TMA unit makes necessary, by offsets into the workspace; kDirect: the operand is
// read where it lies. Depends on the problem alone.
//   data    rows or batches that are no multiple of 16 bytes apart (always so where k % 32 != 0 and
//           rows are tight)
//   scales  linear ones; swizzled ones with k % 64 != 0, because a scale tile's padding along k
//   would be
//           multiplied (0 * NaN is NaN); batches no multiple of 16 bytes apart
// `unaligned`: there is room for a copy of every operand; those that start at a multiple of 16
// bytes are read where they lie all the same, if nothing else forbids it.
struct Copies {
  static constexpr int64_t kDirect = kNoCopy;
  int64_t a = kDirect, gate = kDirect, up = kDirect;
  int64_t sf_a = kDirect, sf_gate = kDirect, sf_up = kDirect;
  int64_t workspace_bytes = 0;
};
// `prepared`: weights are not read where they lay. `linear_a`: linear scales of A are, if their
// rows are multiples of 16 bytes apart.
Copies plan_copies(const core::ResolvedProblem& problem, bool unaligned, bool prepared = false,
                   bool linear_a = false);

}  // namespace dualgemm::cuda::blackwell
