// A graph of two streams.
#include "program.hpp"

namespace {

__global__ void raise(int* value, int by) { *value += by; }

}  // namespace

void graph() {
  int* value;
  cudaStream_t first, second;
  cudaEvent_t fork, join;
  CHECK_CUDA(cudaMalloc(&value, sizeof(int)));
  CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CHECK_CUDA(cudaStreamCreate(&second));
  CHECK_CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK_CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CHECK_CUDA(cudaMemset(value, 0, sizeof(int)));
  CHECK_CUDA(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  raise<<<1, 1, 0, first>>>(value, 1);
  CHECK_CUDA(cudaEventRecord(fork, first));
  CHECK_CUDA(cudaStreamWaitEvent(second, fork, 0));
  raise<<<1, 1, 0, second>>>(value, 10);
  CHECK_CUDA(cudaEventRecord(join, second));
  CHECK_CUDA(cudaStreamWaitEvent(first, join, 0));
  cudaGraph_t captured;
  CHECK_CUDA(cudaStreamEndCapture(first, &captured));
  int result = -1;
  CHECK_CUDA(cudaMemcpy(&result, value, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(result == 0);  // captured, not done
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaGraphInstantiate(&executable, captured, 0));
  CHECK_CUDA(cudaGraphLaunch(executable, first));
  CHECK_CUDA(cudaGraphLaunch(executable, first));
  CHECK_CUDA(cudaStreamSynchronize(first));
  CHECK_CUDA(cudaMemcpy(&result, value, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(result == 22);
  CHECK_CUDA(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  CHECK(cudaStreamSynchronize(first) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(first, &captured) == cudaErrorStreamCaptureInvalidated);
  float milliseconds;
  CHECK(cudaEventElapsedTime(&milliseconds, fork, join) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaEventDestroy(fork));
  CHECK_CUDA(cudaEventDestroy(join));
  CHECK_CUDA(cudaStreamDestroy(first));
  CHECK_CUDA(cudaStreamDestroy(second));
  CHECK_CUDA(cudaFree(value));
}
