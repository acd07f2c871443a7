// From a problem to the launch that solves it on any GPU of compute capability 8.0 or later. Plain
// functions, whose results a GPU and an interpreter run alike.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/sm80/division.hpp"
#include "cuda/kernels/sm80/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm80 {

// ok, or what the kernel does not do.
Status supports(const Problem& problem);
Status supports_r1(const Problem& problem);  // and R1 has a size that can be

// What of the problem and its weights an instance must be for.
struct InstanceRequest {
  const Problem& problem;
  Pass pass = Pass::kFused;
  bool prepared = false;
};

// The compiled instance for (validated, supported) `problem` on a GPU.
const Instance& choose_instance(const InstanceRequest& request, const DeviceCaps& caps);

bool is_for(const Config& config, const InstanceRequest& request);

// Whether an instance can divide k into so many parts.
bool divides_k_by(const Config& config, const Problem& problem, int64_t parts);

// The first one with these tiles that can divide k into so many parts, between its warps or between
// CTAs; 0: any. null: not compiled.
struct InstanceShape {
  int64_t tile_m, tile_n = 0, k_parts = 0;
};
const Instance* find_instance(const InstanceRequest& request, const InstanceShape& shape);

// Bytes of R1: [l*m][n] in FP32, each row at a multiple of 32 bytes.
int64_t r1_bytes(const Problem& problem);

// The workspace of kFused: room for the table of groups' tiles, or for the sums of CTAs that divide
// k, else nothing.
int64_t workspace_bytes(const Problem& problem, const Instance& instance, const Division& division);

// What a launch is made of. No copies: operands are read where they lie, 16, 8 and 4 bytes of A,
// codes and scales at a time where all rows suit that. All pointers of `buffers`, prepared (packed
// weights, of an instance that takes them) and workspace (R1 of Pass::kGate and kUp, the filled
// table of groups, else sums of CTAs that divide k) are device memory and are not read.
struct LaunchParts {
  const core::ResolvedProblem& problem;
  const Buffers& buffers;
  const Instance& instance;
  void* workspace = nullptr;
  const uint8_t* prepared = nullptr;
  Division division = {};
};
KernelLaunch build_launch(const LaunchParts& parts);

// The launches of kFused in stream order: with groups the table comes first, where CTAs divide k
// what adds their sums last.
std::vector<KernelLaunch> build_fused(const LaunchParts& parts);

}  // namespace dualgemm::cuda::sm80
