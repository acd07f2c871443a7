// Memory pools: the runtime's, which are all one.
#include "fake_cuda/driver/call.hpp"
#include "fake_cuda/runtime/calls.hpp"

namespace ptxsim::cuda::driver {

PTXSIM_CUDA_API int cuDeviceGetDefaultMemPool(void** pool, int device) {
  return as_runtime([&] { return cudaDeviceGetDefaultMemPool(pool, device); });
}
PTXSIM_CUDA_API int cuDeviceGetMemPool(void** pool, int device) {
  return cuDeviceGetDefaultMemPool(pool, device);
}
PTXSIM_CUDA_API int cuDeviceSetMemPool(int, void*) { return kSuccess; }
PTXSIM_CUDA_API int cuMemGetDefaultMemPool(void** pool, abi::MemoryLocation* at, int type) {
  return as_runtime([&] { return cudaMemGetDefaultMemPool(pool, at, type); });
}
PTXSIM_CUDA_API int cuMemGetMemPool(void** pool, abi::MemoryLocation* at, int type) {
  return as_runtime([&] { return cudaMemGetMemPool(pool, at, type); });
}
PTXSIM_CUDA_API int cuMemSetMemPool(abi::MemoryLocation* at, int type, void* pool) {
  return as_runtime([&] { return cudaMemSetMemPool(at, type, pool); });
}
PTXSIM_CUDA_API int cuMemPoolCreate(void** pool, const void*) {
  return cuDeviceGetDefaultMemPool(pool, 0);
}
PTXSIM_CUDA_API int cuMemPoolDestroy(void*) { return kSuccess; }
PTXSIM_CUDA_API int cuMemPoolTrimTo(void*, size_t) { return kSuccess; }
PTXSIM_CUDA_API int cuMemPoolSetAttribute(void*, int, void*) { return kSuccess; }
PTXSIM_CUDA_API int cuMemPoolGetAttribute(void* pool, int attribute, void* value) {
  // CUmemPool_attribute counts from 1 as cudaMemPoolAttr does.
  return as_runtime([&] { return cudaMemPoolGetAttribute(pool, attribute, value); });
}
PTXSIM_CUDA_API int cuMemPoolSetAccess(void*, const void*, size_t) { return kSuccess; }
PTXSIM_CUDA_API int cuMemPoolGetAccess(int* access, void* pool, abi::MemoryLocation* at) {
  return as_runtime([&] { return cudaMemPoolGetAccess(access, pool, at); });
}
PTXSIM_CUDA_API int cuMemAllocFromPoolAsync(void** address, size_t bytes, void* pool,
                                            void* stream) {
  return as_runtime([&] { return cudaMallocFromPoolAsync(address, bytes, pool, stream); });
}

}  // namespace ptxsim::cuda::driver
