// From a problem to the launches that solve it on Blackwell. Nothing here calls the CUDA runtime:
// all is decided and filled in by plain functions, whose results a GPU and an interpreter run
// alike.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/convert/tma_operand.hpp"
#include "cuda/kernels/sm100a/config.hpp"
#include "cuda/kernels/sm100a/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm100a {

// ok, or what the kernel does not do.
Status supports(const Problem& problem);

// The part of it that every kernel of this folder's operands has: A's type, extents, strides.
Status check_operands(const Problem& problem);

// The compiled instance for (validated, supported) `problem` on a GPU of `num_sms` SMs.
const Instance& choose_instance(const Problem& problem, int num_sms);

const Instance* find_instance(int64_t tile_n, DataType output);  // null: not compiled

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
// `prepared`: weights are not read where they lay. `linear_a`: linear scales of A are, if their rows
// are multiples of 16 bytes apart.
Copies plan_copies(const core::ResolvedProblem& problem, bool unaligned, bool prepared = false,
                   bool linear_a = false);

// The launches in stream order: the copies, then the kernel. All pointers of `buffers` and
// `workspace` are device memory and are not read. An operand that must be copied and has no room
// among `copies` is an error.
Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers, const Copies& copies,
                                                   void* workspace, const Instance& instance,
                                                   EncodeTiled encode_tiled);

}  // namespace dualgemm::cuda::sm100a
