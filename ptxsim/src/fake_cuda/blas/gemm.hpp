// What calls of the family "gemm" say, and the product that it is.
#pragma once

#include "fake_cuda/blas/product.hpp"

namespace ptxsim::cuda::blas {

struct Operand {
  const void* begin;
  int type;  // cudaDataType
  int64_t ld;
  int64_t stride;
  bool is_array = false;  // `begin`: addresses in the GPU's memory, one for each batch
};

struct Gemm {
  const char* call;
  int op_a, op_b;
  int64_t m, n, k;
  const void* alpha;
  Operand a, b;
  const void* beta;
  Operand c;
  int64_t batches;
  int compute;  // cublasComputeType_t
};

// cublasComputeType_t, cudaDataType
inline constexpr int kCompute16 = 64, kCompute32 = 68, kCompute64 = 70;
inline constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2;

// Column by column. What cuBLAS does not take, or the stand-in has not, is recorded.
BlasStatus make_product(Session& session, const Gemm& g, PointerMode mode, Product& p);

}  // namespace ptxsim::cuda::blas
