// A graph of two streams, and streams that may run beside each other.
#include "program.hpp"

namespace {

constexpr int kThreads = 32;

__global__ void raise(int* value, int by) { *value += by; }
__global__ void fill(int* values) { values[threadIdx.x] = 1; }
__global__ void take(const int* values, int* out) { out[threadIdx.x] = values[threadIdx.x]; }

enum class Between { kNothing, kEvent, kHost, kBarrierOfLegacyStream };

// `fill` in one stream, and in another one `take`, or a copy.
void use_two_streams(Between between, bool copies) {
  int *values, *out;
  CHECK_CUDA(cudaMalloc(&values, kThreads * sizeof(int)));
  CHECK_CUDA(cudaMalloc(&out, kThreads * sizeof(int)));
  cudaStream_t first, second;
  cudaEvent_t filled;
  const unsigned flags =
      between == Between::kBarrierOfLegacyStream ? cudaStreamDefault : cudaStreamNonBlocking;
  CHECK_CUDA(cudaStreamCreateWithFlags(&first, flags));
  CHECK_CUDA(cudaStreamCreateWithFlags(&second, flags));
  CHECK_CUDA(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
  CHECK_CUDA(cudaMemset(values, 0, kThreads * sizeof(int)));
  fill<<<1, kThreads, 0, first>>>(values);
  if (between == Between::kEvent) {
    CHECK_CUDA(cudaEventRecord(filled, first));
    CHECK_CUDA(cudaStreamWaitEvent(second, filled, 0));
  }
  if (between == Between::kHost) CHECK_CUDA(cudaStreamSynchronize(first));
  if (between == Between::kBarrierOfLegacyStream) fill<<<1, kThreads>>>(out);
  if (copies)
    CHECK_CUDA(
        cudaMemcpyAsync(out, values, kThreads * sizeof(int), cudaMemcpyDeviceToDevice, second));
  else
    take<<<1, kThreads, 0, second>>>(values, out);
  CHECK_CUDA(cudaDeviceSynchronize());
  take<<<1, kThreads, 0, first>>>(values, out);  // all is over
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaEventDestroy(filled));
  CHECK_CUDA(cudaStreamDestroy(first));
  CHECK_CUDA(cudaStreamDestroy(second));
  CHECK_CUDA(cudaFree(values));
  CHECK_CUDA(cudaFree(out));
}

}  // namespace

void streams_race() { use_two_streams(Between::kNothing, false); }
void streams_copy() { use_two_streams(Between::kNothing, true); }
void streams_ordered() {
  for (const bool copies : {false, true})
    for (const Between between : {Between::kEvent, Between::kHost, Between::kBarrierOfLegacyStream})
      use_two_streams(between, copies);
}

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
