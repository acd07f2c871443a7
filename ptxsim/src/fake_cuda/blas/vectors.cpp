// cublasSetVector and its like: copies between the host and the GPU with strides in elements.
#include "fake_cuda/blas/handle.hpp"
#include "fake_cuda/runtime/calls.hpp"

namespace ptxsim::cuda::blas {
namespace {

constexpr int kHostToDevice = 1, kDeviceToHost = 2;  // cudaMemcpyKind

int copy_columns(int rows, int columns, int element_bytes, const void* from, int from_ld, void* to,
                 int to_ld, int direction, void* stream) {
  if (rows < 0 || columns < 0 || element_bytes <= 0 || from_ld <= 0 || to_ld <= 0)
    return kBlasInvalidValue;
  if (rows == 0 || columns == 0) return kBlasSuccess;
  const auto bytes = [&](int elements) {
    return static_cast<size_t>(elements) * static_cast<size_t>(element_bytes);
  };
  const int status = cudaMemcpy2DAsync(to, bytes(to_ld), from, bytes(from_ld), bytes(rows),
                                       static_cast<size_t>(columns), direction, stream);
  return status == kSuccess ? kBlasSuccess : kBlasMappingError;
}

// A vector is a matrix of one row.
int copy_vector(int count, int element_bytes, const void* from, int from_step, void* to,
                int to_step, int direction, void* stream) {
  return copy_columns(1, count, element_bytes, from, from_step, to, to_step, direction, stream);
}

}  // namespace

PTXSIM_CUDA_API int cublasSetVector(int count, int bytes, const void* from, int from_step, void* to,
                                    int to_step) {
  return copy_vector(count, bytes, from, from_step, to, to_step, kHostToDevice, nullptr);
}
PTXSIM_CUDA_API int cublasSetVectorAsync(int count, int bytes, const void* from, int from_step,
                                         void* to, int to_step, void* stream) {
  return copy_vector(count, bytes, from, from_step, to, to_step, kHostToDevice, stream);
}
PTXSIM_CUDA_API int cublasGetVector(int count, int bytes, const void* from, int from_step, void* to,
                                    int to_step) {
  return copy_vector(count, bytes, from, from_step, to, to_step, kDeviceToHost, nullptr);
}
PTXSIM_CUDA_API int cublasGetVectorAsync(int count, int bytes, const void* from, int from_step,
                                         void* to, int to_step, void* stream) {
  return copy_vector(count, bytes, from, from_step, to, to_step, kDeviceToHost, stream);
}
PTXSIM_CUDA_API int cublasSetMatrix(int rows, int columns, int bytes, const void* from, int from_ld,
                                    void* to, int to_ld) {
  return copy_columns(rows, columns, bytes, from, from_ld, to, to_ld, kHostToDevice, nullptr);
}
PTXSIM_CUDA_API int cublasSetMatrixAsync(int rows, int columns, int bytes, const void* from,
                                         int from_ld, void* to, int to_ld, void* stream) {
  return copy_columns(rows, columns, bytes, from, from_ld, to, to_ld, kHostToDevice, stream);
}
PTXSIM_CUDA_API int cublasGetMatrix(int rows, int columns, int bytes, const void* from, int from_ld,
                                    void* to, int to_ld) {
  return copy_columns(rows, columns, bytes, from, from_ld, to, to_ld, kDeviceToHost, nullptr);
}
PTXSIM_CUDA_API int cublasGetMatrixAsync(int rows, int columns, int bytes, const void* from,
                                         int from_ld, void* to, int to_ld, void* stream) {
  return copy_columns(rows, columns, bytes, from, from_ld, to, to_ld, kDeviceToHost, stream);
}

}  // namespace ptxsim::cuda::blas
