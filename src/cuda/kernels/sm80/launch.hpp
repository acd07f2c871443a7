// From a problem to the launch that solves it on any GPU of compute capability 8.0 or later. Plain
// functions, whose results a GPU and an interpreter run alike.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cuda/kernels/sm80/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm80 {

// ok, or what the kernel does not do.
Status supports(const Problem& problem);

// The compiled instance for (validated, supported) `problem`. Every choice gives the same bits.
const Instance& choose_instance(const Problem& problem);

const Instance* find_instance(DataType a_type, int64_t tile_m);  // null: not compiled

// No workspace, no copies: operands are read where they lie, 16 bytes at a time if all rows begin
// at a multiple of 16 bytes. All pointers of `buffers` are device memory and are not read.
KernelLaunch build_launch(const core::ResolvedProblem& problem, const Buffers& buffers,
                          const Instance& instance);

}  // namespace dualgemm::cuda::sm80
