#include "cuda/runtime/device_memory.hpp"

#include <cuda_runtime_api.h>

#include "cuda/runtime/check.hpp"

namespace dualgemm::cuda {

void DeviceMemory::free(void* memory) noexcept {
  static_cast<void>(cudaFree(memory));  // a destructor cannot report an error
}

Expected<DeviceMemory> DeviceMemory::allocate(int64_t bytes, const char* argument) {
  DeviceMemory memory;
  if (bytes == 0) return memory;
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, static_cast<size_t>(bytes));
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // not the next call's error
    return Status::error(
        error == cudaErrorMemoryAllocation ? StatusCode::kOutOfMemory : StatusCode::kInternal,
        argument, std::to_string(bytes) + " bytes of device memory: " + cudaGetErrorString(error),
        "must be there");
  }
  memory.data_.reset(static_cast<uint8_t*>(data));
  memory.size_ = bytes;
  return memory;
}

Status DeviceMemory::upload(const void* from) {
  if (size_ == 0) return {};
  DUALGEMM_CUDA_TRY(
      cudaMemcpy(data_.get(), from, static_cast<size_t>(size_), cudaMemcpyHostToDevice));
  return {};
}

Status DeviceMemory::download(void* to) const {
  if (size_ == 0) return {};
  DUALGEMM_CUDA_TRY(
      cudaMemcpy(to, data_.get(), static_cast<size_t>(size_), cudaMemcpyDeviceToHost));
  return {};
}

Status synchronize(void* stream) {
  DUALGEMM_CUDA_TRY(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
  return {};
}

}  // namespace dualgemm::cuda
