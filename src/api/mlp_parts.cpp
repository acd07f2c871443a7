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
  return problem.quantize_h && !quantizes_h_apart(problem) ? kQuantized
                                                           : Matrix{.type = problem.x.type};
}
Matrix read_h(const MlpProblem& problem) {
  return problem.quantize_h ? kQuantized : Matrix{.type = problem.x.type};
}
// X as the first product reads it.
Matrix read_x(const MlpProblem& problem, bool by_index) {
  return problem.quantize_x               ? kQuantized
         : stores_x(problem) || !by_index ? Matrix{.type = problem.x.type}
                                          : problem.x;
}
int64_t indexed_rows(const MlpProblem& problem, bool by_index) {
  return is_routed(problem) && by_index ? problem.m : 0;
}
// Batches of X and Y.
int64_t batches_of(const MlpProblem& problem) {
  return product_grouping(problem) == Grouping::kContiguous ? 1 : problem.l;
}
// Whose rows have a factor that only routing knows.
bool scales_rows(const MlpProblem& problem) {
  return (problem.quantize_x && problem.x_scaling == GlobalScaling::kRow) ||
         problem.weights_on_input;
}

template <class T>
T* at(void* workspace, int64_t offset) {
  return reinterpret_cast<T*>(static_cast<uint8_t*>(workspace) + offset);
}

const int32_t* offsets_of(const MlpProblem& problem, const MlpBuffers& buffers,
                          const MlpWorkspace& places, void* workspace) {
  return is_routed(problem) ? at<int32_t>(workspace, places.offsets) : buffers.expert_offsets;
}

}  // namespace

bool stores_x(const MlpProblem& problem) {
  return problem.x_transform.any() && !problem.quantize_x;
}
bool quantizes_h_apart(const MlpProblem& problem) {
  return problem.quantize_h &&
         (problem.h_transform.any() || problem.h_scaling == GlobalScaling::kRow);
}

QuantizeProblem quantize_problem_of(const MlpProblem& problem) {
  return {.rows = problem.m,
          .cols = problem.hidden,
          .l = is_routed(problem) ? 1 : problem.l,
          .x = problem.x,
          .q = kQuantized,
          .grouping = problem.grouping,
          .scaling = problem.x_scaling,
          .transform = problem.x_transform};
}

QuantizeProblem quantize_h_problem_of(const MlpProblem& problem) {
  return {.rows = product_rows(problem),
          .cols = problem.intermediate,
          .l = problem.l,
          .x = {.type = problem.x.type},
          .q = kQuantized,
          .grouping = product_grouping(problem),
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
  return {.rows = product_rows(problem),
          .cols = problem.intermediate,
          .l = batches_of(problem),
          .x = {.type = problem.x.type},
          .y = {.type = problem.x.type},
          .transform = problem.h_transform};
}

LinearProblem up_problem_of(const MlpProblem& problem, bool by_index) {
  return {.m = product_rows(problem),
          .n = problem.intermediate,
          .k = problem.hidden,
          .l = problem.l,
          .a = read_x(problem, by_index),
          .w = problem.up,
          .d = written_h(problem),
          .grouping = product_grouping(problem),
          .batch_invariant = problem.batch_invariant,
          .bias = problem.bias,
          .act = problem.act,
          .a_rows = indexed_rows(problem, by_index)};
}

Problem gate_up_problem_of(const MlpProblem& problem, bool by_index) {
  if (!problem.gated) {
    const LinearProblem up = up_problem_of(problem, by_index);
    return core::dual_problem(up, core::first_row_of_up(up.n, up.w.scale_layout));
  }
  return {.m = product_rows(problem),
          .n = problem.intermediate,
          .k = problem.hidden,
          .l = problem.l,
          .a = read_x(problem, by_index),
          .gate = problem.gate,
          .up = problem.up,
          .d = written_h(problem),
          .act = problem.act,
          .grouping = product_grouping(problem),
          .batch_invariant = problem.batch_invariant,
          .bias = problem.bias,
          .a_rows = indexed_rows(problem, by_index)};
}

LinearProblem down_problem_of(const MlpProblem& problem) {
  const bool routed = is_routed(problem);
  return {.m = product_rows(problem),
          .n = problem.hidden,
          .k = problem.intermediate,
          .l = problem.l,
          .a = read_h(problem),
          .w = problem.down,
          .d = routed ? Matrix{.type = problem.y.type} : problem.y,
          .grouping = product_grouping(problem),
          .batch_invariant = problem.batch_invariant,
          .bias = problem.bias,
          .residual = problem.residual && !routed};
}

RoutingProblem routing_problem_of(const MlpProblem& problem) {
  return {.tokens = problem.m,
          .top_k = problem.top_k,
          .experts = problem.l,
          .named_experts = problem.named_experts,
          .wide_ids = problem.wide_ids,
          .weights_type = problem.weights_type};
}

CombineProblem combine_problem_of(const MlpProblem& problem) {
  return {.tokens = problem.m,
          .top_k = problem.top_k,
          .cols = problem.hidden,
          .rows = {.type = problem.y.type},
          .y = problem.y,
          .weights_type = problem.weights_type,
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
    const core::ResolvedMatrix x =
        core::resolve(Matrix{.type = problem.x.type}, problem.m, problem.hidden);
    places.x = pieces.take_offset(x.data_span_bytes(batches));
  }
  if (is_routed(problem)) {
    const int64_t rows = product_rows(problem);
    places.offsets = pieces.take_offset((problem.l + 1) * 4);
    places.row_tokens = pieces.take_offset(rows * 4);
    places.token_places = pieces.take_offset(rows * 4);
    places.row_scale = pieces.take_offset(scales_rows(problem) ? rows * 4 : 0);
    if (gate_up.problem.a_rows == 0) {
      const core::ResolvedMatrix x = core::resolve(gate_up.problem).a;
      places.rows_x = pieces.take_offset(x.data_span_bytes(1));
      places.rows_x_scales = pieces.take_offset(x.scale_span_bytes(1));
    }
    places.rows_y = pieces.take_offset(rows * core::bytes_of(problem.y.type, problem.hidden));
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

QuantizeBuffers quantize_h_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                                      const MlpWorkspace& places, void* workspace) {
  return {.x = at<void>(workspace, places.h),
          .codes = at<uint8_t>(workspace, places.h_codes),
          .scales = at<uint8_t>(workspace, places.h_scales),
          .found_scale = at<float>(workspace, places.h_row_scale),
          .groups = {buffers.expert_rows, offsets_of(problem, buffers, places, workspace),
                     buffers.row_experts},
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

RoutingBuffers routing_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                                  const MlpWorkspace& places, void* workspace) {
  const bool found = problem.quantize_x && problem.x_scaling == GlobalScaling::kRow;
  return {.ids = buffers.topk_ids,
          .expert_map = buffers.expert_map,
          .weights = problem.weights_on_input ? buffers.topk_weights : nullptr,
          .token_scale = found ? at<float>(workspace, places.x_row_scale) : nullptr,
          .offsets = at<int32_t>(workspace, places.offsets),
          .row_tokens = at<int32_t>(workspace, places.row_tokens),
          .places = at<int32_t>(workspace, places.token_places),
          .row_scale = scales_rows(problem) ? at<float>(workspace, places.row_scale) : nullptr,
          .stream = buffers.stream};
}

CombineBuffers combine_buffers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                                  const MlpWorkspace& places, void* workspace) {
  return {.rows = at<void>(workspace, places.rows_y),
          .places = at<int32_t>(workspace, places.token_places),
          .weights = problem.weights_on_input ? nullptr : buffers.topk_weights,
          .residual = buffers.residual,
          .y = buffers.y,
          .stream = buffers.stream};
}

std::vector<core::Gather> gathers_of(const MlpProblem& problem, const MlpBuffers& buffers,
                                     const MlpWorkspace& places, void* workspace) {
  const Buffers by_index = gate_up_buffers_of(problem, buffers, places, workspace);
  const core::ResolvedMatrix x = core::resolve(read_x(problem, true), problem.m, problem.hidden);
  const auto gather = [&](const void* from, int64_t from_row_bytes, int64_t bytes, int64_t to) {
    return core::Gather{.from = static_cast<const uint8_t*>(from),
                        .from_row_bytes = from_row_bytes,
                        .row_bytes = bytes,
                        .from_rows = problem.m,
                        .index = by_index.a_row_index,
                        .rows = product_rows(problem),
                        .to = at<uint8_t>(workspace, to)};
  };
  std::vector<core::Gather> all{
      gather(by_index.a, x.row_bytes(), core::bytes_of(x.type, problem.hidden), places.rows_x)};
  if (problem.quantize_x)
    all.push_back(gather(by_index.a_scales, x.scale_ld, x.sf_cols, places.rows_x_scales));
  return all;
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
                           const MlpWorkspace& places, void* workspace, bool by_index) {
  Buffers to = gate_up_weights_of(problem, buffers);
  if (problem.quantize_x) {
    const QuantizeBuffers x = quantize_buffers_of(problem, buffers, places, workspace);
    to.a = x.codes;
    to.a_scales = x.scales;
    to.a_row_scale = x.found_scale;
  } else {
    to.a = stores_x(problem) ? at<void>(workspace, places.x) : buffers.x;
  }
  if (is_routed(problem)) {
    to.a_row_scale = scales_rows(problem) ? at<float>(workspace, places.row_scale) : nullptr;
    if (by_index) {
      to.a_row_index = at<int32_t>(workspace, places.row_tokens);
    } else {
      to.a = at<void>(workspace, places.rows_x);
      if (problem.quantize_x) to.a_scales = at<uint8_t>(workspace, places.rows_x_scales);
    }
  }
  to.expert_offsets = offsets_of(problem, buffers, places, workspace);
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
  if (!is_routed(problem)) to.residual = buffers.residual;
  to.expert_offsets = offsets_of(problem, buffers, places, workspace);
  to.expert_rows = buffers.expert_rows;
  to.row_experts = buffers.row_experts;
  to.d = is_routed(problem) ? at<void>(workspace, places.rows_y) : buffers.y;
  to.prepared_view = buffers.prepared_down;
  to.stream = buffers.stream;
  return to;
}

}  // namespace dualgemm::api
