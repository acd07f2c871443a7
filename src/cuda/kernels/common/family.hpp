// A family of kernels: what a plan chooses among, and what it says of one. Nothing here calls the
// CUDA runtime.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "plan/strategy.hpp"

namespace dualgemm::cuda {

// What is to be run, on which GPU.
struct KernelRequest {
  const Problem& problem;
  bool prepared;   // weights
  bool unaligned;  // PlanOptions::unaligned
  const DeviceCaps& caps;
};

// A compiled kernel's numbers, and how long it should take. The unit is microseconds where there is
// a model of the machine, else the time of another family of the same instruction set; times of
// families of one instruction set can be compared for one problem.
struct TimedShape {
  KernelShape shape;
  double time;
};
inline constexpr double kNever = std::numeric_limits<double>::infinity();

// How long a launch should take on a GPU where it was not measured: microseconds, and where a model
// of the machine expects nine of ten times.
struct PredictedTime {
  double us, low, high;
};

struct LaunchInputs {
  const Plan& plan;
  const core::ResolvedProblem& problem;  // the plan's
  const Buffers& buffers;
  const uint8_t* prepared;  // packed weights behind the first header, or null
  void* workspace;
  EncodeTiled encode_tiled;
};
struct FamilyLaunches {
  std::vector<KernelLaunch> launches;
  int64_t intermediate_bytes = 0;  // written to and read from the workspace
};

struct KernelFamily {
  KernelId id;
  Isa isa;
  int rank;            // of families that take the same time the one of the lowest rank is chosen
  bool pairs = false;  // of CTAs, each on an SM of its own
  // Where the fastest kernel does not satisfy a caller's constraints: whether this family's own
  // choice comes before the first compiled kernel that does.
  bool chooses_first = false;
  // ok, or why the family cannot run this.
  Status (*supports)(const KernelRequest& request);
  // Everything below: of what is supported.
  // The compiled kernels; their grids are not known yet, but where one is said.
  std::vector<KernelShape> (*candidates)(const KernelRequest& request);
  // The one that should take the least time; kNever: none of them may be chosen unless it is
  // demanded.
  TimedShape (*fastest)(const KernelRequest& request);
  // The grid of the plan's kernel; null: it follows from the shape.
  Status (*deal_out)(Plan& plan, const DeviceCaps& caps, const PlanConstraints& constraints);
  int64_t (*workspace_bytes)(const Plan& plan);
  Expected<FamilyLaunches> (*launches)(const LaunchInputs& in);
  // none: the GPU is not described. null: there is no model.
  std::optional<PredictedTime> (*predicted)(const Plan& plan, const DeviceCaps& caps) = nullptr;
};

// CTAs of a grid at the most: as the constraints say, or one for each SM.
Expected<int64_t> most_ctas(const PlanConstraints& constraints, const DeviceCaps& caps,
                            int64_t ctas_of_sm = 1);

// ok if the GPU runs clusters of two CTAs with an SM for each.
Status check_pairs(const char* argument, const std::string& observed, const DeviceCaps& caps);

}  // namespace dualgemm::cuda
