// A program without PTX: what no device of the stand-in can run.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void nothing() {}

int main() {
  nothing<<<1, 1>>>();
  const cudaError_t error = cudaGetLastError();
  std::printf("%s\n", cudaGetErrorName(error));
  return error == cudaErrorNoKernelImageForDevice ? 0 : 3;
}
