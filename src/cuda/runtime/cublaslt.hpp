// Plain GEMMs by cuBLASLt, which is looked for when the first one is wanted: nothing links to it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

// What both operands hold. kE4M3: without scales; they are the caller's business. kNvfp4: codes and
// block scales in the swizzled 128x4 layout, multiplied as they are (compute capability 10.0).
enum class GemmNumber : int32_t { kF16, kBF16, kE4M3, kNvfp4 };

// d[b] = a[b] * w[b]^T in FP32 for b = 0 .. batches-1: a m x k, w n x k, d m x n, k contiguous in a
// and w, n in d. Strides are elements. All rows start at multiples of 16 bytes.
struct GemmShape {
  GemmNumber number;
  int64_t m, n, k, batches;
  int64_t a_ld, a_batch_stride;
  int64_t w_ld, w_batch_stride;
  int64_t d_ld, d_batch_stride;
  bool operator==(const GemmShape&) const = default;
};

struct GemmOperands {
  const void* a;
  const void* w;
  float* d;
  void* workspace;                    // kGemmWorkspaceBytes, aligned to 256
  const uint8_t* a_scales = nullptr;  // kNvfp4, one batch: aligned to 16
  const uint8_t* w_scales = nullptr;
};

inline constexpr int64_t kGemmWorkspaceBytes = int64_t{32} << 20;

// Decides which of cuBLASLt's algorithms computes `shape` on the current GPU: the first that is
// deterministic and fits the workspace, among at least 8 that its heuristics propose. The decision
// is a function of the shape, the GPU and the version of cuBLASLt; it is made once and remembered.
// An error says what is missing: the library (DUALGEMM_CUBLASLT may hold its path), or an
// algorithm.
Status plan_gemm(const GemmShape& shape);

// Enqueues. Plans first if that was not done.
Status enqueue_gemm(const GemmShape& shape, const GemmOperands& operands, cudaStream_t stream);

}  // namespace dualgemm::cuda
