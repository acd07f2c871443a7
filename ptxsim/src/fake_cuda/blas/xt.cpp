// cuBLASXt: products of matrices that lie in the host's memory, or the GPU's. The host waits for
// them. How they are cut into tiles has no effect on what they are.
#include <memory>
#include <set>

#include "fake_cuda/blas/gemm.hpp"
#include "fake_cuda/blas/handle.hpp"

namespace ptxsim::cuda::blas {
namespace {

struct XtHandle {              // cublasXtHandle_t
  int block_dimension = 2048;  // until the program sets it; which one cuBLASXt has is not known
  int pinning = 0;             // cublasXtPinnedMemMode_t
};

// Under the session's mutex. Never destroyed, as the session is not.
std::set<std::unique_ptr<XtHandle>>& handles() {
  static auto* all = new std::set<std::unique_ptr<XtHandle>>();
  return *all;
}

// f(Session&, XtHandle&) -> BlasStatus
template <class F>
BlasStatus with_xt_handle(const void* handle, F&& f) {
  return blas_call([&](Session& session) {
    for (const auto& one : handles())
      if (one.get() == handle) return f(session, *one);
    return kBlasNotInitialized;
  });
}

BlasStatus multiply(const void* handle, const Gemm& g) {
  return with_xt_handle(handle, [&](Session& session, XtHandle&) {
    Product p;
    const BlasStatus status = make_product(session, g, kOfHost, p);
    if (status != kBlasSuccess) return status;
    for (Matrix* matrix : {&p.a, &p.b, &p.c, &p.d}) matrix->may_be_of_host = true;
    if (session.streams.synchronize_host() != kSuccess) return kBlasExecutionFailed;
    const BlasStatus issued = issue(session, g.call, nullptr, p);
    return session.streams.synchronize_host() == kSuccess ? issued : kBlasExecutionFailed;
  });
}

BlasStatus tell(const void* handle, int XtHandle::*field, int* out) {
  return with_xt_handle(handle, [&](Session&, const XtHandle& h) {
    if (out == nullptr) return kBlasInvalidValue;
    *out = h.*field;
    return kBlasSuccess;
  });
}

int64_t size_of(size_t size) { return static_cast<int64_t>(size); }

}  // namespace

PTXSIM_CUDA_API int cublasXtCreate(void** handle) {
  return blas_call([&](Session&) {
    if (handle == nullptr) return kBlasInvalidValue;
    *handle = handles().insert(std::make_unique<XtHandle>()).first->get();
    return kBlasSuccess;
  });
}
PTXSIM_CUDA_API int cublasXtDestroy(void* handle) {
  return blas_call([&](Session&) {
    const auto erased = std::erase_if(handles(), [&](const auto& h) { return h.get() == handle; });
    return erased != 0 ? kBlasSuccess : kBlasNotInitialized;
  });
}
// There is GPU 0 alone.
PTXSIM_CUDA_API int cublasXtDeviceSelect(void* handle, int count, const int* devices) {
  return with_xt_handle(handle, [&](Session&, XtHandle&) {
    return count == 1 && devices != nullptr && devices[0] == 0 ? kBlasSuccess : kBlasInvalidValue;
  });
}
PTXSIM_CUDA_API int cublasXtSetBlockDim(void* handle, int dimension) {
  return with_xt_handle(handle, [&](Session&, XtHandle& h) {
    if (dimension <= 0) return kBlasInvalidValue;
    h.block_dimension = dimension;
    return kBlasSuccess;
  });
}
PTXSIM_CUDA_API int cublasXtGetBlockDim(void* handle, int* dimension) {
  return tell(handle, &XtHandle::block_dimension, dimension);
}
PTXSIM_CUDA_API int cublasXtSetPinningMemMode(void* handle, int mode) {
  return with_xt_handle(handle, [&](Session&, XtHandle& h) {
    h.pinning = mode;
    return kBlasSuccess;
  });
}
PTXSIM_CUDA_API int cublasXtGetPinningMemMode(void* handle, int* mode) {
  return tell(handle, &XtHandle::pinning, mode);
}

#define PTXSIM_XT_GEMM(function, Number, type, compute)                                           \
  PTXSIM_CUDA_API int function(void* handle, int op_a, int op_b, size_t m, size_t n, size_t k,    \
                               const Number* alpha, const Number* a, size_t lda, const Number* b, \
                               size_t ldb, const Number* beta, Number* c, size_t ldc) {           \
    return multiply(handle, {#function,                                                           \
                             op_a,                                                                \
                             op_b,                                                                \
                             size_of(m),                                                          \
                             size_of(n),                                                          \
                             size_of(k),                                                          \
                             alpha,                                                               \
                             {a, type, size_of(lda), 0},                                          \
                             {b, type, size_of(ldb), 0},                                          \
                             beta,                                                                \
                             {c, type, size_of(ldc), 0},                                          \
                             1,                                                                   \
                             compute});                                                           \
  }

PTXSIM_XT_GEMM(cublasXtSgemm, float, kReal32, kCompute32)
PTXSIM_XT_GEMM(cublasXtDgemm, double, kReal64, kCompute64)

}  // namespace ptxsim::cuda::blas
