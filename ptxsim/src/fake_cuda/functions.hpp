// Attributes of kernels, the same numbers in cudaFuncAttribute and CUfunction_attribute (cuda.h).
#pragma once

#include "fake_cuda/session.hpp"

namespace ptxsim::cuda {

enum FunctionAttribute : int {
  kMaxThreadsPerBlock = 0,
  kSharedBytes = 1,
  kConstBytes = 2,
  kLocalBytes = 3,
  kNumRegisters = 4,
  kPtxVersion = 5,
  kBinaryVersion = 6,
  kCacheModeCa = 7,
  kMaxDynamicSharedBytes = 8,
  kPreferredSharedCarveout = 9,
  kClusterMustBeSet = 10,
  kRequiredClusterWidth = 11,
  kRequiredClusterHeight = 12,
  kRequiredClusterDepth = 13,
  kNonPortableClusterSize = 14,
  kClusterScheduling = 15,
};

Status function_attribute(const Session& session, Kernel& kernel, int attribute, int& value);
Status set_function_attribute(const Session& session, Kernel& kernel, int attribute, int value);
// CTAs of a cluster kernel that are resident at once, in clusters.
uint32_t resident_clusters(const Session& session, const Kernel& kernel,
                           const LaunchRequest& request);

}  // namespace ptxsim::cuda
