// Device memory, memory of the host that kernels see, and variables.
#include <vector>

#include "program.hpp"

namespace {

__global__ void add(const float* a, const float* b, float* sum, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

__device__ int calls = 40;
__constant__ int factors[4] = {1, 2, 3, 4};

__global__ void scale(int* out) {
  out[threadIdx.x] = factors[threadIdx.x] * 10;
  if (threadIdx.x == 0) ++calls;
}

}  // namespace

void vector_add() {
  cudaDeviceProp device;
  CHECK_CUDA(cudaGetDeviceProperties(&device, 0));
  CHECK(device.warpSize == 32 && device.clusterLaunch == 1 &&
        device.reservedSharedMemPerBlock == 1024);
  CHECK(device.sharedMemPerBlockOptin + 1024 == device.sharedMemPerMultiprocessor);
  constexpr int kCount = 1000;
  std::vector<float> a(kCount), sum(kCount);
  for (int i = 0; i < kCount; ++i) a[i] = static_cast<float>(i);
  float *device_a, *device_b, *device_sum;
  CHECK_CUDA(cudaMalloc(&device_a, kCount * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&device_b, kCount * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&device_sum, kCount * sizeof(float)));
  CHECK_CUDA(cudaMemcpy(device_a, a.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(device_b, device_a, kCount * sizeof(float), cudaMemcpyDeviceToDevice));
  add<<<(kCount + 255) / 256, 256>>>(device_a, device_b, device_sum, kCount);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaMemcpy(sum.data(), device_sum, kCount * sizeof(float), cudaMemcpyDefault));
  for (int i = 0; i < kCount; ++i) CHECK(sum[i] == 2.0f * static_cast<float>(i));
  for (float* pointer : {device_a, device_b, device_sum}) CHECK_CUDA(cudaFree(pointer));
}

void host_memory() {
  float *managed, *pinned;
  std::vector<float> own(32, 3.0f);
  CHECK_CUDA(cudaMallocManaged(&managed, 32 * sizeof(float)));
  CHECK_CUDA(cudaMallocHost(&pinned, 32 * sizeof(float)));
  CHECK_CUDA(cudaHostRegister(own.data(), 32 * sizeof(float), cudaHostRegisterMapped));
  float* registered = nullptr;
  CHECK_CUDA(cudaHostGetDevicePointer(&registered, own.data(), 0));
  for (int i = 0; i < 32; ++i) pinned[i] = static_cast<float>(i);
  add<<<1, 32>>>(pinned, registered, managed, 32);
  CHECK_CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 32; ++i) CHECK(managed[i] == static_cast<float>(i) + 3.0f);
  cudaPointerAttributes attributes;
  CHECK_CUDA(cudaPointerGetAttributes(&attributes, managed));
  CHECK(attributes.type == cudaMemoryTypeManaged && attributes.device == 0);
  CHECK_CUDA(cudaPointerGetAttributes(&attributes, pinned));
  CHECK(attributes.type == cudaMemoryTypeHost);
  CHECK_CUDA(cudaPointerGetAttributes(&attributes, &attributes));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK_CUDA(cudaHostUnregister(own.data()));
  CHECK_CUDA(cudaFreeHost(pinned));
  CHECK_CUDA(cudaFree(managed));
}

void variables() {
  int* device_out;
  int out[4];
  CHECK_CUDA(cudaMalloc(&device_out, sizeof out));
  scale<<<1, 4>>>(device_out);
  CHECK_CUDA(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
  CHECK(out[0] == 10 && out[3] == 40);
  const int other[2] = {7, 9};
  CHECK_CUDA(cudaMemcpyToSymbol(factors, other, sizeof other, 2 * sizeof(int)));
  scale<<<1, 4>>>(device_out);
  CHECK_CUDA(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
  CHECK(out[1] == 20 && out[2] == 70 && out[3] == 90);
  int count = 0;
  CHECK_CUDA(cudaMemcpyFromSymbol(&count, calls, sizeof count));
  CHECK(count == 42);
  CHECK(cudaMemcpyToSymbol(factors, out, 99) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK_CUDA(cudaFree(device_out));
}
