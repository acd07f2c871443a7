#include "cuda/runtime/device.hpp"

#include <cuda_runtime_api.h>

#include "cuda/runtime/architectures.hpp"
#include "cuda/runtime/check.hpp"

namespace dualgemm::cuda {
namespace {

Status check_present() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return {};
  const char* why = error == cudaSuccess ? "there is no GPU" : cudaGetErrorString(error);
  static_cast<void>(cudaGetLastError());  // not the next call's error
  return Status::unsupported("device", std::string("cuda (") + why + ")",
                             "needs an NVIDIA GPU and its driver");
}

}  // namespace

std::vector<Isa> isas_of(int cc) {
  std::vector<Isa> isas;
#define DUALGEMM_ADD_ISA(name, isa, runs) \
  if (runs) isas.push_back(Isa::isa);
  DUALGEMM_CUDA_ARCHITECTURES(DUALGEMM_ADD_ISA)
#undef DUALGEMM_ADD_ISA
  return isas;
}

Expected<DeviceCaps> detect_device_caps() {
  DUALGEMM_TRY(check_present());
  int device = 0;
  DUALGEMM_CUDA_TRY(cudaGetDevice(&device));
  cudaDeviceProp properties{};
  DUALGEMM_CUDA_TRY(cudaGetDeviceProperties(&properties, device));
  DeviceCaps caps;
  caps.kind = DeviceKind::kCuda;
  caps.name = properties.name;
  caps.compute_capability = 10 * properties.major + properties.minor;
  caps.num_sms = properties.multiProcessorCount;
  caps.l1d_bytes = static_cast<int64_t>(properties.sharedMemPerMultiprocessor);
  caps.l2_bytes = properties.l2CacheSize;
  caps.isas = isas_of(caps.compute_capability);
  return caps;
}

}  // namespace dualgemm::cuda
