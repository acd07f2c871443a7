// D = epilogue(alpha op(A) op(B) + beta C) on the host: what a product of cuBLAS does to the GPU's
// memory. Sums are exact to the last bits of a double and rounded once, to the type of sums and
// then to D's; cuBLAS rounds more often, in an order that it does not tell.
#pragma once

#include <cstdint>
#include <vector>

#include "fake_cuda/blas/types.hpp"
#include "fake_cuda/session.hpp"

namespace ptxsim::cuda::blas {

struct Matrix {
  const char* name = "";  // for messages
  Type type = Type::kF32;
  const void* begin = nullptr;
  uint64_t rows = 0, columns = 0;  // as it is stored
  int64_t ld = 0;                  // elements from a column to the next; from a row, with row_major
  bool row_major = false;
  int64_t batch_stride = 0;  // in elements
  // `begin` is an array of addresses in the GPU's memory, one for each batch, which is read when
  // the product is done: into `begins`.
  bool is_array = false;
  std::vector<const void*> begins = {};
  bool may_be_of_host = false;  // of cuBLASXt: memory that no kernel sees will do
};

struct Scale {  // alpha, beta
  const void* at = nullptr;
  PointerMode mode = kOfHost;
};

enum Epilogue : int { kNone = 1, kRelu = 2, kBias = 4, kReluBias = 6 };  // cublasLtEpilogue_t

struct Product {
  uint64_t m = 0, n = 0, k = 0, batches = 1;
  bool transposes_a = false, transposes_b = false;
  Type sums = Type::kF32, scale = Type::kF32;
  Matrix a, b, c, d;
  Scale alpha, beta;
  Epilogue epilogue = kNone;
  Matrix bias;  // one column of m elements
};

// Done now, or in the graph that the stream captures. `call` names it in the report, with what it
// must not read or write: memory that no kernel sees, that is not inside one allocation, or that
// was never written. Such a product ends as a kernel does that faults.
BlasStatus issue(Session& session, const char* call, void* stream, Product product);

// A call, or what it is to do, that CUDA has and the stand-in has not; recorded.
BlasStatus refuse(Session& session, const char* call, const std::string& what);

}  // namespace ptxsim::cuda::blas
