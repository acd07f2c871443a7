// Launches with the arguments of others, as benchmarks repeat them.
#include "program.hpp"

namespace {

constexpr int kValues = 4096, kThreads = 256;

__global__ void count_up(int* values) { values[blockIdx.x * kThreads + threadIdx.x] += 1; }

}  // namespace

// Prints what came of 20 launches, a fill, 3 launches and an allocation with 2 more; and then of
// one more behind a fill of memory that no kernel has touched.
void repeats() {
  int *values = nullptr, *other = nullptr, host[2];
  CHECK_CUDA(cudaMalloc(&values, kValues * sizeof(int)));
  CHECK_CUDA(cudaMemset(values, 0, kValues * sizeof(int)));
  const auto launch = [&](int times) {
    for (int i = 0; i < times; ++i) count_up<<<kValues / kThreads, kThreads>>>(values);
  };
  launch(20);
  CHECK_CUDA(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
  launch(1);  // a copy to the host changes nothing
  CHECK_CUDA(cudaMemcpy(host + 1, values + kValues - 1, sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d %d\n", host[0], host[1]);
  CHECK_CUDA(cudaMemset(values, 0, kValues * sizeof(int)));
  launch(3);
  CHECK_CUDA(cudaMalloc(&other, 16));
  launch(2);
  CHECK_CUDA(cudaMemcpy(host, values, sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[0]);
  CHECK_CUDA(cudaMemset(other, 0, 16));
  launch(1);
  CHECK_CUDA(cudaMemcpy(host, values, sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[0]);
  CHECK_CUDA(cudaFree(values));
  CHECK_CUDA(cudaFree(other));
}
