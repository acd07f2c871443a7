// From a problem to the launch that solves it on any GPU of compute capability 8.0 or later. Plain
// functions, whose results a GPU and an interpreter run alike.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/sm80/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm80 {

// ok, or what the kernel does not do.
Status supports(const Problem& problem);
Status supports_r1(const Problem& problem);  // and R1 has a size that can be

// kFused, or kGroups.
Pass fused_pass(const Problem& problem);

// The compiled instance for (validated, supported) `problem`. Every choice gives the same bits.
const Instance& choose_instance(const Problem& problem, Pass pass);

// The instance can compute this pass of the problem.
bool is_for(const Config& config, const Problem& problem, Pass pass);

// The first one with these tiles that can write D; tile_n 0: any. null: not compiled.
const Instance* find_instance(const Problem& problem, int64_t tile_m, int64_t tile_n, Pass pass);

// Bytes of R1: [l*m][n] in FP32, each row at a multiple of 32 bytes.
int64_t r1_bytes(const Problem& problem);

// The workspace of fused_pass(): room for the table of groups' tiles, else nothing.
int64_t workspace_bytes(const Problem& problem, const Instance& instance);

// No copies: operands are read where they lie, 16 bytes at a time if all rows begin at a multiple
// of 16 bytes. All pointers of `buffers`, and the workspace (R1 of Pass::kGate and kUp, the filled
// table of groups), are device memory and are not read.
KernelLaunch build_launch(const core::ResolvedProblem& problem, const Buffers& buffers,
                          void* workspace, const Instance& instance);

// fused_pass() in stream order: of groups the table comes first.
std::vector<KernelLaunch> build_fused(const core::ResolvedProblem& problem, const Buffers& buffers,
                                      void* workspace, const Instance& instance);

}  // namespace dualgemm::cuda::sm80
