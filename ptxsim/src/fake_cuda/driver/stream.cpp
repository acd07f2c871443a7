// Streams, events and graphs, as the runtime has them.
#include "fake_cuda/driver/call.hpp"
#include "fake_cuda/runtime/calls.hpp"

namespace ptxsim::cuda::driver {

PTXSIM_CUDA_API int cuStreamCreate(void** stream, unsigned flags) {
  return as_runtime([&] { return cudaStreamCreateWithPriority(stream, flags, 0); });
}
PTXSIM_CUDA_API int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return as_runtime([&] { return cudaStreamCreateWithPriority(stream, flags, priority); });
}
PTXSIM_CUDA_API int cuStreamDestroy(void* stream) {
  return as_runtime([&] { return cudaStreamDestroy(stream); });
}
PTXSIM_CUDA_ALIAS(cuStreamDestroy, _v2);
PTXSIM_CUDA_API int cuStreamSynchronize(void* stream) {
  return as_runtime([&] { return cudaStreamSynchronize(stream); });
}
PTXSIM_CUDA_API int cuStreamQuery(void* stream) {
  return as_runtime([&] { return cudaStreamQuery(stream); });
}
PTXSIM_CUDA_API int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return as_runtime([&] { return cudaStreamWaitEvent(stream, event, flags); });
}
PTXSIM_CUDA_API int cuStreamGetFlags(void* stream, unsigned* flags) {
  return as_runtime([&] { return cudaStreamGetFlags(stream, flags); });
}
PTXSIM_CUDA_API int cuStreamGetPriority(void* stream, int* priority) {
  return as_runtime([&] { return cudaStreamGetPriority(stream, priority); });
}
PTXSIM_CUDA_API int cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  return as_runtime([&] { return cudaLaunchHostFunc(stream, function, argument); });
}

PTXSIM_CUDA_API int cuEventCreate(void** event, unsigned flags) {
  return as_runtime([&] { return cudaEventCreateWithFlags(event, flags); });
}
PTXSIM_CUDA_API int cuEventDestroy(void* event) {
  return as_runtime([&] { return cudaEventDestroy(event); });
}
PTXSIM_CUDA_ALIAS(cuEventDestroy, _v2);
PTXSIM_CUDA_API int cuEventRecord(void* event, void* stream) {
  return as_runtime([&] { return cudaEventRecord(event, stream); });
}
PTXSIM_CUDA_API int cuEventSynchronize(void* event) {
  return as_runtime([&] { return cudaEventSynchronize(event); });
}
PTXSIM_CUDA_API int cuEventQuery(void* event) {
  return as_runtime([&] { return cudaEventQuery(event); });
}
PTXSIM_CUDA_API int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  return as_runtime([&] { return cudaEventElapsedTime(milliseconds, start, end); });
}
PTXSIM_CUDA_ALIAS(cuEventElapsedTime, _v2);

PTXSIM_CUDA_API int cuStreamBeginCapture(void* stream, int mode) {
  return as_runtime([&] { return cudaStreamBeginCapture(stream, mode); });
}
PTXSIM_CUDA_ALIAS(cuStreamBeginCapture, _v2);
PTXSIM_CUDA_API int cuStreamEndCapture(void* stream, void** graph) {
  return as_runtime([&] { return cudaStreamEndCapture(stream, graph); });
}
PTXSIM_CUDA_API int cuStreamIsCapturing(void* stream, int* state) {
  return as_runtime([&] { return cudaStreamIsCapturing(stream, state); });
}
PTXSIM_CUDA_API int cuThreadExchangeStreamCaptureMode(int* mode) {
  return cudaThreadExchangeStreamCaptureMode(mode);
}
PTXSIM_CUDA_API int cuGraphInstantiateWithFlags(void** executable, void* graph,
                                                unsigned long long flags) {
  return as_runtime([&] { return cudaGraphInstantiate(executable, graph, flags); });
}
PTXSIM_CUDA_API int cuGraphUpload(void* executable, void* stream) {
  return as_runtime([&] { return cudaGraphUpload(executable, stream); });
}
PTXSIM_CUDA_API int cuGraphLaunch(void* executable, void* stream) {
  return as_runtime([&] { return cudaGraphLaunch(executable, stream); });
}
PTXSIM_CUDA_API int cuGraphDestroy(void* graph) {
  return as_runtime([&] { return cudaGraphDestroy(graph); });
}
PTXSIM_CUDA_API int cuGraphExecDestroy(void* executable) { return cuGraphDestroy(executable); }
PTXSIM_CUDA_API int cuStreamAttachMemAsync(void* stream, void* pointer, size_t bytes,
                                           unsigned flags) {
  return as_runtime([&] { return cudaStreamAttachMemAsync(stream, pointer, bytes, flags); });
}

}  // namespace ptxsim::cuda::driver
