// From a problem to the launches that solve it on sm_120a or sm_121a. Plain functions, whose
// results a GPU and an interpreter run alike.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/sm120a/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm120a {

// ok, or what the kernel does not do.
Status supports(const Problem& problem);

// null: not compiled.
const Instance* find_instance(int64_t tile_m);

// Whether the kernel knows a ring of so many stages, and a CTA can have it.
bool has_stages(const Config& config, int64_t stages);

// Room for the table of groups' tiles, else nothing.
int64_t workspace_bytes(const Problem& problem, const Instance& instance);

// What the launches are made of. No copies: operands are read where they lie, codes 16 or 8 bytes
// and scales 4 at a time where all rows suit that. All pointers of `buffers`, prepared (packed
// weights instead of Gate and Up, or null) and workspace are device memory and are not read.
struct LaunchParts {
  const core::ResolvedProblem& problem;
  const Buffers& buffers;
  const Instance& instance;
  int64_t stages;
  int64_t ctas;  // as in KernelShape
  void* workspace = nullptr;
  const uint8_t* prepared = nullptr;
};

// In stream order: with groups the table of their tiles comes first.
std::vector<KernelLaunch> build_launches(const LaunchParts& parts);

}  // namespace dualgemm::cuda::sm120a
