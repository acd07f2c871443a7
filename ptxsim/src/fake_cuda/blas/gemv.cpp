// Products of a matrix and a vector: y = alpha op(A) x + beta y (cuBLAS, "cublas<t>gemv()").
#include <algorithm>

#include "fake_cuda/blas/handle.hpp"

namespace ptxsim::cuda::blas {
namespace {

struct Vector {
  const void* begin;
  int64_t step;  // elements from one to the next
};

// Rows of one element: what lies `step` apart.
Matrix column_of(const char* name, Type type, const Vector& vector, int64_t count) {
  return {name, type, vector.begin, static_cast<uint64_t>(count), 1, vector.step, true};
}

BlasStatus multiply(const char* call, Type type, void* handle, int operation, int64_t m, int64_t n,
                    const void* alpha, const void* a, int64_t lda, const Vector& x,
                    const void* beta, const Vector& y) {
  return with_handle(handle, [&](Session& session, const Handle& h) {
    if (operation < kPlain || operation > kConjugated || m < 0 || n < 0 || x.step == 0 ||
        y.step == 0 || lda < std::max<int64_t>(1, m) || alpha == nullptr || beta == nullptr) {
      session.recorder.refused(call, kInvalidValue,
                               "a size, a leading dimension, a step, an operation or a null "
                               "pointer that cuBLAS does not take");
      return kBlasInvalidValue;
    }
    if (x.step < 0 || y.step < 0) return refuse(session, call, "a vector with a negative step");
    if (m == 0 || n == 0) return kBlasSuccess;
    Product p;
    p.transposes_a = operation != kPlain;
    p.m = static_cast<uint64_t>(p.transposes_a ? n : m);
    p.n = 1;
    p.k = static_cast<uint64_t>(p.transposes_a ? m : n);
    p.sums = p.scale = type;
    p.a = {"A", type, a, static_cast<uint64_t>(m), static_cast<uint64_t>(n), lda};
    p.b = column_of("x", type, x, static_cast<int64_t>(p.k));
    p.c = column_of("y", type, y, static_cast<int64_t>(p.m));
    p.d = p.c;
    p.alpha = {alpha, h.pointer_mode};
    p.beta = {beta, h.pointer_mode};
    return issue(session, call, h.stream, p);
  });
}

}  // namespace

#define PTXSIM_GEMV(function, Int, Number, type)                                                   \
  PTXSIM_CUDA_API int function(void* handle, int operation, Int m, Int n, const Number* alpha,     \
                               const Number* a, Int lda, const Number* x, Int step_of_x,           \
                               const Number* beta, Number* y, Int step_of_y) {                     \
    return multiply(#function, type, handle, operation, m, n, alpha, a, lda, {x, step_of_x}, beta, \
                    {y, step_of_y});                                                               \
  }

PTXSIM_GEMV(cublasSgemv_v2, int, float, Type::kF32)
PTXSIM_GEMV(cublasSgemv_v2_64, int64_t, float, Type::kF32)
PTXSIM_GEMV(cublasDgemv_v2, int, double, Type::kF64)
PTXSIM_GEMV(cublasDgemv_v2_64, int64_t, double, Type::kF64)

}  // namespace ptxsim::cuda::blas
