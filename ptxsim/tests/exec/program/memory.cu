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

// Between its members lie bytes that are never written, and that every copy copies.
struct Padded {
  char letter;
  int number;
  short half;
  double real;
};

__global__ void turn_around(Padded* out) {
  __shared__ Padded all[64];
  const int i = threadIdx.x;
  all[i] = {static_cast<char>(i), 2 * i, static_cast<short>(-i), 0.5 * i};
  __syncthreads();
  out[i] = all[63 - i];
}

__global__ void take(const Padded* from, Padded* to) { to[threadIdx.x] = from[threadIdx.x]; }

__global__ void double_in_place(const int* __restrict__ in, int* out) {
  out[threadIdx.x] = 2 * __ldg(in + threadIdx.x);
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

void padding() {
  Padded *turned, *copied;
  CHECK_CUDA(cudaMalloc(&turned, 64 * sizeof(Padded)));
  CHECK_CUDA(cudaMalloc(&copied, 64 * sizeof(Padded)));
  turn_around<<<1, 64>>>(turned);
  take<<<1, 64>>>(turned, copied);
  std::vector<Padded> result(64);
  CHECK_CUDA(cudaMemcpy(result.data(), copied, 64 * sizeof(Padded), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) {
    const Padded& one = result[static_cast<size_t>(63 - i)];
    CHECK(one.letter == i && one.number == 2 * i && one.half == -i && one.real == 0.5 * i);
  }
  CHECK_CUDA(cudaFree(turned));
  CHECK_CUDA(cudaFree(copied));
}

void pools() {
  int supported = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  cudaDeviceProp properties;
  CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
  CHECK(supported == 1 && properties.memoryPoolsSupported == 1);
  cudaMemPool_t pool;
  CHECK_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long keep = ~0ull;
  CHECK_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  int* memory;
  CHECK_CUDA(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&memory), 64, pool, nullptr));
  CHECK_CUDA(cudaMemsetAsync(memory, 0, 64, nullptr));
  CHECK_CUDA(cudaFreeAsync(memory, nullptr));
  cudaMemLocation location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t same;
  CHECK_CUDA(cudaMemGetDefaultMemPool(&same, &location, cudaMemAllocationTypePinned));
  CHECK(same == pool);
  CHECK_CUDA(cudaMallocManaged(&memory, 64));
  CHECK_CUDA(cudaStreamAttachMemAsync(nullptr, memory));
  CHECK_CUDA(cudaFree(memory));
  cudaStreamAttrValue window = {};
  CHECK_CUDA(cudaStreamSetAttribute(nullptr, cudaStreamAttributeAccessPolicyWindow, &window));
  CHECK_CUDA(cudaCtxResetPersistingL2Cache());
}

void in_place() {
  int* values;
  std::vector<int> ones(32, 1);
  CHECK_CUDA(cudaMalloc(&values, 32 * sizeof(int)));
  CHECK_CUDA(cudaMemcpy(values, ones.data(), 32 * sizeof(int), cudaMemcpyHostToDevice));
  double_in_place<<<1, 32>>>(values, values);
  CHECK_CUDA(cudaMemcpy(ones.data(), values, 32 * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(ones == std::vector<int>(32, 2));
  CHECK_CUDA(cudaFree(values));
}
