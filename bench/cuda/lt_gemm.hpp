// A plain GEMM by cuBLASLt, fp16 out, with every algorithm that its heuristics propose at hand.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "cuda/runtime/cublaslt_library.hpp"
#include "cuda/runtime/device_memory.hpp"

namespace dualgemm::bench {

// The library, a handle that lives as long as the process, and the workspace of all GEMMs.
struct LtContext {
  static Expected<LtContext> make();
  std::string version() const;  // "13.0.2"

  const cuda::CublasLtLibrary* library = nullptr;
  cublasLtHandle_t handle = nullptr;
  cuda::DeviceMemory workspace;
};

enum class LtNumber { kF16, kE4M3 };

// d = alpha * a * w^T: a m x k, w n x k, d m x n in rows of d_ld values. Sums in FP32; for E4M3
// with fast accumulation (sums of some products in fewer bits), as its users have it.
struct LtShape {
  LtNumber number;
  int64_t m, n, k, d_ld;
  float alpha;
};

class LtGemm {
 public:
  // Asks the heuristics for up to 24 algorithms; none is an error.
  static Expected<LtGemm> make(LtContext& context, const LtShape& shape);

  int num_algorithms() const noexcept { return static_cast<int>(algorithms_.size()); }
  Status enqueue(int algorithm, const void* w, const void* a, void* d, cudaStream_t stream) const;

 private:
  LtContext* context_ = nullptr;
  float alpha_ = 1.0f;
  // cuBLASLt counts columns first and works in place on these when it multiplies.
  mutable cublasLtMatmulDescOpaque_t matmul_;
  mutable cublasLtMatrixLayoutOpaque_t w_, a_, d_;
  std::vector<cublasLtMatmulAlgo_t> algorithms_;
};

}  // namespace dualgemm::bench
