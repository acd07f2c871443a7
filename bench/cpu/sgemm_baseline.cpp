#include "bench/cpu/sgemm_baseline.hpp"

#include <dlfcn.h>

#include <cmath>
#include <utility>

namespace dualgemm::bench {
namespace {

// From cblas.h; not included because the header may be absent where the library is.
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;

void* open_library() {
  for (const char* name : {"libopenblas.so.0", "libopenblas.so"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

Expected<std::shared_ptr<SgemmBaseline>> SgemmBaseline::load(Operands& operands, int threads) {
  void* library = open_library();  // stays loaded: its threads outlive every use
  if (library == nullptr) {
    return Status::error(StatusCode::kNotFound, "openblas", "libopenblas.so.0 is not installed",
                         "install libopenblas0 to get the baseline");
  }
  std::shared_ptr<SgemmBaseline> baseline(new SgemmBaseline);
  baseline->sgemm_ = symbol<Sgemm>(library, "cblas_sgemm");
  const auto set_threads = symbol<void (*)(int)>(library, "openblas_set_num_threads");
  const auto get_config = symbol<char* (*)()>(library, "openblas_get_config");
  if (baseline->sgemm_ == nullptr || set_threads == nullptr || get_config == nullptr) {
    return Status::error(StatusCode::kNotFound, "openblas", "a library without cblas_sgemm",
                         "needs OpenBLAS with its C interface");
  }
  set_threads(threads);
  baseline->config_ = get_config();
  baseline->threads_ = threads;
  baseline->n_ = operands.n();
  baseline->k_ = operands.k();
  const Buffers inputs = operands.inputs(DataType::kE2M1, 0);
  baseline->alpha_gate_ = inputs.alpha_gate;
  baseline->alpha_up_ = inputs.alpha_up;
  for (auto [matrix, values] : {std::pair{&operands.a(), &baseline->a_},
                                {&operands.gate(), &baseline->gate_},
                                {&operands.up(), &baseline->up_}}) {
    Expected<AlignedArray<float>> decoded = matrix->decoded();
    if (!decoded) return decoded.status();
    *values = *std::move(decoded);
  }
  baseline->r1_ = AlignedArray<float>(operands.a().rows * operands.n());
  baseline->r2_ = AlignedArray<float>(operands.a().rows * operands.n());
  return baseline;
}

void SgemmBaseline::run(int64_t m) {
  const auto multiply = [&](float alpha, const float* weights, float* result) {
    const int rows = static_cast<int>(m), n = static_cast<int>(n_), k = static_cast<int>(k_);
    sgemm_(kRowMajor, kNoTrans, kTrans, rows, n, k, alpha, a_.data(), k, weights, k, 0.0f, result,
           n);
  };
  multiply(alpha_gate_, gate_.data(), r1_.data());
  multiply(alpha_up_, up_.data(), r2_.data());
  float* r1 = r1_.data();
  const float* r2 = r2_.data();
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (int64_t i = 0; i < m * n_; ++i) r1[i] = r1[i] / (1.0f + std::exp(-r1[i])) * r2[i];
}

}  // namespace dualgemm::bench
