#include "cuda/runtime/pointers.hpp"

#include <cuda_runtime_api.h>

#include <string>

#include "cuda/runtime/check.hpp"

namespace dualgemm::cuda {
namespace {

std::string gpu_name(int number) { return "GPU " + std::to_string(number); }
std::string rule_of(int number) { return "must be memory of the current GPU, " + gpu_name(number); }

PointerInfo info_of(const cudaPointerAttributes& attributes, const void* address) {
  PointerInfo info;
  info.gpu = attributes.device;
  info.reachable = attributes.devicePointer == address;
  switch (attributes.type) {
    case cudaMemoryTypeHost:
      info.place = MemoryPlace::kHost;
      break;
    case cudaMemoryTypeDevice:
      info.place = MemoryPlace::kGpu;
      break;
    case cudaMemoryTypeManaged:
      info.place = MemoryPlace::kManaged;
      break;
    default:
      break;
  }
  return info;
}

Status ask(const void* address, PointerInfo* info) {
  cudaPointerAttributes attributes{};
  const cudaError_t error = cudaPointerGetAttributes(&attributes, address);
  if (error == cudaErrorInvalidValue) {  // drivers that do not answer for unknown memory
    static_cast<void>(cudaGetLastError());
    *info = {};
    return {};
  }
  DUALGEMM_TRY(check(error, "cudaPointerGetAttributes", "the check of pointers"));
  *info = info_of(attributes, address);
  return {};
}

bool is_legacy_stream(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy;
}

}  // namespace

Status judge_pointer(const NamedPointer& pointer, const PointerInfo& info, const CurrentGpu& gpu) {
  switch (info.place) {
    case MemoryPlace::kUnknown:
      if (gpu.reads_pageable) return {};
      return Status::invalid(pointer.name, "pageable host memory", rule_of(gpu.number));
    case MemoryPlace::kHost:
      if (info.reachable) return {};
      return Status::invalid(pointer.name, "host memory that is not mapped", rule_of(gpu.number));
    case MemoryPlace::kGpu:
      if (info.gpu == gpu.number) return {};
      return Status::invalid(pointer.name, "memory of " + gpu_name(info.gpu), rule_of(gpu.number));
    case MemoryPlace::kManaged:
      break;
  }
  if (info.reachable) return {};
  return Status::invalid(pointer.name, "managed memory out of reach", rule_of(gpu.number));
}

Status judge_stream(int stream_gpu, int current_gpu) {
  if (stream_gpu == current_gpu) return {};
  return Status::invalid("stream", "a stream of " + gpu_name(stream_gpu),
                         "must be one of the current GPU, " + gpu_name(current_gpu));
}

Status judge_prepared(int weights_gpu, int current_gpu) {
  if (weights_gpu < 0 || weights_gpu == current_gpu) return {};
  return Status::invalid("prepared", "made on " + gpu_name(weights_gpu),
                         "must be made on the current GPU, " + gpu_name(current_gpu));
}

int current_gpu() noexcept {
  int number = -1;
  if (cudaGetDevice(&number) == cudaSuccess) return number;
  static_cast<void>(cudaGetLastError());  // not the next call's error
  return -1;
}

Status check_pointers(std::span<const NamedPointer> pointers) {
  CurrentGpu gpu{.number = current_gpu()};
  for (const NamedPointer& pointer : pointers) {
    if (pointer.address == nullptr) continue;
    PointerInfo info;
    DUALGEMM_TRY(ask(pointer.address, &info));
    if (info.place == MemoryPlace::kUnknown) {
      int reads_pageable = 0;
      DUALGEMM_CUDA_TRY(
          cudaDeviceGetAttribute(&reads_pageable, cudaDevAttrPageableMemoryAccess, gpu.number));
      gpu.reads_pageable = reads_pageable != 0;
    }
    DUALGEMM_TRY(judge_pointer(pointer, info, gpu));
  }
  return {};
}

Status check_stream(void* stream) {
  const auto handle = static_cast<cudaStream_t>(stream);
  if (handle == cudaStreamPerThread) return {};  // of whatever GPU is current, as the legacy one
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(handle, &capture);
  if (error == cudaErrorStreamCaptureImplicit) {  // this question leaves the recording whole
    static_cast<void>(cudaGetLastError());
    return Status::invalid("stream", "the legacy default stream",
                           "must be another one while a blocking stream records a graph");
  }
  DUALGEMM_TRY(check(error, "cudaStreamIsCapturing", "the check of the stream"));
  // cudaStreamGetDevice is refused for a stream that records, and breaks the recording. What is
  // launched on another GPU's stream is refused there too, by the launch itself.
  if (is_legacy_stream(handle) || capture != cudaStreamCaptureStatusNone) return {};
  int number = 0;
  DUALGEMM_TRY(check(cudaStreamGetDevice(handle, &number), "cudaStreamGetDevice",
                     "the check of the stream"));
  return judge_stream(number, current_gpu());
}

}  // namespace dualgemm::cuda
