// What CUDA refuses, as an H200 does it (driver 580.159, CUDA 13.0), and programs that end badly.
#include <cassert>
#include <cstdlib>
#include <vector>

#include "program.hpp"

namespace {

__global__ void nothing(int*) {}
__global__ void __launch_bounds__(128) bounded(int*) {}
__global__ void __cluster_dims__(2, 1, 1) paired(int*) {}
__global__ void with_shared(int* out) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = 1;
  if (out != nullptr) *out = shared[0];
}
__global__ void beyond(char* p) { *reinterpret_cast<volatile int*>(p + (1ull << 40)) = 1; }

__global__ void says(int number) {
  if (threadIdx.x == 3) printf("thread %d says %d, %.1f\n", threadIdx.x, number, 0.5);
}
__global__ void claims(int number) { assert(number == 1); }

template <class Kernel>
cudaError_t launch(Kernel kernel, dim3 grid, dim3 block, size_t shared = 0) {
  int* none = nullptr;
  void* arguments[] = {&none};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments, shared,
                          nullptr);
}

cudaError_t launch_cluster(unsigned ctas, unsigned grid) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = 32;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {ctas, 1, 1};
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, nothing, static_cast<int*>(nullptr));
}

}  // namespace

void launch_errors() {
  CHECK(launch(nothing, 0, 1) == cudaErrorInvalidValue);
  CHECK(launch(nothing, 1, dim3(0)) == cudaErrorInvalidValue);
  CHECK(launch(nothing, 1, 1025) == cudaErrorInvalidValue);
  CHECK(launch(nothing, 1, dim3(1, 1, 65)) == cudaErrorInvalidValue);
  CHECK(launch(nothing, dim3(1, 65536), 1) == cudaErrorInvalidValue);
  CHECK(launch(bounded, 1, 256) == cudaErrorInvalidValue);
  CHECK(launch(paired, 3, 32) == cudaErrorInvalidClusterSize);
  CHECK(launch(paired, 4, 32) == cudaSuccess);
  CHECK(launch(with_shared, 1, 32, 49152) == cudaSuccess);
  CHECK(launch(with_shared, 1, 32, 49153) == cudaErrorInvalidValue);
  int most = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  const auto allowed = cudaFuncAttributeMaxDynamicSharedMemorySize;
  CHECK(cudaFuncSetAttribute(with_shared, allowed, most + 1) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(with_shared, allowed, -1) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(with_shared, allowed, most) == cudaSuccess);
  CHECK(launch(with_shared, 1, 32, static_cast<size_t>(most)) == cudaSuccess);
  CHECK(launch_cluster(3, 4) == cudaErrorInvalidClusterSize);
  CHECK(launch_cluster(0, 1) == cudaErrorInvalidClusterSize);
  CHECK(launch_cluster(8, 16) == cudaSuccess);
  CHECK(launch_cluster(16, 16) == cudaErrorInvalidClusterSize);
  CHECK(cudaFuncSetAttribute(nothing, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) ==
        cudaSuccess);
  CHECK(launch_cluster(16, 16) == cudaSuccess);
  CHECK(launch_cluster(32, 32) == cudaErrorInvalidClusterSize);
  CHECK(launch(launch_errors, 1, 1) == cudaErrorInvalidResourceHandle);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);  // none of it is sticky
}

void copy_errors() {
  std::vector<char> host(4096);
  char* p = nullptr;
  CHECK_CUDA(cudaMalloc(&p, 0));
  CHECK(p == nullptr);
  CHECK(cudaMalloc(&p, size_t{1} << 60) == cudaErrorMemoryAllocation);
  CHECK(cudaFree(reinterpret_cast<void*>(0x123)) == cudaErrorInvalidValue);
  CHECK_CUDA(cudaMalloc(&p, 1000));
  CHECK(cudaFree(p + 4) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(p, host.data(), 4, static_cast<cudaMemcpyKind>(9)) ==
        cudaErrorInvalidMemcpyDirection);
  CHECK(cudaMemcpy(host.data(), p, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(p, host.data(), 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemset(p, 0, 2000) == cudaErrorInvalidValue);
  CHECK(cudaMemset(host.data(), 0, 2) == cudaErrorInvalidValue);
  CHECK_CUDA(cudaFree(p));
  CHECK(cudaFree(p) == cudaErrorInvalidValue);
  CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice);
  CHECK_CUDA(cudaFree(nullptr));
  cudaGetLastError();
}

void fault() {
  char* p = nullptr;
  CHECK_CUDA(cudaMalloc(&p, 1024));
  beyond<<<1, 1>>>(p);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaMalloc(&p, 16) == cudaErrorIllegalAddress);  // no call works any more
  CHECK(cudaFree(p) == cudaErrorIllegalAddress);
}

void prints() {
  says<<<1, 32>>>(42);
  CHECK_CUDA(cudaDeviceSynchronize());
}

void asserts() {
  claims<<<1, 1>>>(1);
  CHECK_CUDA(cudaDeviceSynchronize());
  claims<<<1, 1>>>(2);
  CHECK(cudaDeviceSynchronize() == cudaErrorAssert);
}

void leak() {
  char* p = nullptr;
  CHECK_CUDA(cudaMalloc(&p, 12345));
}

void crash() {
  nothing<<<1, 1>>>(nullptr);
  std::abort();
}
