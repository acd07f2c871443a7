// One product as the dual product of the two halves of its weights.
#include "dualgemm/linear.hpp"

#include <array>
#include <string>
#include <utility>

#include "api/guarded.hpp"
#include "core/enum_table.hpp"
#include "core/validate.hpp"

namespace dualgemm {
namespace {

using api::guarded;

// What the two share, for the rules that they share.
Problem shared_part(const LinearProblem& p) {
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .l = p.l,
          .a = p.a,
          .gate = p.w,
          .up = p.w,
          .d = p.d,
          .grouping = p.grouping,
          .batch_invariant = p.batch_invariant,
          .bias = p.bias,
          .combine = Combine::kSideBySide,
          .residual = p.residual};
}

// Every rule in the words of LinearProblem, before anything is cut.
Status check(const LinearProblem& p) {
  const Problem whole = shared_part(p);
  DUALGEMM_TRY(core::check_extents(whole));
  DUALGEMM_TRY(core::check_combine(whole));
  DUALGEMM_TRY(core::check_bias(whole));
  DUALGEMM_TRY(core::check_token_strides(whole));
  const bool contiguous = p.grouping == Grouping::kContiguous;
  DUALGEMM_TRY(core::check_matrix("a", p.a, p.m, p.k, p.l, contiguous));
  DUALGEMM_TRY(core::check_weight("w", "w.type", p.w, p.n, p.k, p.l));
  DUALGEMM_TRY(core::check_output(whole, p.n));
  return core::check_padded_sizes(whole);
}

// Where Up begins, in W's rows and in D's columns. Half of them, but at a place where a panel of
// scales begins: 128 rows of swizzled ones, and 16 columns of a quantised D.
int64_t first_row_of_up(const LinearProblem& p) noexcept {
  const int64_t step = p.w.scale_layout == ScaleLayout::kSwizzled128x4 ? 128 : kSfVec;
  return p.n / 2 / step * step;
}

// W's strides between batches, which are not those that are tight for a half.
Matrix half_of(const LinearProblem& p) noexcept {
  Matrix half = p.w;
  if (p.l == 1) return half;
  const core::ResolvedMatrix w = core::resolve(p.w, p.n, p.k);
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

// A name of the dual product's as LinearBuffers has it.
std::string renamed(std::string text) {
  static constexpr std::array<std::pair<const char*, const char*>, 8> kNames{
      {{"gate", "w"},
       {"up", "w"},
       {"gate_scales", "w_scales"},
       {"up_scales", "w_scales"},
       {"bias_gate", "bias"},
       {"bias_up", "bias"},
       {"alpha_gate_per_batch", "alpha_per_batch"},
       {"alpha_up_per_batch", "alpha_per_batch"}}};
  const std::string overlaps = "overlaps ";
  const bool is_overlap = text.compare(0, overlaps.size(), overlaps) == 0;
  const std::string name = is_overlap ? text.substr(overlaps.size()) : text;
  for (const auto& [dual, linear] : kNames) {
    if (name == dual) return (is_overlap ? overlaps : std::string()) + linear;
  }
  return text;
}
Status renamed(const Status& status) {
  if (status.ok()) return {};
  return Status::error(status.code(), renamed(status.argument()), renamed(status.observed()),
                       status.rule());
}

}  // namespace

Expected<Problem> dual_problem(const LinearProblem& problem) {
  return guarded([&]() -> Expected<Problem> {
    DUALGEMM_TRY(check(problem));
    Problem dual = shared_part(problem);
    dual.up_column = first_row_of_up(problem);
    dual.n = problem.n - dual.up_column;
    dual.gate = dual.up = half_of(problem);
    if (problem.bias != BiasType::kNone) dual.bias_stride = problem.n;
    return dual;
  });
}

Buffers dual_buffers(const LinearProblem& problem, const LinearBuffers& buffers) {
  const core::ResolvedMatrix w = core::resolve(problem.w, problem.n, problem.k);
  const int64_t up = first_row_of_up(problem);
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
  dual.bias_up = advanced(buffers.bias, up * core::bytes_of(problem.bias));
  dual.residual = buffers.residual;
  dual.row_experts = buffers.row_experts;
  return dual;
}

Expected<Plan> make_plan(const LinearProblem& problem, const PlanOptions& options) {
  const Expected<Problem> dual = dual_problem(problem);
  if (!dual) return dual.status();
  return make_plan(*dual, options);
}

Status validate(const LinearProblem& problem, const LinearBuffers& buffers) {
  const Expected<Problem> dual = dual_problem(problem);
  if (!dual) return dual.status();
  return guarded([&] { return renamed(validate(*dual, dual_buffers(problem, buffers))); });
}

Status run(const LinearProblem& problem, const LinearBuffers& buffers, const PlanOptions& options,
           RunInfo* info) {
  const Expected<Problem> dual = dual_problem(problem);
  if (!dual) return dual.status();
  return guarded(
      [&] { return renamed(run(*dual, dual_buffers(problem, buffers), options, info)); });
}

}  // namespace dualgemm
