// Memory pools and attributes of streams: hints about speed and about when memory goes back to the
// system. Allocations of every pool come from the one memory there is.
#include <cstring>

#include "fake_cuda/runtime/call.hpp"

namespace ptxsim::cuda::runtime {
namespace {

constexpr size_t kMostAttributeBytes = 8;  // of a pool's: int or uint64_t

// Programs hand it on and do not look into it.
void* pool() {
  static char one;
  return &one;
}

int give_pool(void** given) {
  return call([&](Session&) {
    *given = pool();
    return kSuccess;
  });
}

// cudaMemLocationTypeDevice, cudaMemAllocationTypePinned: the one kind of pool there is.
bool is_device_memory(const abi::MemoryLocation* location, int type) {
  return location != nullptr && location->type == 1 && location->id == 0 && type == 1;
}

int pool_at(const char* call_name, void** given, const abi::MemoryLocation* location, int type) {
  if (!is_device_memory(location, type)) return remember(not_modelled(call_name));
  return give_pool(given);
}

}  // namespace

PTXSIM_CUDA_API int cudaDeviceGetDefaultMemPool(void** given, int) { return give_pool(given); }
PTXSIM_CUDA_API int cudaDeviceGetMemPool(void** given, int) { return give_pool(given); }
PTXSIM_CUDA_API int cudaMemPoolCreate(void** given, const void*) { return give_pool(given); }
PTXSIM_CUDA_API int cudaDeviceSetMemPool(int, void*) { return kSuccess; }
PTXSIM_CUDA_API int cudaMemGetDefaultMemPool(void** given, abi::MemoryLocation* at, int type) {
  return pool_at("cudaMemGetDefaultMemPool", given, at, type);
}
PTXSIM_CUDA_API int cudaMemGetMemPool(void** given, abi::MemoryLocation* at, int type) {
  return pool_at("cudaMemGetMemPool", given, at, type);
}
PTXSIM_CUDA_API int cudaMemSetMemPool(abi::MemoryLocation* at, int type, void*) {
  return is_device_memory(at, type) ? kSuccess : remember(not_modelled("cudaMemSetMemPool"));
}
PTXSIM_CUDA_API int cudaMemPoolDestroy(void*) { return kSuccess; }
PTXSIM_CUDA_API int cudaMemPoolTrimTo(void*, size_t) { return kSuccess; }
PTXSIM_CUDA_API int cudaMemPoolSetAttribute(void*, int, void*) { return kSuccess; }
PTXSIM_CUDA_API int cudaMemPoolSetAccess(void*, const void*, size_t) { return kSuccess; }
PTXSIM_CUDA_API int cudaMemPoolGetAccess(int* access, void*, abi::MemoryLocation*) {
  *access = 3;  // cudaMemAccessFlagsProtReadWrite
  return kSuccess;
}
// Reserved and used bytes are not counted: 0, as for a pool that has given all back.
PTXSIM_CUDA_API int cudaMemPoolGetAttribute(void*, int attribute, void* value) {
  const bool is_int = attribute <= 3;  // cudaMemPoolReuse...: switches; then uint64_t
  return call([&](Session&) {
    std::memset(value, 0, is_int ? sizeof(int) : kMostAttributeBytes);
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaStreamSetAttribute(void*, int, const void*) { return kSuccess; }
PTXSIM_CUDA_ALIAS(cudaStreamSetAttribute, _ptsz);
PTXSIM_CUDA_API int cudaStreamCopyAttributes(void*, void*) { return kSuccess; }
PTXSIM_CUDA_ALIAS(cudaStreamCopyAttributes, _ptsz);
PTXSIM_CUDA_API int cudaCtxResetPersistingL2Cache() { return kSuccess; }

}  // namespace ptxsim::cuda::runtime
