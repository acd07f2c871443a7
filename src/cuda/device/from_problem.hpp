// A problem's types as the kernels get them. For host code.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/int_math.hpp"
#include "core/problem.hpp"
#include "core/quantize_block.hpp"
#include "cuda/device/a_type.hpp"
#include "cuda/device/activation.hpp"
#include "cuda/device/nvfp4_output.hpp"
#include "cuda/device/row_index.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::cuda {

inline ActParams act_params_of(const core::ResolvedActivation& act) {
  return {static_cast<ActKind>(act.kind), act.alpha, act.beta, act.limit};
}

inline OutputType output_type_of(DataType type) {
  return type == DataType::kF16    ? OutputType::kF16
         : type == DataType::kBF16 ? OutputType::kBF16
         : type == DataType::kF32  ? OutputType::kF32
                                   : OutputType::kE2M1;
}

// The type of A among those that kernels take: e2m1, f16, bf16.
inline AType a_type_of(DataType type) {
  return type == DataType::kE2M1  ? AType::kE2M1
         : type == DataType::kF16 ? AType::kF16
                                  : AType::kBF16;
}

inline RowIndex row_index_of(const Problem& problem, const Buffers& buffers) {
  return {buffers.a_row_index, static_cast<uint32_t>(problem.a_rows)};
}

inline Nvfp4Output nvfp4_output_of(const core::ResolvedMatrix& d, const Buffers& buffers) {
  if (d.type != DataType::kE2M1) return {};
  return {buffers.d_scales, d.scale_layout == ScaleLayout::kSwizzled128x4 ? 0 : d.scale_ld,
          d.scale_batch_stride, static_cast<uint32_t>(d.sf_cols),
          core::global_scale_given(buffers.d_global_scale).quantize};
}

// As kernels count batches of A and D: contiguous groups have one that all experts share.
inline core::ResolvedProblem with_shared_rows(core::ResolvedProblem problem) {
  if (problem.problem.grouping != Grouping::kContiguous) return problem;
  problem.a.batch_stride = problem.a.scale_batch_stride = 0;
  problem.d.batch_stride = problem.d.scale_batch_stride = 0;
  return problem;
}

// Rows by which a kernel is chosen: those of a batch, or those that a group has on average
// (contiguous) or at the most (masked).
inline int64_t usual_rows(const Problem& problem) {
  if (problem.grouping != Grouping::kContiguous) return problem.m;
  return std::max<int64_t>(core::ceil_div(problem.m, problem.l), 1);
}

// Batches whose weights a call reads: of experts with contiguous rows at most as many as rows.
inline int64_t most_batches_read(const Problem& problem) {
  return problem.grouping == Grouping::kContiguous ? std::min(problem.l, problem.m) : problem.l;
}
// Their weights of Gate and Up, each a code and a sixteenth of a scale.
inline double weights_read(const Problem& problem) {
  return 2.0 * static_cast<double>(problem.n) *
         static_cast<double>(problem.k * most_batches_read(problem));
}
inline constexpr double kBytesOfWeight = 0.5 + 1.0 / 16;

// What every fused kernel's epilogue is told, in the members that their Params have in common.
// Precondition: with_shared_rows().
template <class Params>
void set_epilogue(const core::ResolvedProblem& problem, const Buffers& buffers, Params& params) {
  const Problem& p = problem.problem;
  params.d = static_cast<uint8_t*>(buffers.d);
  params.d_row_bytes = problem.d.row_bytes();
  params.d_batch_bytes = core::bytes_of(p.d.type, problem.d.batch_stride);
  params.nvfp4 = nvfp4_output_of(problem.d, buffers);
  params.a_row_scale = buffers.a_row_scale;
  params.alpha_gate_per_batch = buffers.alpha_gate_per_batch;
  params.alpha_up_per_batch = buffers.alpha_up_per_batch;
  params.alpha_gate = buffers.alpha_gate;
  params.alpha_up = buffers.alpha_up;
  params.bias = {buffers.bias_gate, buffers.bias_up, problem.bias_stride,
                 p.bias == BiasType::kBF16};
  params.combine = {problem.side_by_side(), problem.activates_each(),
                    static_cast<uint32_t>(p.up_column),
                    static_cast<const uint8_t*>(buffers.residual)};
  params.act = act_params_of(problem.act);
  params.m = static_cast<uint32_t>(p.m);
  params.row_scale_stride = p.grouping == Grouping::kContiguous ? 0 : params.m;
  params.n = static_cast<uint32_t>(p.n);
}

}  // namespace dualgemm::cuda
