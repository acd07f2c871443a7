#include "bench/cuda/lt_gemm.hpp"

#include <fmt/format.h>

#include <array>

namespace dualgemm::bench {
namespace {

constexpr int kWantedAlgorithms = 24;
constexpr int64_t kWorkspaceBytes = int64_t{64} << 20;

}  // namespace

Expected<LtContext> LtContext::make() {
  LtContext context;
  const Expected<cuda::CublasLtLibrary>& library = cuda::cublaslt();
  if (!library) return library.status();
  context.library = &*library;
  DUALGEMM_TRY(cuda::check(*library, library->create(&context.handle), "cublasLtCreate"));
  auto workspace = cuda::DeviceMemory::allocate(kWorkspaceBytes, "cuBLASLt's workspace");
  if (!workspace) return workspace.status();
  context.workspace = *std::move(workspace);
  return context;
}

std::string LtContext::version() const {
  const size_t number = library->version();  // 130002, in old versions 111103: three pairs
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

// cuBLASLt counts columns first. Read so, the row-major matrices are w (k x n), a (k x m) and
// d (n x m) = w^T * a: its A is w, its B is a.
Expected<LtGemm> LtGemm::make(LtContext& context, const LtShape& s) {
  const cuda::CublasLtLibrary& lt = *context.library;
  LtGemm gemm;
  gemm.context_ = &context;
  gemm.alpha_ = s.alpha;
  DUALGEMM_TRY(cuda::check(
      lt, lt.desc_init(&gemm.matmul_, sizeof gemm.matmul_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
      "cublasLtMatmulDescInit"));
  const cublasOperation_t transposed = CUBLAS_OP_T;
  DUALGEMM_TRY(cuda::check(
      lt, lt.desc_set(&gemm.matmul_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
      "cublasLtMatmulDescSetAttribute"));
  const bool e4m3 = s.number == LtNumber::kE4M3;
  if (e4m3) {
    const int8_t yes = 1;
    DUALGEMM_TRY(cuda::check(
        lt, lt.desc_set(&gemm.matmul_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &yes, sizeof yes),
        "cublasLtMatmulDescSetAttribute"));
  }
  const auto layout = [&](cublasLtMatrixLayoutOpaque_t* out, cudaDataType_t type, int64_t rows,
                          int64_t cols, int64_t ld) {
    return cuda::check(lt,
                       lt.layout_init(out, sizeof *out, type, static_cast<uint64_t>(rows),
                                      static_cast<uint64_t>(cols), ld),
                       "cublasLtMatrixLayoutInit");
  };
  const cudaDataType_t type = e4m3 ? CUDA_R_8F_E4M3 : CUDA_R_16F;
  DUALGEMM_TRY(layout(&gemm.w_, type, s.k, s.n, s.k));
  DUALGEMM_TRY(layout(&gemm.a_, type, s.k, s.m, s.k));
  DUALGEMM_TRY(layout(&gemm.d_, CUDA_R_16F, s.n, s.m, s.d_ld));

  cublasLtMatmulPreferenceOpaque_t preference;
  DUALGEMM_TRY(cuda::check(lt, lt.preference_init(&preference, sizeof preference),
                           "cublasLtMatmulPreferenceInit"));
  const auto workspace = static_cast<uint64_t>(kWorkspaceBytes);
  DUALGEMM_TRY(cuda::check(lt,
                           lt.preference_set(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace, sizeof workspace),
                           "cublasLtMatmulPreferenceSetAttribute"));
  std::array<cublasLtMatmulHeuristicResult_t, kWantedAlgorithms> found{};
  int count = 0;
  DUALGEMM_TRY(
      cuda::check(lt,
                  lt.heuristic(context.handle, &gemm.matmul_, &gemm.w_, &gemm.a_, &gemm.d_,
                               &gemm.d_, &preference, kWantedAlgorithms, found.data(), &count),
                  "cublasLtMatmulAlgoGetHeuristic"));
  for (int i = 0; i < count; ++i) {
    const auto& candidate = found[static_cast<size_t>(i)];
    if (candidate.state == CUBLAS_STATUS_SUCCESS) gemm.algorithms_.push_back(candidate.algo);
  }
  if (!gemm.algorithms_.empty()) return gemm;
  return Status::unsupported("cuBLASLt", fmt::format("{} x {} x {}", s.m, s.n, s.k),
                             "it has no algorithm for this on this GPU");
}

Status LtGemm::enqueue(int algorithm, const void* w, const void* a, void* d,
                       cudaStream_t stream) const {
  const float zero = 0.0f;
  const cuda::CublasLtLibrary& lt = *context_->library;
  return cuda::check(
      lt,
      lt.matmul(context_->handle, &matmul_, &alpha_, w, &w_, a, &a_, &zero, d, &d_, d, &d_,
                &algorithms_[static_cast<size_t>(algorithm)], context_->workspace.data(),
                static_cast<size_t>(kWorkspaceBytes), stream),
      "cublasLtMatmul");
}

}  // namespace dualgemm::bench
