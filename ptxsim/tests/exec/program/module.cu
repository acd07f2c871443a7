// What a module holds besides kernels: variables that the host shares, addresses of constants, and
// of functions.
#include "program.hpp"

namespace {

__managed__ int counter = 5;
__managed__ float table[32];
__constant__ float factors[4] = {1, 2, 3, 4};
__device__ int hidden = 40;  // named by a function alone

__device__ __noinline__ int hidden_plus(int value) { return hidden + value; }

struct Shape {
  __device__ virtual int sides() const { return 0; }
};
struct Polygon : Shape {
  int number;
  __device__ explicit Polygon(int n) : number(n) {}
  __device__ int sides() const override { return number; }
};

__global__ void count(float* out) {
  atomicAdd(&counter, 1);
  table[threadIdx.x] = factors[threadIdx.x % 4] * 2;
  out[threadIdx.x] = static_cast<float>(hidden_plus(static_cast<int>(threadIdx.x)));
}
__global__ void copy(const float* from, float* out) { out[threadIdx.x] = from[threadIdx.x]; }
__global__ void sides(int* out) {
  Shape* shape = threadIdx.x % 2 == 0 ? new Shape : new Polygon(static_cast<int>(threadIdx.x));
  out[threadIdx.x] = shape->sides();
  delete shape;
}

}  // namespace

void managed() {
  float *out, *address;
  CHECK_CUDA(cudaMallocManaged(&out, 32 * sizeof(float)));
  CHECK(counter == 5);
  count<<<1, 32>>>(out);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK(counter == 37 && table[3] == 8 && out[2] == 42);
  counter = 100;
  const int two = 2;
  CHECK_CUDA(cudaMemcpyToSymbol(hidden, &two, sizeof two));
  const float other[4] = {5, 6, 7, 8};
  CHECK_CUDA(cudaMemcpyToSymbol(factors, other, sizeof other));
  count<<<1, 32>>>(out);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK(counter == 132 && table[3] == 16 && out[2] == 4);
  CHECK_CUDA(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), table));
  CHECK(address == table);
  CHECK_CUDA(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), factors));
  copy<<<1, 4>>>(address, out);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK(out[0] == 5 && out[3] == 8);
  const float nine = 9;
  CHECK_CUDA(cudaMemcpy(address + 3, &nine, sizeof nine, cudaMemcpyHostToDevice));
  count<<<1, 32>>>(out);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK(table[3] == 18);
  CHECK_CUDA(cudaFree(out));
}

void virtual_functions() {
  int *out, result[32];
  CHECK_CUDA(cudaMalloc(&out, sizeof result));
  sides<<<1, 32>>>(out);
  CHECK_CUDA(cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost));
  CHECK(result[6] == 0 && result[7] == 7);
  CHECK_CUDA(cudaFree(out));
}

void planes() {
  cudaPitchedPtr device;
  const cudaExtent extent = make_cudaExtent(24, 3, 2);
  char host[24 * 3 * 2] = {};
  CHECK_CUDA(cudaMalloc3D(&device, extent));
  CHECK(device.pitch >= 24 && device.ysize == 3);
  CHECK_CUDA(cudaMemset3D(device, 5, extent));
  CHECK_CUDA(cudaMemset2DAsync(static_cast<char*>(device.ptr) + 3 * device.pitch, device.pitch, 9,
                               8, 3, nullptr));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = device;
  copy.dstPtr = make_cudaPitchedPtr(host, 24, 24, 3);
  copy.extent = extent;
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK_CUDA(cudaMemcpy3D(&copy));
  CHECK(host[0] == 5 && host[24 * 3 + 7] == 9 && host[24 * 3 + 8] == 5 && host[24 * 6 - 1] == 5);
  CHECK_CUDA(cudaFree(device.ptr));
  cudaStreamAttrValue value;
  CHECK_CUDA(cudaStreamGetAttribute(nullptr, cudaStreamAttributePriority, &value));
  size_t bytes = 0;
  CHECK_CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 20));
  CHECK_CUDA(cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize));
  CHECK(bytes == 1 << 20);
  cudaLaunchConfig_t config{};
  config.gridDim = 16;
  config.blockDim = 32;
  int ctas = 0;
  CHECK_CUDA(cudaOccupancyMaxPotentialClusterSize(&ctas, sides, &config));
  CHECK(ctas == 8);
  CHECK_CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, sides, 2, 32));
  CHECK(bytes > 100000 && bytes < 116736);
}
