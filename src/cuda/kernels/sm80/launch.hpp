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

// What of the problem and its weights an instance must be for.
struct InstanceRequest {
  const Problem& problem;
  Pass pass = Pass::kFused;
  bool prepared = false;
};

// The compiled instance for (validated, supported) `problem` on a GPU.
const Instance& choose_instance(const InstanceRequest& request, const DeviceCaps& caps);

bool is_for(const Config& config, const InstanceRequest& request);

// The first one with these tiles and warps along k; 0: any. null: not compiled.
struct InstanceShape {
  int64_t tile_m, tile_n = 0, warps_k = 0;
};
const Instance* find_instance(const InstanceRequest& request, const InstanceShape& shape);

// Stages of the ring on a GPU: as many as were fastest, if its shared memory holds them.
int64_t stages_for(const Config& config, const Problem& problem, const DeviceCaps& caps);

// Bytes of R1: [l*m][n] in FP32, each row at a multiple of 32 bytes.
int64_t r1_bytes(const Problem& problem);

// The workspace of kFused: room for the table of groups' tiles, else nothing.
int64_t workspace_bytes(const Problem& problem, const Instance& instance);

// What a launch is made of. No copies: operands are read where they lie, 16, 8 and 4 bytes of A,
// codes and scales at a time where all rows suit that. All pointers of `buffers`, prepared (packed
// weights, of an instance that takes them) and workspace (R1 of Pass::kGate and kUp, the filled
// table of groups) are device memory and are not read.
struct LaunchParts {
  const core::ResolvedProblem& problem;
  const Buffers& buffers;
  const Instance& instance;
  int64_t stages;
  void* workspace = nullptr;
  const uint8_t* prepared = nullptr;
};
KernelLaunch build_launch(const LaunchParts& parts);

// The launches of kFused in stream order: with groups the table comes first.
std::vector<KernelLaunch> build_fused(const LaunchParts& parts);

}  // namespace dualgemm::cuda::sm80
