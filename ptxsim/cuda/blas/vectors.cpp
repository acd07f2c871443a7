// cublasSetVector and its like: copies between the host and the GPU with strides in elements.
#include "ptxsim/cuda/blas/handle.hpp"
#include "ptxsim/cuda/runtime/calls.hpp"

namespace ptxsim::cuda::blas {
namespace {

constexpr int kHostToDevice = 1, kDeviceToHost = 2;  // cudaMemcpyKind

int copy_columns(int64_t rows, int64_t columns, int64_t element_bytes, const void* from,
                 int64_t from_ld, void* to, int64_t to_ld, int direction, void* stream) {
  if (rows < 0 || columns < 0 || element_bytes <= 0 || from_ld <= 0 || to_ld <= 0)
    return kBlasInvalidValue;
  if (rows == 0 || columns == 0) return kBlasSuccess;
  const auto bytes = [&](int64_t elements) {
    return static_cast<size_t>(elements) * static_cast<size_t>(element_bytes);
  };
  const int status = cudaMemcpy2DAsync(to, bytes(to_ld), from, bytes(from_ld), bytes(rows),
                                       static_cast<size_t>(columns), direction, stream);
  return status == kSuccess ? kBlasSuccess : kBlasMappingError;
}

// A vector is a matrix of one row.
int copy_vector(int64_t count, int64_t element_bytes, const void* from, int64_t from_step, void* to,
                int64_t to_step, int direction, void* stream) {
  return copy_columns(1, count, element_bytes, from, from_step, to, to_step, direction, stream);
}

}  // namespace

// `Int`: of sizes and steps.
#define PTXSIM_COPIES(suffix, Int)                                                                \
  PTXSIM_CUDA_API int cublasSetVector##suffix(Int count, Int bytes, const void* from,             \
                                              Int from_step, void* to, Int to_step) {             \
    return copy_vector(count, bytes, from, from_step, to, to_step, kHostToDevice, nullptr);       \
  }                                                                                               \
  PTXSIM_CUDA_API int cublasSetVectorAsync##suffix(Int count, Int bytes, const void* from,        \
                                                   Int from_step, void* to, Int to_step,          \
                                                   void* stream) {                                \
    return copy_vector(count, bytes, from, from_step, to, to_step, kHostToDevice, stream);        \
  }                                                                                               \
  PTXSIM_CUDA_API int cublasGetVector##suffix(Int count, Int bytes, const void* from,             \
                                              Int from_step, void* to, Int to_step) {             \
    return copy_vector(count, bytes, from, from_step, to, to_step, kDeviceToHost, nullptr);       \
  }                                                                                               \
  PTXSIM_CUDA_API int cublasGetVectorAsync##suffix(Int count, Int bytes, const void* from,        \
                                                   Int from_step, void* to, Int to_step,          \
                                                   void* stream) {                                \
    return copy_vector(count, bytes, from, from_step, to, to_step, kDeviceToHost, stream);        \
  }                                                                                               \
  PTXSIM_CUDA_API int cublasSetMatrix##suffix(Int rows, Int columns, Int bytes, const void* from, \
                                              Int from_ld, void* to, Int to_ld) {                 \
    return copy_columns(rows, columns, bytes, from, from_ld, to, to_ld, kHostToDevice, nullptr);  \
  }                                                                                               \
  PTXSIM_CUDA_API int cublasSetMatrixAsync##suffix(Int rows, Int columns, Int bytes,              \
                                                   const void* from, Int from_ld, void* to,       \
                                                   Int to_ld, void* stream) {                     \
    return copy_columns(rows, columns, bytes, from, from_ld, to, to_ld, kHostToDevice, stream);   \
  }                                                                                               \
  PTXSIM_CUDA_API int cublasGetMatrix##suffix(Int rows, Int columns, Int bytes, const void* from, \
                                              Int from_ld, void* to, Int to_ld) {                 \
    return copy_columns(rows, columns, bytes, from, from_ld, to, to_ld, kDeviceToHost, nullptr);  \
  }                                                                                               \
  PTXSIM_CUDA_API int cublasGetMatrixAsync##suffix(Int rows, Int columns, Int bytes,              \
                                                   const void* from, Int from_ld, void* to,       \
                                                   Int to_ld, void* stream) {                     \
    return copy_columns(rows, columns, bytes, from, from_ld, to, to_ld, kDeviceToHost, stream);   \
  }

PTXSIM_COPIES(, int)
PTXSIM_COPIES(_64, int64_t)

}  // namespace ptxsim::cuda::blas
