#include "cuda/runtime/kernel_launch.hpp"

#include "cuda/runtime/check.hpp"

namespace dualgemm::cuda {

namespace {

// A launch as the runtime wants it, with the attributes that it points to.
class RuntimeConfig {
 public:
  RuntimeConfig(const KernelLaunch& launch, cudaStream_t stream)
      : RuntimeConfig(launch, dim3(launch.ctas), stream, launch.overlaps_previous) {}
  RuntimeConfig(const GridLaunch& launch, cudaStream_t stream)
      : RuntimeConfig(launch, dim3(launch.grid[0], launch.grid[1], launch.grid[2]), stream, false) {
  }
  RuntimeConfig(const RuntimeConfig&) = delete;
  RuntimeConfig& operator=(const RuntimeConfig&) = delete;
  const cudaLaunchConfig_t* get() const noexcept { return &config_; }

 private:
  template <class Launch>
  RuntimeConfig(const Launch& launch, dim3 grid, cudaStream_t stream, bool overlaps) {
    config_.gridDim = grid;
    config_.blockDim = dim3(launch.threads);
    config_.dynamicSmemBytes = launch.dynamic_smem_bytes;
    config_.stream = stream;
    config_.attrs = attributes_.data();
    if (overlaps) {
      cudaLaunchAttribute& overlap = attributes_[config_.numAttrs++];
      overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      overlap.val.programmaticStreamSerializationAllowed = 1;
    }
    if (launch.cluster_ctas > 1) {
      cudaLaunchAttribute& cluster = attributes_[config_.numAttrs++];
      cluster.id = cudaLaunchAttributeClusterDimension;
      cluster.val.clusterDim.x = launch.cluster_ctas;
      cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    }
  }

  std::array<cudaLaunchAttribute, 2> attributes_{};
  cudaLaunchConfig_t config_{};
};

template <class Launch>
Status allow_shared_memory(const Launch& launch) {
  constexpr uint32_t kWithoutPermission = 48 << 10;  // more than this must be asked for
  if (launch.dynamic_smem_bytes <= kWithoutPermission) return {};
  DUALGEMM_CUDA_TRY(cudaFuncSetAttribute(launch.kernel.handle,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(launch.dynamic_smem_bytes)));
  return {};
}

template <class Launch>
Status enqueue_any(const Launch& launch, cudaStream_t stream) {
  DUALGEMM_TRY(allow_shared_memory(launch));
  const RuntimeConfig config(launch, stream);
  void* arguments[] = {const_cast<uint8_t*>(launch.params.data())};  // only read
  DUALGEMM_CUDA_TRY(cudaLaunchKernelExC(config.get(), launch.kernel.handle, arguments));
  return {};
}

}  // namespace

Status enqueue(const KernelLaunch& launch, cudaStream_t stream) {
  return enqueue_any(launch, stream);
}
Status enqueue(const GridLaunch& launch, cudaStream_t stream) {
  return enqueue_any(launch, stream);
}

Expected<int> max_active_clusters(const KernelLaunch& launch) {
  DUALGEMM_TRY(allow_shared_memory(launch));
  const RuntimeConfig config(launch, nullptr);
  int clusters = 0;
  DUALGEMM_CUDA_TRY(cudaOccupancyMaxActiveClusters(&clusters, launch.kernel.handle, config.get()));
  return clusters;
}

}  // namespace dualgemm::cuda
