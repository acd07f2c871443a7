// The runtime's calls that the driver's and cuBLAS's are made of: what they do alike is written
// once.
#pragma once

#include "fake_cuda/abi.hpp"

extern "C" {
int cudaMalloc(void** pointer, size_t bytes);
int cudaMallocManaged(void** pointer, size_t bytes, unsigned flags);
int cudaMallocHost(void** pointer, size_t bytes);
int cudaMallocAsync(void** pointer, size_t bytes, void* stream);
int cudaFreeAsync(void* pointer, void* stream);
int cudaMallocFromPoolAsync(void** pointer, size_t bytes, void* pool, void* stream);
int cudaStreamAttachMemAsync(void* stream, void* pointer, size_t bytes, unsigned flags);
int cudaDeviceGetDefaultMemPool(void** pool, int device);
int cudaMemGetDefaultMemPool(void** pool, ptxsim::cuda::abi::MemoryLocation* at, int type);
int cudaMemGetMemPool(void** pool, ptxsim::cuda::abi::MemoryLocation* at, int type);
int cudaMemSetMemPool(ptxsim::cuda::abi::MemoryLocation* at, int type, void* pool);
int cudaMemPoolGetAttribute(void* pool, int attribute, void* value);
int cudaMemPoolGetAccess(int* access, void* pool, ptxsim::cuda::abi::MemoryLocation* at);
int cudaFree(void* pointer);
int cudaFreeHost(void* pointer);
int cudaHostRegister(void* pointer, size_t bytes, unsigned flags);
int cudaHostUnregister(void* pointer);
int cudaHostGetDevicePointer(void** device, void* host, unsigned flags);
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int direction, void* stream);
int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                      size_t height, int direction, void* stream);
int cudaMalloc3DArray(void** handle, const ptxsim::cuda::abi::ChannelFormat* format,
                      ptxsim::cuda::abi::Extent extent, unsigned flags);
int cudaFreeArray(void* handle);
int cudaMemcpy2DToArrayAsync(void* to, size_t x, size_t y, const void* from, size_t pitch,
                             size_t width, size_t height, int direction, void* stream);
int cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, const void* from, size_t x, size_t y,
                               size_t width, size_t height, int direction, void* stream);
int cudaMemcpy2DArrayToArray(void* to, size_t to_x, size_t to_y, const void* from, size_t from_x,
                             size_t from_y, size_t width, size_t height, int direction);
int cudaCreateTextureObject(uint64_t* object, const ptxsim::cuda::abi::Resource* resource,
                            const ptxsim::cuda::abi::TextureSettings* settings, const void* view);
int cudaDestroyTextureObject(uint64_t object);
int cudaCreateSurfaceObject(uint64_t* object, const ptxsim::cuda::abi::Resource* resource);
int cudaDestroySurfaceObject(uint64_t object);
int cudaMemGetInfo(size_t* free, size_t* total);
int cudaDeviceSynchronize();
int cudaDeviceSetLimit(int limit, size_t value);
int cudaDeviceGetLimit(size_t* value, int limit);
int cudaGetDeviceProperties(ptxsim::cuda::abi::DeviceProperties* properties, int device);
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority);
int cudaStreamDestroy(void* stream);
int cudaStreamSynchronize(void* stream);
int cudaStreamQuery(void* stream);
int cudaStreamWaitEvent(void* stream, void* event, unsigned flags);
int cudaStreamGetFlags(void* stream, unsigned* flags);
int cudaStreamGetPriority(void* stream, int* priority);
int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* argument);
int cudaEventCreateWithFlags(void** event, unsigned flags);
int cudaEventDestroy(void* event);
int cudaEventRecord(void* event, void* stream);
int cudaEventSynchronize(void* event);
int cudaEventQuery(void* event);
int cudaEventElapsedTime(float* milliseconds, void* start, void* end);
int cudaStreamBeginCapture(void* stream, int mode);
int cudaStreamEndCapture(void* stream, void** graph);
int cudaStreamIsCapturing(void* stream, int* state);
int cudaThreadExchangeStreamCaptureMode(int* mode);
int cudaGraphInstantiate(void** executable, void* graph, unsigned long long flags);
int cudaGraphUpload(void* executable, void* stream);
int cudaGraphLaunch(void* executable, void* stream);
int cudaGraphDestroy(void* graph);
}
