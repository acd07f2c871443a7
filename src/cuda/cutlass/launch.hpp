// From a problem to the launches that solve it with CUTLASS's kernels on Blackwell. Nothing here
// calls the CUDA runtime.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/cutlass/instances.hpp"
#include "cuda/cutlass/interleave.hpp"
#include "cuda/kernels/convert/tma_operand.hpp"
#include "cuda/runtime/launch_value.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::gated {

// ok, or what the kernels do not do.
Status supports(const Problem& problem);

// Whether this kernel's epilogue does it, too. Row scales are a matter of the buffers.
Status suits(const Instance& instance, const Problem& problem);

// Rows of a tile: two CTAs have one where there are rows for both, on a GPU that runs pairs.
int choose_tile_m(const Problem& problem, bool has_pairs);

// What lies in the workspace, by offsets. Depends on the plan alone.
struct Workspace {
  int64_t a = kNoCopy, sf_a = kNoCopy;  // copies of A in the form that CUTLASS takes
  int64_t weights = kNoCopy;            // interleaved; kNoCopy: they are prepared
  int64_t bytes = 0;
};
Workspace plan_workspace(const core::ResolvedProblem& problem, bool unaligned, bool prepared);

// Gate and Up of `buffers` to `out`, experts `expert_bytes` apart.
KernelLaunch interleave_weights(const core::ResolvedProblem& problem, const Buffers& buffers,
                                uint8_t* out, int64_t expert_bytes);

// Interleaved weights, and how far apart experts are; first null: to be made in the workspace.
struct Weights {
  const uint8_t* first = nullptr;
  int64_t expert_bytes = 0;
};

// In stream order.
struct Launches {
  std::vector<KernelLaunch> copies;
  GridLaunch gemm;
};
// All pointers are device memory and are not read.
Expected<Launches> build_launches(const core::ResolvedProblem& problem, const Buffers& buffers,
                                  const Weights& prepared, const Workspace& workspace, void* memory,
                                  const Instance& instance, EncodeTiled encode_tiled);

}  // namespace dualgemm::cuda::gated
