// cudaMalloc whose memory is zero, as a GPU's mostly is in a fresh process: for programs that count
// on it.
#pragma once

#include <cuda_runtime.h>

template <class T>
cudaError_t zeroed_memory(T** pointer, size_t bytes) {
  const cudaError_t status = cudaMalloc(pointer, bytes);
  return status == cudaSuccess ? cudaMemset(*pointer, 0, bytes) : status;
}
#define cudaMalloc zeroed_memory
