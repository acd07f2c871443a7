// Memory, copies and fills.
#include "fake_cuda/driver/call.hpp"
#include "fake_cuda/runtime/calls.hpp"

namespace ptxsim::cuda::driver {
namespace {

constexpr int kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kDefault = 4;

void* pointer_of(uint64_t address) { return reinterpret_cast<void*>(address); }

int copy(void* to, const void* from, size_t bytes, int direction, void* stream) {
  return as_runtime([&] { return cudaMemcpyAsync(to, from, bytes, direction, stream); });
}

template <class T>
int fill(uint64_t to, T value, size_t count, void* stream) {
  return call([&](Session& session) {
    if (to % sizeof(T) != 0) return kInvalidValue;
    return session.streams.issue(stream, [&session, to, value, count] {
      return session.memory.fill(pointer_of(to), &value, sizeof value, count);
    });
  });
}

}  // namespace

PTXSIM_CUDA_API int cuMemAlloc(void** address, size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  return as_runtime([&] { return cudaMalloc(address, bytes); });
}
PTXSIM_CUDA_ALIAS(cuMemAlloc, _v2);
PTXSIM_CUDA_API int cuMemAllocAsync(void** address, size_t bytes, void* stream) {
  if (bytes == 0) return kInvalidValue;
  return as_runtime([&] { return cudaMallocAsync(address, bytes, stream); });
}
PTXSIM_CUDA_API int cuMemAllocManaged(void** address, size_t bytes, unsigned flags) {
  return as_runtime([&] { return cudaMallocManaged(address, bytes, flags); });
}
PTXSIM_CUDA_API int cuMemAllocHost(void** pointer, size_t bytes) {
  return as_runtime([&] { return cudaMallocHost(pointer, bytes); });
}
PTXSIM_CUDA_ALIAS(cuMemAllocHost, _v2);
PTXSIM_CUDA_API int cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  return cuMemAllocHost(pointer, bytes);
}
PTXSIM_CUDA_API int cuMemHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return as_runtime([&] { return cudaHostGetDevicePointer(device, host, flags); });
}
PTXSIM_CUDA_ALIAS(cuMemHostGetDevicePointer, _v2);
PTXSIM_CUDA_API int cuMemHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return as_runtime([&] { return cudaHostRegister(pointer, bytes, flags); });
}
PTXSIM_CUDA_ALIAS(cuMemHostRegister, _v2);
PTXSIM_CUDA_API int cuMemHostUnregister(void* pointer) {
  return as_runtime([&] { return cudaHostUnregister(pointer); });
}
PTXSIM_CUDA_API int cuMemFree(uint64_t address) {
  return as_runtime([&] { return cudaFree(pointer_of(address)); });
}
PTXSIM_CUDA_ALIAS(cuMemFree, _v2);
PTXSIM_CUDA_API int cuMemFreeAsync(uint64_t address, void* stream) {
  return as_runtime([&] { return cudaFreeAsync(pointer_of(address), stream); });
}
PTXSIM_CUDA_API int cuMemFreeHost(void* pointer) {
  return as_runtime([&] { return cudaFreeHost(pointer); });
}
PTXSIM_CUDA_API int cuMemGetInfo(size_t* free, size_t* total) {
  return as_runtime([&] { return cudaMemGetInfo(free, total); });
}
PTXSIM_CUDA_ALIAS(cuMemGetInfo, _v2);

PTXSIM_CUDA_API int cuMemcpy(uint64_t to, uint64_t from, size_t bytes) {
  return copy(pointer_of(to), pointer_of(from), bytes, kDefault, nullptr);
}
PTXSIM_CUDA_API int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  return copy(pointer_of(to), pointer_of(from), bytes, kDefault, stream);
}
PTXSIM_CUDA_API int cuMemcpyHtoD(uint64_t to, const void* from, size_t bytes) {
  return copy(pointer_of(to), from, bytes, kHostToDevice, nullptr);
}
PTXSIM_CUDA_ALIAS(cuMemcpyHtoD, _v2);
PTXSIM_CUDA_API int cuMemcpyHtoDAsync(uint64_t to, const void* from, size_t bytes, void* stream) {
  return copy(pointer_of(to), from, bytes, kHostToDevice, stream);
}
PTXSIM_CUDA_ALIAS(cuMemcpyHtoDAsync, _v2);
PTXSIM_CUDA_API int cuMemcpyDtoH(void* to, uint64_t from, size_t bytes) {
  return copy(to, pointer_of(from), bytes, kDeviceToHost, nullptr);
}
PTXSIM_CUDA_ALIAS(cuMemcpyDtoH, _v2);
PTXSIM_CUDA_API int cuMemcpyDtoHAsync(void* to, uint64_t from, size_t bytes, void* stream) {
  return copy(to, pointer_of(from), bytes, kDeviceToHost, stream);
}
PTXSIM_CUDA_ALIAS(cuMemcpyDtoHAsync, _v2);
PTXSIM_CUDA_API int cuMemcpyDtoD(uint64_t to, uint64_t from, size_t bytes) {
  return copy(pointer_of(to), pointer_of(from), bytes, kDeviceToDevice, nullptr);
}
PTXSIM_CUDA_ALIAS(cuMemcpyDtoD, _v2);
PTXSIM_CUDA_API int cuMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  return copy(pointer_of(to), pointer_of(from), bytes, kDeviceToDevice, stream);
}
PTXSIM_CUDA_ALIAS(cuMemcpyDtoDAsync, _v2);

PTXSIM_CUDA_API int cuMemcpyPeer(uint64_t to, void*, uint64_t from, void*, size_t bytes) {
  return copy(pointer_of(to), pointer_of(from), bytes, kDefault, nullptr);
}

PTXSIM_CUDA_API int cuMemsetD8(uint64_t to, unsigned char value, size_t count) {
  return fill(to, value, count, nullptr);
}
PTXSIM_CUDA_ALIAS(cuMemsetD8, _v2);
PTXSIM_CUDA_API int cuMemsetD16(uint64_t to, unsigned short value, size_t count) {
  return fill(to, value, count, nullptr);
}
PTXSIM_CUDA_ALIAS(cuMemsetD16, _v2);
PTXSIM_CUDA_API int cuMemsetD32(uint64_t to, unsigned value, size_t count) {
  return fill(to, value, count, nullptr);
}
PTXSIM_CUDA_ALIAS(cuMemsetD32, _v2);
PTXSIM_CUDA_API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void* stream) {
  return fill(to, value, count, stream);
}
PTXSIM_CUDA_API int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count,
                                     void* stream) {
  return fill(to, value, count, stream);
}
PTXSIM_CUDA_API int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void* stream) {
  return fill(to, value, count, stream);
}

namespace {

// CUpointer_attribute and CUmemorytype of cuda.h.
enum PointerAttribute : int {
  kContext = 1,
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kRangeBegin = 11,
  kRangeBytes = 12,
  kMapped = 13,
};
constexpr uint32_t kHostMemory = 1, kDeviceMemory = 2;

template <class T>
Status give(void* data, T value) {
  *static_cast<T*>(data) = value;
  return kSuccess;
}

Status pointer_attribute(const Location& location, int attribute, void* data) {
  const Allocation& a = *location.allocation;
  switch (attribute) {
    case kContext:
      return give<void*>(data, nullptr);
    case kMemoryType:
      return give<uint32_t>(
          data, !is_seen_by_host(a) || is_managed(a.home) ? kDeviceMemory : kHostMemory);
    case kDevicePointer:
      return give<uint64_t>(data, a.address + location.offset);
    case kHostPointer:
      return is_seen_by_host(a) ? give<void*>(data, a.host + location.offset) : kInvalidValue;
    case kIsManaged:
      return give<uint32_t>(data, is_managed(a.home) ? 1 : 0);
    case kDeviceOrdinal:
      return give<int>(data, 0);
    case kRangeBegin:
      return give<uint64_t>(data, a.address);
    case kRangeBytes:
      return give<uint64_t>(data, a.bytes);
    case kMapped:
      return give<int>(data, 1);
    default:
      return kNotSupported;
  }
}

}  // namespace

PTXSIM_CUDA_API int cuPointerGetAttribute(void* data, int attribute, uint64_t address) {
  return call([&](Session& session) {
    Location location;
    if (session.memory.locate(pointer_of(address), 1, location) != kSuccess ||
        location.allocation == nullptr)
      return kInvalidValue;
    return pointer_attribute(location, attribute, data);
  });
}
// Never fails for a pointer that is none: what is asked for is 0 then.
PTXSIM_CUDA_API int cuPointerGetAttributes(unsigned count, const int* attributes, void** data,
                                           uint64_t address) {
  return call([&](Session& session) {
    Location location;
    const bool known = session.memory.locate(pointer_of(address), 1, location) == kSuccess &&
                       location.allocation != nullptr;
    for (unsigned i = 0; i < count; ++i)
      if (!known || pointer_attribute(location, attributes[i], data[i]) != kSuccess)
        give<uint32_t>(data[i], 0);
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cuMemGetAddressRange(uint64_t* begin, size_t* bytes, uint64_t address) {
  return call([&](Session& session) {
    Location location;
    if (session.memory.locate(pointer_of(address), 1, location) != kSuccess ||
        location.allocation == nullptr)
      return kNotFound;
    if (begin != nullptr) *begin = location.allocation->address;
    if (bytes != nullptr) *bytes = location.allocation->bytes;
    return kSuccess;
  });
}
PTXSIM_CUDA_ALIAS(cuMemGetAddressRange, _v2);

}  // namespace ptxsim::cuda::driver
