// Numbers of cuBLAS's and cuBLASLt's interface (CUDA 13.0: cublas_api.h, cublasLt.h,
// library_types.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "fake_cuda/status.hpp"

namespace ptxsim::cuda::blas {

enum BlasStatus : int {  // cublasStatus_t
  kBlasSuccess = 0,
  kBlasNotInitialized = 1,
  kBlasAllocFailed = 3,
  kBlasInvalidValue = 7,
  kBlasMappingError = 11,
  kBlasExecutionFailed = 13,
  kBlasNotSupported = 15,
};

// cudaDataType
enum class Type : int { kF32 = 0, kF64 = 1, kF16 = 2, kI32 = 10, kBf16 = 14 };
// 0: no type that is modelled.
inline uint32_t bytes_of(Type type) {
  switch (type) {
    case Type::kF64:
      return 8;
    case Type::kF32:
    case Type::kI32:
      return 4;
    case Type::kF16:
    case Type::kBf16:
      return 2;
  }
  return 0;
}

inline bool is_of_products(Type type) { return bytes_of(type) != 0 && type != Type::kI32; }

enum Transpose : int { kPlain, kTransposed, kConjugated };  // cublasOperation_t
enum PointerMode : int { kOfHost, kOfDevice };              // cublasPointerMode_t

// cublasComputeType_t: the type of sums, and of alpha and beta with it. False: it is not modelled.
inline bool scale_type_of(int compute, Type& type) {
  switch (compute) {
    case 64:  // CUBLAS_COMPUTE_16F
    case 65:  // ..._PEDANTIC
      type = Type::kF16;
      return true;
    case 68:  // CUBLAS_COMPUTE_32F
    case 69:  // ..._PEDANTIC
    case 74:  // ..._FAST_16F: a permission, of which no use is made
    case 75:  // ..._FAST_16BF
    case 77:  // ..._FAST_TF32
      type = Type::kF32;
      return true;
    case 70:  // CUBLAS_COMPUTE_64F
    case 71:  // ..._PEDANTIC
      type = Type::kF64;
      return true;
    default:
      return false;
  }
}

}  // namespace ptxsim::cuda::blas
