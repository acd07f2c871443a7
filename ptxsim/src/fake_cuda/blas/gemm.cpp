// Products of cuBLAS: matrices lie column by column.
#include <algorithm>

#include "fake_cuda/blas/gemm.hpp"
#include "fake_cuda/blas/handle.hpp"

namespace ptxsim::cuda::blas {
namespace {

Matrix matrix_of(const char* name, const Operand& operand, int64_t rows, int64_t columns) {
  return {name,
          static_cast<Type>(operand.type),
          operand.begin,
          static_cast<uint64_t>(rows),
          static_cast<uint64_t>(columns),
          operand.ld,
          false,
          operand.stride,
          operand.is_array};
}

bool is_operation(int operation) { return operation >= kPlain && operation <= kConjugated; }

// What cuBLAS documents of its arguments ("cublas<t>gemm()").
bool is_valid(const Gemm& g) {
  if (!is_operation(g.op_a) || !is_operation(g.op_b) || g.m < 0 || g.n < 0 || g.k < 0 ||
      g.batches < 0 || g.alpha == nullptr || g.beta == nullptr)
    return false;
  return g.a.ld >= std::max<int64_t>(1, g.op_a == kPlain ? g.m : g.k) &&
         g.b.ld >= std::max<int64_t>(1, g.op_b == kPlain ? g.k : g.n) &&
         g.c.ld >= std::max<int64_t>(1, g.m);
}

// cuBLAS, "cublasGemmEx()": A and B of one type; C of theirs, or f32 where sums are.
bool is_modelled(const Gemm& g, Type sums) {
  const auto type_a = static_cast<Type>(g.a.type), type_c = static_cast<Type>(g.c.type);
  if (g.a.type != g.b.type || !is_of_products(type_a) || !is_of_products(type_c)) return false;
  if (sums != Type::kF32) return type_a == sums && type_c == sums;
  return type_a != Type::kF64 && (type_c == type_a || type_c == Type::kF32);
}

BlasStatus multiply(void* handle, const Gemm& g) {
  return with_handle(handle, [&](Session& session, const Handle& h) {
    Product p;
    const BlasStatus status = make_product(session, g, h.pointer_mode, p);
    return status == kBlasSuccess ? issue(session, g.call, h.stream, p) : status;
  });
}

}  // namespace

BlasStatus make_product(Session& session, const Gemm& g, PointerMode mode, Product& p) {
  if (!is_valid(g)) {
    session.recorder.refused(g.call, kInvalidValue,
                             "a size, a leading dimension, an operation or a null pointer that "
                             "cuBLAS does not take");
    return kBlasInvalidValue;
  }
  if (!scale_type_of(g.compute, p.sums) || !is_modelled(g, p.sums))
    return refuse(session, g.call,
                  "a product of types " + std::to_string(g.a.type) + " and " +
                      std::to_string(g.b.type) + " to " + std::to_string(g.c.type) +
                      " with compute type " + std::to_string(g.compute));
  p.scale = p.sums;
  p.m = static_cast<uint64_t>(g.m);
  p.n = static_cast<uint64_t>(g.n);
  p.k = static_cast<uint64_t>(g.k);
  p.batches = static_cast<uint64_t>(g.batches);
  p.transposes_a = g.op_a != kPlain;
  p.transposes_b = g.op_b != kPlain;
  p.a = p.transposes_a ? matrix_of("A", g.a, g.k, g.m) : matrix_of("A", g.a, g.m, g.k);
  p.b = p.transposes_b ? matrix_of("B", g.b, g.n, g.k) : matrix_of("B", g.b, g.k, g.n);
  p.c = matrix_of("C", g.c, g.m, g.n);
  p.d = p.c;
  p.alpha = {g.alpha, mode};
  p.beta = {g.beta, mode};
  return kBlasSuccess;
}

// What the types of one letter have: `Number` of memory, by its cudaDataType, and sums of it.
// `Int`: of sizes.
#define PTXSIM_GEMM_OF(function, strided, batched, Int, Stride, Number, type, compute)         \
  PTXSIM_CUDA_API int function(void* handle, int op_a, int op_b, Int m, Int n, Int k,          \
                               const Number* alpha, const Number* a, Int lda, const Number* b, \
                               Int ldb, const Number* beta, Number* c, Int ldc) {              \
    return multiply(handle, {#function,                                                        \
                             op_a,                                                             \
                             op_b,                                                             \
                             m,                                                                \
                             n,                                                                \
                             k,                                                                \
                             alpha,                                                            \
                             {a, type, lda, 0},                                                \
                             {b, type, ldb, 0},                                                \
                             beta,                                                             \
                             {c, type, ldc, 0},                                                \
                             1,                                                                \
                             compute});                                                        \
  }                                                                                            \
  PTXSIM_CUDA_API int strided(void* handle, int op_a, int op_b, Int m, Int n, Int k,           \
                              const Number* alpha, const Number* a, Int lda, Stride stride_a,  \
                              const Number* b, Int ldb, Stride stride_b, const Number* beta,   \
                              Number* c, Int ldc, Stride stride_c, Int batches) {              \
    return multiply(handle, {#strided,                                                         \
                             op_a,                                                             \
                             op_b,                                                             \
                             m,                                                                \
                             n,                                                                \
                             k,                                                                \
                             alpha,                                                            \
                             {a, type, lda, stride_a},                                         \
                             {b, type, ldb, stride_b},                                         \
                             beta,                                                             \
                             {c, type, ldc, stride_c},                                         \
                             batches,                                                          \
                             compute});                                                        \
  }                                                                                            \
  PTXSIM_CUDA_API int batched(void* handle, int op_a, int op_b, Int m, Int n, Int k,           \
                              const Number* alpha, const Number* const* a, Int lda,            \
                              const Number* const* b, Int ldb, const Number* beta,             \
                              Number* const* c, Int ldc, Int batches) {                        \
    return multiply(handle, {#batched,                                                         \
                             op_a,                                                             \
                             op_b,                                                             \
                             m,                                                                \
                             n,                                                                \
                             k,                                                                \
                             alpha,                                                            \
                             {a, type, lda, 0, true},                                          \
                             {b, type, ldb, 0, true},                                          \
                             beta,                                                             \
                             {c, type, ldc, 0, true},                                          \
                             batches,                                                          \
                             compute});                                                        \
  }
#define PTXSIM_GEMM(function, strided, batched, Number, type, compute)                        \
  PTXSIM_GEMM_OF(function, strided, batched, int, long long, Number, type, compute)           \
  PTXSIM_GEMM_OF(function##_64, strided##_64, batched##_64, int64_t, long long, Number, type, \
                 compute)

PTXSIM_GEMM(cublasSgemm_v2, cublasSgemmStridedBatched, cublasSgemmBatched, float, kReal32,
            kCompute32)
PTXSIM_GEMM(cublasDgemm_v2, cublasDgemmStridedBatched, cublasDgemmBatched, double, kReal64,
            kCompute64)
PTXSIM_GEMM(cublasHgemm, cublasHgemmStridedBatched, cublasHgemmBatched, void, kReal16, kCompute16)

// The types are arguments.
#define PTXSIM_GEMM_EX(suffix, Int)                                                                \
  PTXSIM_CUDA_API int cublasGemmEx##suffix(void* handle, int op_a, int op_b, Int m, Int n, Int k,  \
                                           const void* alpha, const void* a, int type_a, Int lda,  \
                                           const void* b, int type_b, Int ldb, const void* beta,   \
                                           void* c, int type_c, Int ldc, int compute, int) {       \
    return multiply(handle, {"cublasGemmEx" #suffix,                                               \
                             op_a,                                                                 \
                             op_b,                                                                 \
                             m,                                                                    \
                             n,                                                                    \
                             k,                                                                    \
                             alpha,                                                                \
                             {a, type_a, lda, 0},                                                  \
                             {b, type_b, ldb, 0},                                                  \
                             beta,                                                                 \
                             {c, type_c, ldc, 0},                                                  \
                             1,                                                                    \
                             compute});                                                            \
  }                                                                                                \
  PTXSIM_CUDA_API int cublasGemmStridedBatchedEx##suffix(                                          \
      void* handle, int op_a, int op_b, Int m, Int n, Int k, const void* alpha, const void* a,     \
      int type_a, Int lda, long long stride_a, const void* b, int type_b, Int ldb,                 \
      long long stride_b, const void* beta, void* c, int type_c, Int ldc, long long stride_c,      \
      Int batches, int compute, int) {                                                             \
    return multiply(handle, {"cublasGemmStridedBatchedEx" #suffix,                                 \
                             op_a,                                                                 \
                             op_b,                                                                 \
                             m,                                                                    \
                             n,                                                                    \
                             k,                                                                    \
                             alpha,                                                                \
                             {a, type_a, lda, stride_a},                                           \
                             {b, type_b, ldb, stride_b},                                           \
                             beta,                                                                 \
                             {c, type_c, ldc, stride_c},                                           \
                             batches,                                                              \
                             compute});                                                            \
  }                                                                                                \
  PTXSIM_CUDA_API int cublasGemmBatchedEx##suffix(                                                 \
      void* handle, int op_a, int op_b, Int m, Int n, Int k, const void* alpha,                    \
      const void* const* a, int type_a, Int lda, const void* const* b, int type_b, Int ldb,        \
      const void* beta, void* const* c, int type_c, Int ldc, Int batches, int compute, int) {      \
    return multiply(handle, {"cublasGemmBatchedEx" #suffix,                                        \
                             op_a,                                                                 \
                             op_b,                                                                 \
                             m,                                                                    \
                             n,                                                                    \
                             k,                                                                    \
                             alpha,                                                                \
                             {a, type_a, lda, 0, true},                                            \
                             {b, type_b, ldb, 0, true},                                            \
                             beta,                                                                 \
                             {c, type_c, ldc, 0, true},                                            \
                             batches,                                                              \
                             compute});                                                            \
  }                                                                                                \
  PTXSIM_CUDA_API int cublasSgemmEx##suffix(void* handle, int op_a, int op_b, Int m, Int n, Int k, \
                                            const float* alpha, const void* a, int type_a,         \
                                            Int lda, const void* b, int type_b, Int ldb,           \
                                            const float* beta, void* c, int type_c, Int ldc) {     \
    return multiply(handle, {"cublasSgemmEx" #suffix,                                              \
                             op_a,                                                                 \
                             op_b,                                                                 \
                             m,                                                                    \
                             n,                                                                    \
                             k,                                                                    \
                             alpha,                                                                \
                             {a, type_a, lda, 0},                                                  \
                             {b, type_b, ldb, 0},                                                  \
                             beta,                                                                 \
                             {c, type_c, ldc, 0},                                                  \
                             1,                                                                    \
                             kCompute32});                                                         \
  }

PTXSIM_GEMM_EX(, int)
PTXSIM_GEMM_EX(_64, int64_t)

}  // namespace ptxsim::cuda::blas
