#include "core/linear.hpp"

#include "core/problem.hpp"

namespace dualgemm::core {
namespace {

// W's strides between batches, which are not those that are tight for a half.
Matrix half_of(const LinearProblem& p) noexcept {
  Matrix half = p.w;
  if (p.l == 1) return half;
  const ResolvedMatrix w = resolve(p.w, p.n, p.k);
  half.batch_stride = w.batch_stride;
  half.scale_batch_stride = w.scale_batch_stride;
  return half;
}

template <class T>
const T* advanced(const T* pointer, int64_t bytes) noexcept {
  if (pointer == nullptr) return nullptr;
  return reinterpret_cast<const T*>(reinterpret_cast<const uint8_t*>(pointer) + bytes);
}
const void* advanced(const void* pointer, int64_t bytes) noexcept {
  return advanced(static_cast<const uint8_t*>(pointer), bytes);
}

}  // namespace

int64_t first_row_of_up(int64_t n, ScaleLayout scale_layout) noexcept {
  const int64_t step = scale_layout == ScaleLayout::kSwizzled128x4 ? 128 : kSfVec;
  return n / 2 / step * step;
}

Problem shared_part(const LinearProblem& p) {
  // An identity with a parameter is left for the check of activations.
  const bool applies_none = p.act == Activation{.kind = ActivationKind::kIdentity};
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .l = p.l,
          .a = p.a,
          .gate = p.w,
          .up = p.w,
          .d = p.d,
          .act = applies_none ? Activation{} : p.act,
          .grouping = p.grouping,
          .batch_invariant = p.batch_invariant,
          .bias = p.bias,
          .combine = applies_none ? Combine::kSideBySide : Combine::kActivatedSideBySide,
          .residual = p.residual,
          .a_rows = p.a_rows};
}

Problem dual_problem(const LinearProblem& problem, int64_t first_row_of_up) noexcept {
  Problem dual = shared_part(problem);
  dual.up_column = first_row_of_up;
  dual.n = problem.n - dual.up_column;
  dual.gate = dual.up = half_of(problem);
  if (problem.bias != BiasType::kNone) dual.bias_stride = problem.n;
  return dual;
}

Buffers dual_buffers(const LinearProblem& problem, const LinearBuffers& buffers,
                     int64_t first_row_of_up) noexcept {
  const ResolvedMatrix w = resolve(problem.w, problem.n, problem.k);
  const int64_t up = first_row_of_up;
  Buffers dual;
  dual.a = buffers.a;
  dual.a_scales = buffers.a_scales;
  dual.a_row_scale = buffers.a_row_scale;
  dual.gate = buffers.w;
  dual.gate_scales = buffers.w_scales;
  dual.up = advanced(buffers.w, up * w.row_bytes());
  dual.up_scales = advanced(buffers.w_scales, w.scale_map()(up, 0));
  dual.alpha_gate = dual.alpha_up = buffers.alpha;
  dual.alpha_gate_per_batch = dual.alpha_up_per_batch = buffers.alpha_per_batch;
  dual.expert_offsets = buffers.expert_offsets;
  dual.expert_rows = buffers.expert_rows;
  dual.d = buffers.d;
  dual.d_scales = buffers.d_scales;
  dual.d_global_scale = buffers.d_global_scale;
  dual.prepared = buffers.prepared;
  dual.prepared_view = buffers.prepared_view;
  dual.stream = buffers.stream;
  dual.bias_gate = buffers.bias;
  dual.bias_up = advanced(buffers.bias, up * bytes_of(problem.bias));
  dual.residual = buffers.residual;
  dual.row_experts = buffers.row_experts;
  dual.a_row_index = buffers.a_row_index;
  return dual;
}

}  // namespace dualgemm::core
