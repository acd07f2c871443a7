#include "cuda/kernels/sm100a_pair/occupancy.hpp"

#include <cuda_runtime_api.h>

#include "cuda/kernels/sm100a_pair/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"

namespace dualgemm::cuda::sm100a_pair {

Expected<int> count_pairs() {
  const Instance& instance = instances().front();
  const Expected<int> pairs =
      max_active_clusters({.kernel = {"dual_gemm_sm100a_pair", instance.entry, instance.kernel},
                           .ctas = kPairCtas,
                           .threads = instance.threads,
                           .dynamic_smem_bytes = instance.dynamic_smem_bytes,
                           .cluster_ctas = kPairCtas});
  if (!pairs) static_cast<void>(cudaGetLastError());  // not the next call's error
  return pairs;
}

}  // namespace dualgemm::cuda::sm100a_pair
