#include "api/mlp_parts.hpp"

#include <algorithm>

#include "core/arena.hpp"
#include "core/linear.hpp"
#include "core/problem.hpp"
#include "core/quantize_problem.hpp"

namespace dualgemm::api {
namespace {

// What lies in the workspace is tight, with linear scales: those need no padding between experts,
// whose numbers of rows the host does not know, and every kernel reads and writes them.
constexpr Matrix kQuantized{.type = DataType::kE2M1};

// As the first product writes it, and as the second reads it.
Matrix written_h(const MlpProblem& problem) {
  return problem.quantize_h && !problem.h_transform.any() ? kQuantized
                                                          : Matrix{.type = problem.x.type};
}
Matrix read_h(const MlpProblem& problem) {
  return problem.quantize_h ? kQuantized : Matrix{.type = problem.x.type};
}
// X as the first product reads it.
Matrix read_x(const MlpProblem& problem) {
  return problem.quantize_x  ? kQuantized
         : stores_x(problem) ? Matrix{.type = problem.x.type}
                             : problem.x;
}
int64_t batches_of(const MlpProblem& problem) {
  return problem.grouping == Grouping::kContiguous ? 1 : problem.l;
}

template <class T>
T* at(void* workspace, int64_t offset) {
  return reinterpret_cast<T*>(static_cast<uint8_t*>(workspace) + offset);
}

}  // namespace

bool stores_x(const MlpProblem& problem) {
  return problem.x_transform.any() && !problem.quantize_x;
}
bool quantizes_h_apart(const MlpProblem& problem) {
  return problem.quantize_h && problem.h_transform.any();
}

QuantizeProblem quantize_problem_of(const MlpProblem& problem) {
  return {.rows = problem.m,
          .cols = problem.hidden,
          .l = problem.l,
          .x = problem.x,
          .q = kQuantized,
          .grouping = problem.grouping,
          .scaling = problem.x_scaling,
          .transform = problem.x_transform};
}

QuantizeProblem quantize_h_problem_of(const MlpProblem& problem) {
  return {.rows = problem.m,
          .cols = problem.intermediate,
          .l = problem.l,
          .x = {.type = problem.x.type},
          .q = kQuantized,
          .grouping = problem.grouping,
          .scaling = GlobalScaling::kRow,
          .transform = problem.h_transform};
}

TransformProblem transform_x_problem_of(const MlpProblem& problem) {
  return {.rows = problem.m,
          .cols = problem.hidden,
          .l = batches_of(problem),
          .x = problem.x,
          .y = {.type = problem.x.type},
          .transform = problem.x_transform};
}

TransformProblem transform_h_problem_of(const MlpProblem& problem) {
  return {.rows = problem.m,
          .cols = problem.intermediate,
          .l = batches_of(problem),
          .x = {.type = problem.x.type},
          .y = {.type = problem.x.type},
          .transform = problem.h_transform};
}

LinearProblem up_problem_of(const MlpProblem& problem) {
  return {.m = problem.m,
          .n = problem.intermediate,
          .k = problem.hidden,
          .l = problem.l,
          .a = read_x(problem),
          .w = problem.up,
          .d = written_h(problem),
          .grouping = problem.grouping,
          .batch_invariant = problem.batch_invariant,
          .bias = problem.bias,
          .act = problem.act};
}

Problem gate_up_problem_of(const MlpProblem& problem) {
  if (!problem.gated) {
    const LinearProblem up = up_problem_of(problem);
    return core::dual_problem(up, core::first_row_of_up(up.n, up.w.scale_layout));
  }
  return {.m = problem.m,
          .n = problem.intermediate,
          .k = problem.hidden,
          .l = problem.l,
          .a = read_x(problem),
          .gate = problem.gate,
          .up = problem.up,
          .d = written_h(problem),
          .act = problem.act,
          .grouping = problem.grouping,
          .batch_invariant = problem.batch_invariant,
          .bias = problem.bias};
}

LinearProblem down_problem_of(const MlpProblem& problem) {
  return {.m = problem.m,
          .n = problem.hidden,
          .k = problem.intermediate,
          .l = problem.l,
          .a = read_h(problem),
          .w = problem.down,
          .d = problem.y,
          .grouping = problem.grouping,
          .batch_invariant = problem.batch_invariant,
          .bias = problem.bias,
          .residual = problem.residual};
}

MlpWorkspace workspace_of(const MlpProblem& problem, const Plan& gate_up, const Plan& down) {
  core::Arena pieces(nullptr);
  MlpWorkspace places;
  if (problem.quantize_x) {
    const QuantizeSizes sizes = core::sizes_of(core::resolve(quantize_problem_of(problem)));
    places.x_codes = pieces.take_offset(sizes.codes);
    places.x_scales = pieces.take_offset(sizes.scales);
    const bool found = problem.x_scaling == GlobalScaling::kRow;
    places.x_row_scale = pieces.take_offset(found ? sizes.global_scale : 0);
  }
  const int64_t batches = batches_of(problem);
  if (stores_x(problem)) {
    const core::ResolvedMatrix x = core::resolve(read_x(problem), problem.m, problem.hidden);
    places.x = pieces.take_offset(x.data_span_bytes(batches));
  }
  const core::ResolvedMatrix h = core::resolve(gate_up.problem).d;
  places.h = pieces.take_offset(h.data_span_bytes(batches));
  places.h_scales = pieces.take_offset(h.scale_span_bytes(batches));
  if (quantizes_h_apart(problem)) {
    const QuantizeSizes sizes = core::sizes_of(core::resolve(quantize_h_problem_of(problem)));
    places.h_codes = pieces.take_offset(sizes.codes);
    places.h_scales = pieces.take_offset(sizes.scales);
    places.h_row_scale = pieces.take_offset(sizes.global_scale);
  }
  // On a GPU the second product's kernels may start before the first's have ended; on the CPU a
  // step has ended before the next one begins, and takes its place.
  if (gate_up.device == DeviceKind::kCpu) {
    places.gate_up = places.down =
        pieces.take_offset(std::max(gate_up.workspace_bytes, down.workspace_bytes));
  } else {
    places.gate_up = pieces.take_offset(gate_up.workspace_bytes);
    places.down = pieces.take_offset(down.workspace_bytes);
  }
  places.bytes = pieces.used();
  return places;
}

QuantizeBuffers quantize_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                                    const MlpWorkspace& places, void* workspace) {
  const bool found = problem.x_scaling == GlobalScaling::kRow;
  return {.x = buffers.x,
          .codes = at<uint8_t>(workspace, places.x_codes),
          .scales = at<uint8_t>(workspace, places.x_scales),
          .global_scale = buffers.x_global_scale,
          .found_scale = found ? at<float>(workspace, places.x_row_scale) : nullptr,
          .groups = {buffers.expert_rows, buffers.expert_offsets, buffers.row_experts},
          .column_factors = buffers.x_column_factors,
          .stream = buffers.stream};
}

QuantizeBuffers quantize_h_buffers_of(const MlpBuffers& buffers, const MlpWorkspace& places,
                                      void* workspace) {
  return {.x = at<void>(workspace, places.h),
          .codes = at<uint8_t>(workspace, places.h_codes),
          .scales = at<uint8_t>(workspace, places.h_scales),
          .found_scale = at<float>(workspace, places.h_row_scale),
          .groups = {buffers.expert_rows, buffers.expert_offsets, buffers.row_experts},
          .column_factors = buffers.h_column_factors,
          .stream = buffers.stream};
}

TransformBuffers transform_x_buffers_of(const MlpBuffers& buffers, const MlpWorkspace& places,
                                        void* workspace) {
  return {.x = buffers.x,
          .column_factors = buffers.x_column_factors,
          .y = at<void>(workspace, places.x),
          .stream = buffers.stream};
}

TransformBuffers transform_h_buffers_of(const MlpBuffers& buffers, const MlpWorkspace& places,
                                        void* workspace) {
  return {.x = at<void>(workspace, places.h),
          .column_factors = buffers.h_column_factors,
          .y = at<void>(workspace, places.h),
          .stream = buffers.stream};
}

Buffers gate_up_weights_of(const MlpProblem& problem, const MlpBuffers& buffers) {
  Buffers to;
  if (!problem.gated) {
    LinearBuffers up;
    up.w = buffers.up;
    up.w_scales = buffers.up_scales;
    up.alpha = buffers.alpha_up;
    up.alpha_per_batch = buffers.alpha_up_per_batch;
    up.bias = buffers.bias_up;
    const LinearProblem linear = up_problem_of(problem);
    return core::dual_buffers(linear, up, core::first_row_of_up(linear.n, linear.w.scale_layout));
  }
  to.gate = buffers.gate;
  to.gate_scales = buffers.gate_scales;
  to.up = buffers.up;
  to.up_scales = buffers.up_scales;
  to.alpha_gate = buffers.alpha_gate;
  to.alpha_up = buffers.alpha_up;
  to.alpha_gate_per_batch = buffers.alpha_gate_per_batch;
  to.alpha_up_per_batch = buffers.alpha_up_per_batch;
  to.bias_gate = buffers.bias_gate;
  to.bias_up = buffers.bias_up;
  return to;
}

Buffers gate_up_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                           const MlpWorkspace& places, void* workspace) {
  Buffers to = gate_up_weights_of(problem, buffers);
  if (problem.quantize_x) {
    const QuantizeBuffers x = quantize_buffers_of(problem, buffers, places, workspace);
    to.a = x.codes;
    to.a_scales = x.scales;
    to.a_row_scale = x.found_scale;
  } else {
    to.a = stores_x(problem) ? at<void>(workspace, places.x) : buffers.x;
  }
  to.expert_offsets = buffers.expert_offsets;
  to.expert_rows = buffers.expert_rows;
  to.row_experts = buffers.row_experts;
  to.d = at<void>(workspace, places.h);
  if (problem.quantize_h && !quantizes_h_apart(problem)) {
    to.d_scales = at<uint8_t>(workspace, places.h_scales);
    to.d_global_scale = buffers.h_global_scale;
  }
  to.prepared_view = buffers.prepared_gate_up;
  to.stream = buffers.stream;
  return to;
}

LinearBuffers down_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                              const MlpWorkspace& places, void* workspace) {
  LinearBuffers to;
  const bool apart = quantizes_h_apart(problem);
  to.a = at<void>(workspace, apart ? places.h_codes : places.h);
  if (problem.quantize_h) to.a_scales = at<uint8_t>(workspace, places.h_scales);
  if (apart) to.a_row_scale = at<float>(workspace, places.h_row_scale);
  to.w = buffers.down;
  to.w_scales = buffers.down_scales;
  to.alpha = buffers.alpha_down;
  to.alpha_per_batch = buffers.alpha_down_per_batch;
  to.bias = buffers.bias_down;
  to.residual = buffers.residual;
  to.expert_offsets = buffers.expert_offsets;
  to.expert_rows = buffers.expert_rows;
  to.row_experts = buffers.row_experts;
  to.d = buffers.y;
  to.prepared_view = buffers.prepared_down;
  to.stream = buffers.stream;
  return to;
}

}  // namespace dualgemm::api
