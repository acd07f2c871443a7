// The GPUs of the process, and launches on the current one's default queue.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <mutex>
#include <utility>

#include "cuda/runtime/launch_value.hpp"
#include "tools/submission/tensor_views.hpp"

namespace dualgemm::submission {
namespace {

// One GPU, asked once what it is and told once how much shared memory the kernels take.
class Device {
 public:
  // null: `error` says why. `instances` have a kernel and its dynamic_smem_bytes.
  template <class Instances>
  static const Device* current(int capability, const Instances& instances, const char** error) {
    constexpr int kMost = 64;
    static Device devices[kMost];
    int number = 0;
    const cudaError_t got = cudaGetDevice(&number);
    if (got != cudaSuccess || number >= kMost) {
      *error = got != cudaSuccess ? cudaGetErrorString(got) : "a process may use 64 GPUs";
      return nullptr;
    }
    Device& device = devices[number];
    std::call_once(device.once_, [&] {
      device.error_ = device.ask(number, capability);
      for (const auto& instance : instances) {
        if (device.error_ == nullptr) device.error_ = allow_smem(instance);
      }
    });
    *error = device.error_;
    return device.error_ == nullptr ? &device : nullptr;
  }

  int num_sms() const { return num_sms_; }
  EncodeTiled encode_tiled() const { return encode_tiled_; }

 private:
  // null, or what failed.
  const char* ask(int number, int capability) {
    int major = 0, minor = 0;
    for (const auto& [value, attribute] : {std::pair(&major, cudaDevAttrComputeCapabilityMajor),
                                           std::pair(&minor, cudaDevAttrComputeCapabilityMinor),
                                           std::pair(&num_sms_, cudaDevAttrMultiProcessorCount)}) {
      const cudaError_t got = cudaDeviceGetAttribute(value, attribute, number);
      if (got != cudaSuccess) return cudaGetErrorString(got);
    }
    if (10 * major + minor != capability)
      return "the GPU has not the compute capability that the file is made for";
    constexpr unsigned kSince = 12000;  // the driver API version that the signature is of
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t got = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             kSince, cudaEnableDefault, &found);
    if (got != cudaSuccess) return cudaGetErrorString(got);
    if (found != cudaDriverEntryPointSuccess) return "the driver must be of CUDA 12.0 or later";
    encode_tiled_ = reinterpret_cast<EncodeTiled>(function);
    return nullptr;
  }

  template <class Instance>
  static const char* allow_smem(const Instance& instance) {
    const cudaError_t got =
        cudaFuncSetAttribute(instance.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(instance.dynamic_smem_bytes));
    return got == cudaSuccess ? nullptr : cudaGetErrorString(got);
  }

  std::once_flag once_;
  const char* error_ = nullptr;
  int num_sms_ = 0;
  EncodeTiled encode_tiled_ = nullptr;
};

// null, or what failed. Without overlap with the launch before it, whose attribute a submission may
// not spell.
const char* enqueue(const cuda::KernelLaunch& launch) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = launch.cluster_ctas;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(launch.ctas);
  config.blockDim = dim3(launch.threads);
  config.dynamicSmemBytes = launch.dynamic_smem_bytes;
  config.attrs = &cluster;
  config.numAttrs = launch.cluster_ctas > 1 ? 1 : 0;
  void* arguments[] = {const_cast<uint8_t*>(launch.params.data())};  // only read
  const cudaError_t got = cudaLaunchKernelExC(&config, launch.kernel.handle, arguments);
  return got == cudaSuccess ? nullptr : cudaGetErrorString(got);
}

}  // namespace
}  // namespace dualgemm::submission
