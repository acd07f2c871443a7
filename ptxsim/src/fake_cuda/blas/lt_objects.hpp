// What the opaque objects of cuBLASLt hold here, in the room that its header gives them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fake_cuda/blas/product.hpp"

namespace ptxsim::cuda::blas {

struct LtLayout {  // cublasLtMatrixLayoutOpaque_t
  Type type = Type::kF32;
  int32_t row_major = 0;  // CUBLASLT_ORDER_COL, CUBLASLT_ORDER_ROW
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0, batch_stride = 0;
  int32_t batches = 1;
  int32_t refused = -1;  // an attribute, or -1: what is not modelled
};
static_assert(sizeof(LtLayout) <= 8 * sizeof(uint64_t));

struct LtDescriptor {  // cublasLtMatmulDescOpaque_t
  int32_t compute = 0;
  Type scale = Type::kF32;
  int32_t pointer_mode = kOfHost;
  int32_t transpose_a = kPlain, transpose_b = kPlain;
  int32_t epilogue = kNone;
  const void* bias = nullptr;
  int64_t bias_stride = 0;
  int32_t bias_type = -1;  // as D
  int32_t refused = -1;    // an attribute
};
static_assert(sizeof(LtDescriptor) <= 32 * sizeof(uint64_t));

struct LtPreference {  // cublasLtMatmulPreferenceOpaque_t
  uint64_t workspace_bytes = 0;
};
static_assert(sizeof(LtPreference) <= 8 * sizeof(uint64_t));

struct LtHeuristic {  // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(LtHeuristic) == 96);

}  // namespace ptxsim::cuda::blas
