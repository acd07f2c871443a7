#include "cuda/runtime/kernel_launch.hpp"

#include "cuda/runtime/check.hpp"

namespace dualgemm::cuda {

Status enqueue(const KernelLaunch& launch, cudaStream_t stream) {
  constexpr uint32_t kWithoutPermission = 48 << 10;  // more than this must be asked for
  if (launch.dynamic_smem_bytes > kWithoutPermission) {
    DUALGEMM_CUDA_TRY(cudaFuncSetAttribute(launch.kernel.handle,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(launch.dynamic_smem_bytes)));
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(launch.ctas);
  config.blockDim = dim3(launch.threads);
  config.dynamicSmemBytes = launch.dynamic_smem_bytes;
  config.stream = stream;
  std::array<cudaLaunchAttribute, 2> attributes{};
  config.attrs = attributes.data();
  if (launch.overlaps_previous) {
    cudaLaunchAttribute& overlap = attributes[config.numAttrs++];
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
  }
  if (launch.cluster_ctas > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = launch.cluster_ctas;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  }
  void* arguments[] = {const_cast<uint8_t*>(launch.params.data())};  // only read
  DUALGEMM_CUDA_TRY(cudaLaunchKernelExC(&config, launch.kernel.handle, arguments));
  return {};
}

}  // namespace dualgemm::cuda
