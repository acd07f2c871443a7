// Kernels that wait for the host to store, and what is issued behind them.
#include "program.hpp"

namespace {

__global__ void wait_for(volatile unsigned* latch) {
  while (latch[0] < 1) {
  }
}
__global__ void raise(int* value, int by) { *value += by; }
__global__ void poll_and_add(volatile unsigned* latch, int polls, int* value) {
  unsigned sum = 0;
  for (int i = 0; i < polls; ++i) sum += latch[0];
  if (sum == 0) ++*value;
  for (int i = 0; i < polls; ++i) sum += latch[0];
  if (sum != 0) *value = -1;
}

struct Latch {
  unsigned* word = nullptr;
  int* value = nullptr;
  cudaStream_t stream, other;
  cudaEvent_t event;
  Latch() {
    CHECK_CUDA(cudaMallocManaged(&word, sizeof *word));
    CHECK_CUDA(cudaMalloc(&value, sizeof *value));
    CHECK_CUDA(cudaMemset(value, 0, sizeof *value));
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreate(&event));
    *word = 0;
  }
  ~Latch() {
    CHECK_CUDA(cudaEventDestroy(event));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_CUDA(cudaStreamDestroy(other));
    CHECK_CUDA(cudaFree(value));
    CHECK_CUDA(cudaFree(word));
  }
};

}  // namespace

void host_latch() {
  Latch latch;
  int* pinned;
  CHECK_CUDA(cudaMallocHost(&pinned, sizeof *pinned));
  for (int round = 1; round <= 2; ++round) {
    *pinned = -1;
    *latch.word = 0;
    wait_for<<<1, 64, 0, latch.stream>>>(latch.word);
    raise<<<1, 1, 0, latch.stream>>>(latch.value, 5);
    CHECK_CUDA(cudaEventRecord(latch.event, latch.stream));
    CHECK_CUDA(cudaStreamWaitEvent(latch.other, latch.event, 0));
    CHECK_CUDA(
        cudaMemcpyAsync(pinned, latch.value, sizeof *pinned, cudaMemcpyDeviceToHost, latch.other));
    CHECK(cudaStreamQuery(latch.stream) == cudaErrorNotReady);
    CHECK(cudaEventQuery(latch.event) == cudaErrorNotReady);
    CHECK_CUDA(cudaGetLastError());
    CHECK(*pinned == -1);
    *latch.word = 1;
    if (round == 1) {
      CHECK_CUDA(cudaStreamSynchronize(latch.other));
    } else {
      CHECK_CUDA(cudaEventQuery(latch.event));
    }
    CHECK(*pinned == 5 * round);
    CHECK_CUDA(cudaStreamQuery(latch.stream));
    CHECK_CUDA(cudaDeviceSynchronize());
  }
  CHECK_CUDA(cudaFreeHost(pinned));
}

// However long it polls first: what a launch writes, it writes once.
void host_latch_counted() {
  Latch latch;
  int done = 0;
  for (int polls = 4000; polls < 4200; polls += 4) {
    poll_and_add<<<1, 1, 0, latch.stream>>>(latch.word, polls, latch.value);
    ++done;
  }
  int value = 0;
  CHECK_CUDA(cudaStreamSynchronize(latch.stream));
  CHECK_CUDA(cudaMemcpy(&value, latch.value, sizeof value, cudaMemcpyDeviceToHost));
  CHECK(value == done);
}

// The host waits, and has not stored.
void host_latch_forgotten() {
  unsigned* latch;
  CHECK_CUDA(cudaMallocManaged(&latch, sizeof *latch));
  *latch = 0;
  wait_for<<<1, 1>>>(latch);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchTimeout);
}
