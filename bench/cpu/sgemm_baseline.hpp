// The baseline: OpenBLAS sgemm, twice, on operands decoded to FP32 beforehand, then the activation.
// OpenBLAS is looked for at run time, so that the benchmark builds and runs without it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/cpu/operands.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::bench {

class SgemmBaseline {
 public:
  // kNotFound when no libopenblas can be loaded. Decodes the operands; `operands` need not live on.
  static Expected<std::shared_ptr<SgemmBaseline>> load(Operands& operands, int threads);

  // D = silu(alpha a Gate^T) * (alpha a Up^T) for the first m rows of A, alphas as in `operands`.
  void run(int64_t m);
  const float* d() { return r1_.data(); }                // m x n, of the last run
  const std::string& config() const { return config_; }  // as the library describes itself

 private:
  SgemmBaseline() = default;

  using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                         const float* a, int lda, const float* b, int ldb, float beta, float* c,
                         int ldc);
  Sgemm sgemm_ = nullptr;
  std::string config_;
  int64_t n_ = 0, k_ = 0;
  int threads_ = 1;
  float alpha_gate_ = 1, alpha_up_ = 1;
  AlignedArray<float> a_, gate_, up_, r1_, r2_;
};

}  // namespace dualgemm::bench
