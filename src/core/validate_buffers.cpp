#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "core/memory_range.hpp"
#include "core/validate.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm {
namespace core {
namespace {

using Range = MemoryRange;

int64_t alignment_of(DataType type) { return type == DataType::kE2M1 ? 1 : bytes_of(type, 1); }

// For kContiguous rows is the total and batches 1; swizzled scales then take `padded_rows` rows.
int64_t token_scale_bytes(const ResolvedMatrix& matrix, int64_t batches, int64_t padded_rows,
                          bool contiguous) {
  if (!contiguous || matrix.scale_layout != ScaleLayout::kSwizzled128x4) {
    return matrix.scale_span_bytes(batches);
  }
  return ScaleMap(matrix.scale_layout, padded_rows, matrix.sf_cols).required_span_size();
}

std::array<Range, 4> weight_ranges(const ResolvedProblem& problem, const Buffers& buffers) {
  const int64_t batches = problem.problem.l;
  // Else these four may have been freed.
  const bool required = buffers.prepared == nullptr && buffers.prepared_view == nullptr;
  const auto weight = [&](const char* name, const void* data, int64_t bytes) {
    return Range{name, required ? data : nullptr, bytes, 1, required};
  };
  return {{
      weight("gate", buffers.gate, problem.gate.data_span_bytes(batches)),
      weight("gate_scales", buffers.gate_scales, problem.gate.scale_span_bytes(batches)),
      weight("up", buffers.up, problem.up.data_span_bytes(batches)),
      weight("up_scales", buffers.up_scales, problem.up.scale_span_bytes(batches)),
  }};
}

// This file does not look into a handle's bytes: the library made them, or run() has made a view of
// them. Their alignment depends on their format.
Range prepared_range(const Buffers& buffers) {
  const PreparedView* const view = buffers.prepared_view;
  if (view == nullptr) return {"prepared", nullptr, 0, 1, false};
  return {"prepared", view->memory, view->descriptor.bytes, 1, true};
}

// Everything that run() reads.
std::array<Range, 17> input_ranges(const ResolvedProblem& problem, const Buffers& buffers,
                                   int64_t padded_rows) {
  const Problem& p = problem.problem;
  const bool contiguous = p.grouping == Grouping::kContiguous;
  const int64_t batches = contiguous ? 1 : p.l;
  const bool quantized = p.a.type == DataType::kE2M1;
  const std::array<Range, 4> weights = weight_ranges(problem, buffers);
  const bool biased = p.bias != BiasType::kNone;
  const int64_t bias_bytes = biased ? bytes_of(p.bias) : 1;
  const auto bias = [&](const char* name, const void* data) {
    return Range{name, data, bias_span_bytes(problem), bias_bytes, biased};
  };
  return {{
      {"a", buffers.a, problem.a.data_span_bytes(batches), alignment_of(p.a.type), true},
      {"a_scales", buffers.a_scales,
       quantized ? token_scale_bytes(problem.a, batches, padded_rows, contiguous && p.a_rows == 0)
                 : 0,
       1, quantized},
      {"a_row_index", buffers.a_row_index, p.a_rows > 0 ? p.m * 4 : 0, 4, p.a_rows > 0},
      {"a_row_scale", buffers.a_row_scale, batches * p.m * 4, 4, false},
      {"alpha_gate_per_batch", buffers.alpha_gate_per_batch, p.l * 4, 4, false},
      {"alpha_up_per_batch", buffers.alpha_up_per_batch, p.l * 4, 4, false},
      {"expert_offsets", buffers.expert_offsets, contiguous ? (p.l + 1) * 4 : 0, 4, false},
      {"row_experts", buffers.row_experts, contiguous ? p.m * 4 : 0, 4, false},
      {"expert_rows", buffers.expert_rows, p.grouping == Grouping::kMasked ? p.l * 4 : 0, 4,
       p.grouping == Grouping::kMasked},
      weights[0],
      weights[1],
      weights[2],
      weights[3],
      prepared_range(buffers),
      bias("bias_gate", buffers.bias_gate),
      bias("bias_up", buffers.bias_up),
      {"residual", buffers.residual, p.residual ? problem.d.data_span_bytes(batches) : 0,
       alignment_of(p.d.type), p.residual},
  }};
}

std::array<Range, 2> output_ranges(const ResolvedProblem& problem, const Buffers& buffers,
                                   int64_t padded_rows) {
  const Problem& p = problem.problem;
  const bool contiguous = p.grouping == Grouping::kContiguous;
  const int64_t batches = contiguous ? 1 : p.l;
  const bool quantized = p.d.type == DataType::kE2M1;
  return {{
      {"d", buffers.d, problem.d.data_span_bytes(batches), alignment_of(p.d.type), true},
      {"d_scales", buffers.d_scales,
       quantized ? token_scale_bytes(problem.d, batches, padded_rows, contiguous) : 0, 1,
       quantized},
  }};
}

Status check_expert_offsets(const Problem& problem, const int32_t* offsets) {
  const auto name = [](int64_t index) { return "expert_offsets[" + std::to_string(index) + "]"; };
  if (offsets[0] != 0) {
    return Status::invalid(name(0), std::to_string(offsets[0]), "must be 0");
  }
  for (int64_t expert = 0; expert < problem.l; ++expert) {
    if (offsets[expert + 1] < offsets[expert]) {
      return Status::invalid(
          name(expert + 1), std::to_string(offsets[expert + 1]),
          "must not be below the offset before it, " + std::to_string(offsets[expert]));
    }
  }
  if (offsets[problem.l] > problem.m) {
    return Status::invalid(name(problem.l), std::to_string(offsets[problem.l]),
                           "the last must be at most m = " + std::to_string(problem.m));
  }
  return {};
}

Status check_row_index(const Problem& problem, const Buffers& buffers, GroupArrays groups) {
  if (problem.a_rows == 0) {
    return check_absent("a_row_index", buffers.a_row_index, "must be null: a_rows is 0");
  }
  DUALGEMM_TRY(check_range({"a_row_index", buffers.a_row_index, problem.m * 4, 4, true}));
  if (groups == GroupArrays::kDevice) return {};
  for (int64_t row = 0; row < problem.m; ++row) {
    const int32_t of_a = buffers.a_row_index[row];
    if (of_a >= 0 && of_a < problem.a_rows) continue;
    return Status::invalid(fmt::format("a_row_index[{}]", row), std::to_string(of_a),
                           fmt::format("must be 0 .. {}", problem.a_rows - 1));
  }
  return {};
}

// Any value in row_experts is legal; rows with an out-of-range expert are skipped.
Status check_contiguous(const Problem& problem, const Buffers& buffers, bool readable) {
  if (buffers.row_experts != nullptr) {
    DUALGEMM_TRY(check_absent("expert_offsets", buffers.expert_offsets,
                              "must be null where row_experts is given"));
    return check_range({"row_experts", buffers.row_experts, problem.m * 4, 4, true});
  }
  DUALGEMM_TRY(
      check_range({"expert_offsets", buffers.expert_offsets, (problem.l + 1) * 4, 4, true}));
  return readable ? check_expert_offsets(problem, buffers.expert_offsets) : Status();
}

// The one input that may be the output itself: a thread that writes an element has read its
// residual. A part of D that is another row's or column's residual would come too late.
bool is_in_place(const Range& output, const Range& input) {
  return output.data == input.data && std::string_view(input.name) == "residual";
}

Status check_expert_rows(const Problem& problem, const int32_t* rows) {
  for (int64_t expert = 0; expert < problem.l; ++expert) {
    if (rows[expert] < 0 || rows[expert] > problem.m) {
      return Status::invalid("expert_rows[" + std::to_string(expert) + "]",
                             std::to_string(rows[expert]),
                             "must be 0 .. m = " + std::to_string(problem.m));
    }
  }
  return {};
}

}  // namespace

int64_t swizzled_scale_rows(const Problem& problem, const Buffers& buffers,
                            GroupArrays groups) noexcept {
  if (buffers.expert_offsets == nullptr || groups == GroupArrays::kDevice) return problem.m;
  int64_t rows = 0;
  for (int64_t expert = 0; expert < problem.l; ++expert) {
    rows += round_up_rows(buffers.expert_offsets[expert + 1] - buffers.expert_offsets[expert]);
  }
  return rows;
}

Status check_groups(const Problem& problem, const Buffers& buffers, GroupArrays groups) {
  const bool readable = groups == GroupArrays::kHost;
  if (problem.grouping == Grouping::kContiguous) {
    DUALGEMM_TRY(check_contiguous(problem, buffers, readable));
  } else {
    const char* rule = "must be null unless grouping is contiguous";
    DUALGEMM_TRY(check_absent("expert_offsets", buffers.expert_offsets, rule));
    DUALGEMM_TRY(check_absent("row_experts", buffers.row_experts, rule));
  }
  if (problem.grouping == Grouping::kMasked) {
    DUALGEMM_TRY(check_range({"expert_rows", buffers.expert_rows, problem.l * 4, 4, true}));
    return readable ? check_expert_rows(problem, buffers.expert_rows) : Status();
  }
  return check_absent("expert_rows", buffers.expert_rows, "must be null unless grouping is masked");
}

Status check_weights(const CheckedProblem& problem, const Buffers& buffers) {
  for (const Range& range : weight_ranges(problem.resolved(), buffers)) {
    DUALGEMM_TRY(check_range(range));
  }
  return {};
}

Status check_prepared_overlap(const CheckedProblem& problem, const Buffers& buffers,
                              const void* prepared, int64_t bytes) {
  const Range memory{"prepared", prepared, bytes, 1, false};
  DUALGEMM_TRY(check_range(memory));  // its end
  for (const Range& range : weight_ranges(problem.resolved(), buffers)) {
    DUALGEMM_TRY(check_apart(memory, range));
  }
  return {};
}

Status check_workspace_overlap(const CheckedProblem& problem, const Buffers& buffers,
                               GroupArrays groups, const void* workspace, int64_t bytes) {
  const Range scratch{"workspace", workspace, bytes, 1, false};
  DUALGEMM_TRY(check_range(scratch));  // its end
  const ResolvedProblem& resolved = problem.resolved();
  const int64_t padded_rows = swizzled_scale_rows(problem.problem(), buffers, groups);
  for (const Range& range : input_ranges(resolved, buffers, padded_rows)) {
    DUALGEMM_TRY(check_apart(scratch, range));
  }
  for (const Range& range : output_ranges(resolved, buffers, padded_rows)) {
    DUALGEMM_TRY(check_apart(scratch, range));
  }
  return {};
}

Status check_buffers(const CheckedProblem& checked, const Buffers& buffers, GroupArrays groups) {
  const Problem& problem = checked.problem();
  DUALGEMM_TRY(check_groups(problem, buffers, groups));
  DUALGEMM_TRY(check_row_index(problem, buffers, groups));
  if (problem.a.type != DataType::kE2M1) {
    DUALGEMM_TRY(check_absent("a_scales", buffers.a_scales, "must be null: a has no scales"));
  }
  if (problem.bias == BiasType::kNone) {
    const char* rule = "must be null: the problem's bias is none";
    DUALGEMM_TRY(check_absent("bias_gate", buffers.bias_gate, rule));
    DUALGEMM_TRY(check_absent("bias_up", buffers.bias_up, rule));
  }
  if (!problem.residual) {
    DUALGEMM_TRY(
        check_absent("residual", buffers.residual, "must be null: the problem has no residual"));
  }
  if (problem.d.type != DataType::kE2M1) {
    DUALGEMM_TRY(check_absent("d_scales", buffers.d_scales, "must be null: d has no scales"));
  } else if (!(std::isfinite(buffers.d_global_scale) && buffers.d_global_scale > 0.0f)) {
    return Status::invalid("d_global_scale", fmt::to_string(buffers.d_global_scale),
                           "must be finite and > 0");
  }
  const ResolvedProblem& resolved = checked.resolved();
  const int64_t padded_rows = swizzled_scale_rows(problem, buffers, groups);
  const auto inputs = input_ranges(resolved, buffers, padded_rows);
  const auto outputs = output_ranges(resolved, buffers, padded_rows);
  for (const Range& range : inputs) DUALGEMM_TRY(check_range(range));
  for (const Range& range : outputs) DUALGEMM_TRY(check_range(range));
  for (const Range& output : outputs) {
    for (const Range& input : inputs) {
      if (!is_in_place(output, input)) DUALGEMM_TRY(check_apart(output, input));
    }
  }
  return check_apart(outputs[0], outputs[1]);
}

}  // namespace core

Status validate(const Problem& problem, const Buffers& buffers) {
  const Expected<core::CheckedProblem> checked = core::CheckedProblem::of(problem);
  if (!checked) return checked.status();
  return core::check_buffers(*checked, buffers, core::GroupArrays::kHost);
}

}  // namespace dualgemm
