// cublasLtMatmul, and the choice of its algorithm: there is one.
#include <algorithm>
#include <string>

#include "fake_cuda/blas/handle.hpp"
#include "fake_cuda/blas/lt_objects.hpp"

namespace ptxsim::cuda::blas {
namespace {

struct LtArguments {
  const LtDescriptor* descriptor;
  const LtLayout *a, *b, *c, *d;
};

bool is_modelled(Epilogue epilogue) {
  return epilogue == kNone || epilogue == kRelu || epilogue == kBias || epilogue == kReluBias;
}

// What of the arguments is not modelled; empty: nothing.
std::string problem_of(const LtArguments& l, Type& sums) {
  const LtDescriptor& d = *l.descriptor;
  if (d.refused >= 0)
    return "attribute " + std::to_string(d.refused) + " of a cublasLtMatmulDesc_t";
  if (!scale_type_of(d.compute, sums)) return "compute type " + std::to_string(d.compute);
  if (d.scale != sums)
    return "scale type " + std::to_string(static_cast<int>(d.scale)) + " with compute type " +
           std::to_string(d.compute);
  if (!is_modelled(static_cast<Epilogue>(d.epilogue)))
    return "epilogue " + std::to_string(d.epilogue);
  if (d.pointer_mode != kOfHost && d.pointer_mode != kOfDevice)
    return "pointer mode " + std::to_string(d.pointer_mode);
  for (const LtLayout* layout : {l.a, l.b, l.c, l.d}) {
    if (layout->refused >= 0)
      return "attribute " + std::to_string(layout->refused) + " of a cublasLtMatrixLayout_t";
    if (!is_of_products(layout->type))
      return "a matrix of type " + std::to_string(static_cast<int>(layout->type));
    if ((layout->type == Type::kF64) != (sums == Type::kF64))
      return "a matrix of type " + std::to_string(static_cast<int>(layout->type)) +
             " with compute type " + std::to_string(d.compute);
    if (layout->row_major != 0 && layout->row_major != 1)
      return "order " + std::to_string(layout->row_major);
  }
  return "";
}

Matrix matrix_of(const char* name, const LtLayout& l, const void* begin) {
  return {name, l.type, begin, l.rows, l.columns, l.ld, l.row_major != 0, l.batch_stride};
}

bool has_room(const LtLayout& l) {
  const uint64_t line = l.row_major != 0 ? l.columns : l.rows;
  return l.ld >= 1 && static_cast<uint64_t>(l.ld) >= line && l.batches >= 0;
}

// The extents of the product. False: the matrices do not fit each other, or their leading
// dimensions them.
bool take_extents(const LtArguments& l, Product& p) {
  p.transposes_a = l.descriptor->transpose_a != kPlain;
  p.transposes_b = l.descriptor->transpose_b != kPlain;
  p.m = p.transposes_a ? l.a->columns : l.a->rows;
  p.k = p.transposes_a ? l.a->rows : l.a->columns;
  p.n = p.transposes_b ? l.b->rows : l.b->columns;
  p.batches = static_cast<uint64_t>(std::max(l.d->batches, 0));
  const uint64_t k_of_b = p.transposes_b ? l.b->columns : l.b->rows;
  if (k_of_b != p.k) return false;
  for (const LtLayout* layout : {l.c, l.d})
    if (layout->rows != p.m || layout->columns != p.n) return false;
  for (const LtLayout* layout : {l.a, l.b, l.c, l.d})
    if (!has_room(*layout) || layout->batches != l.d->batches) return false;
  return true;
}

// A null C descriptor stands for D's.
BlasStatus take(Session& session, const char* call, LtArguments l, Product& p) {
  if (l.c == nullptr) l.c = l.d;
  for (const void* object : {static_cast<const void*>(l.descriptor), static_cast<const void*>(l.a),
                             static_cast<const void*>(l.b), static_cast<const void*>(l.d)})
    if (object == nullptr) return kBlasInvalidValue;
  const std::string problem = problem_of(l, p.sums);
  if (!problem.empty()) return refuse(session, call, problem);
  if (!take_extents(l, p)) {
    session.recorder.refused(call, kInvalidValue,
                             "matrices whose extents, batches or leading dimensions do not fit");
    return kBlasInvalidValue;
  }
  p.scale = l.descriptor->scale;
  p.epilogue = static_cast<Epilogue>(l.descriptor->epilogue);
  return kBlasSuccess;
}

Matrix bias_of(const LtDescriptor& d, const LtLayout& result, uint64_t m) {
  const Type type = d.bias_type < 0 ? result.type : static_cast<Type>(d.bias_type);
  return {"the bias", type, d.bias, m, 1, static_cast<int64_t>(m), false, d.bias_stride};
}

}  // namespace

PTXSIM_CUDA_API int cublasLtMatmul(void* handle, const LtDescriptor* descriptor, const void* alpha,
                                   const void* a, const LtLayout* a_layout, const void* b,
                                   const LtLayout* b_layout, const void* beta, const void* c,
                                   const LtLayout* c_layout, void* d, const LtLayout* d_layout,
                                   const void*, void*, size_t, void* stream) {
  return with_handle(handle, [&](Session& session, const Handle&) {
    constexpr const char* kCall = "cublasLtMatmul";
    Product p;
    const BlasStatus status =
        take(session, kCall, {descriptor, a_layout, b_layout, c_layout, d_layout}, p);
    if (status != kBlasSuccess) return status;
    if (alpha == nullptr || beta == nullptr) return kBlasInvalidValue;
    p.a = matrix_of("A", *a_layout, a);
    p.b = matrix_of("B", *b_layout, b);
    p.c = matrix_of("C", c_layout == nullptr ? *d_layout : *c_layout, c);
    p.d = matrix_of("D", *d_layout, d);
    p.bias = bias_of(*descriptor, *d_layout, p.m);
    if ((p.epilogue & kBias) != 0 && !is_of_products(p.bias.type))
      return refuse(session, kCall,
                    "a bias of type " + std::to_string(static_cast<int>(p.bias.type)));
    const auto mode = static_cast<PointerMode>(descriptor->pointer_mode);
    p.alpha = {alpha, mode};
    p.beta = {beta, mode};
    return issue(session, kCall, stream, p);
  });
}

PTXSIM_CUDA_API int cublasLtMatmulAlgoGetHeuristic(void* handle, const LtDescriptor* descriptor,
                                                   const LtLayout* a, const LtLayout* b,
                                                   const LtLayout* c, const LtLayout* d,
                                                   const LtPreference*, int room,
                                                   LtHeuristic* results, int* count) {
  return with_handle(handle, [&](Session& session, const Handle&) {
    if (results == nullptr || count == nullptr || room < 1) return kBlasInvalidValue;
    *count = 0;
    Product p;
    const BlasStatus status =
        take(session, "cublasLtMatmulAlgoGetHeuristic", {descriptor, a, b, c, d}, p);
    if (status != kBlasSuccess) return status;
    results[0] = {};
    results[0].waves = 1;
    *count = 1;
    return kBlasSuccess;
  });
}

}  // namespace ptxsim::cuda::blas
