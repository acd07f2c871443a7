#include "core/quantize_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/enum_table.hpp"
#include "core/quantize_rows.hpp"
#include "core/row_transform.hpp"
#include "core/scale_padding.hpp"
#include "core/validate.hpp"

namespace dualgemm {

namespace core {
namespace {

// The same rows, columns and groups as an operand a, for what is written for those.
Problem as_problem(const QuantizeProblem& problem, const Matrix& a) {
  return {
      .m = problem.rows, .k = problem.cols, .l = problem.l, .a = a, .grouping = problem.grouping};
}
Buffers as_buffers(const RowGroupArrays& groups) {
  Buffers buffers;
  buffers.expert_offsets = groups.expert_offsets;
  buffers.expert_rows = groups.expert_rows;
  return buffers;
}

Status check_tensor_extents(const QuantizeProblem& problem) {
  DUALGEMM_TRY(check_enumerator("grouping", problem.grouping));
  // Experts without tokens are ordinary; a batch without rows is a mistake.
  const int64_t least_rows = problem.grouping == Grouping::kNone ? 1 : 0;
  for (const auto& [name, value, least] :
       {std::tuple{"rows", problem.rows, least_rows}, std::tuple{"cols", problem.cols, kSfVec},
        std::tuple{"l", problem.l, int64_t{1}}}) {
    if (value < least) {
      return Status::invalid(name, std::to_string(value),
                             "must be at least " + std::to_string(least));
    }
  }
  if (problem.cols % kSfVec == 0) return {};
  return Status::invalid("cols", std::to_string(problem.cols), "must be a multiple of 16");
}

int64_t scale_bytes(const ResolvedQuantize& problem) noexcept {
  if (!problem.contiguous() || !problem.swizzled())
    return problem.q.scale_span_bytes(problem.batches());
  const int64_t rows = most_padded_rows(problem.problem.rows, problem.problem.l);
  return ScaleMap(problem.q.scale_layout, rows, problem.q.sf_cols).required_span_size();
}

int64_t global_scales(const QuantizeProblem& problem, int64_t batches) noexcept {
  switch (problem.scaling) {
    case GlobalScaling::kGivenPerBatch:
      return problem.l;
    case GlobalScaling::kRow:
      return batches * problem.rows;
    default:
      return 1;
  }
}

bool is_given(GlobalScaling scaling) noexcept {
  return scaling == GlobalScaling::kGiven || scaling == GlobalScaling::kGivenPerBatch;
}

Status check_group_pointers(const ResolvedQuantize& problem, const QuantizeArrays& arrays) {
  if (problem.problem.grouping != Grouping::kMasked) {
    DUALGEMM_TRY(check_absent("expert_rows", arrays.expert_rows.data,
                              "must be null unless grouping is masked"));
  }
  if (!problem.contiguous()) {
    const char* rule = "must be null unless grouping is contiguous";
    DUALGEMM_TRY(check_absent("expert_offsets", arrays.expert_offsets.data, rule));
    return check_absent("row_experts", arrays.row_experts.data, rule);
  }
  const bool offsets = arrays.expert_offsets.data != nullptr;
  if (offsets != (arrays.row_experts.data != nullptr)) return {};
  return Status::invalid("expert_offsets, row_experts", offsets ? "both given" : "both null",
                         "contiguous groups need one of the two");
}

}  // namespace

ResolvedQuantize resolve(const QuantizeProblem& problem) noexcept {
  return {problem, resolve(as_problem(problem, problem.x)).a,
          resolve(as_problem(problem, problem.q)).a};
}

QuantizeSizes sizes_of(const ResolvedQuantize& problem) noexcept {
  const int64_t batches = problem.batches();
  return {.x = problem.x.data_span_bytes(batches),
          .codes = problem.q.data_span_bytes(batches),
          .scales = scale_bytes(problem),
          .global_scale = global_scales(problem.problem, batches) * 4};
}

QuantizeArrays arrays_of(const ResolvedQuantize& problem, const QuantizeBuffers& buffers,
                         int64_t workspace_bytes) {
  const QuantizeProblem& p = problem.problem;
  const QuantizeSizes sizes = sizes_of(problem);
  const bool given = is_given(p.scaling), masked = p.grouping == Grouping::kMasked;
  const RowGroupArrays& groups = buffers.groups;
  return {.x = {"x", buffers.x, sizes.x, bytes_of(p.x.type, 1), true},
          .codes = {"codes", buffers.codes, sizes.codes, 1, true},
          .scales = {"scales", buffers.scales, sizes.scales, 1, true},
          .global_scale = {"global_scale", buffers.global_scale, sizes.global_scale, 4, given},
          .found_scale = {"found_scale", buffers.found_scale, sizes.global_scale, 4, !given},
          .expert_rows = {"expert_rows", groups.expert_rows, p.l * 4, 4, masked},
          .expert_offsets = {"expert_offsets", groups.expert_offsets, (p.l + 1) * 4, 4, false},
          .row_experts = {"row_experts", groups.row_experts, p.rows * 4, 4, false},
          .column_factors = {"column_factors", buffers.column_factors, p.cols * 4, 4,
                             p.transform.factors},
          .workspace = {"workspace", buffers.workspace, workspace_bytes, 64, workspace_bytes > 0}};
}

QuantizeArrays arrays_of(const ResolvedQuantize& problem, const DequantizeBuffers& buffers) {
  QuantizeBuffers same;
  same.x = buffers.x;
  same.global_scale = buffers.global_scale;
  same.groups = buffers.groups;
  QuantizeArrays arrays = arrays_of(problem, same, 0);
  arrays.codes.data = buffers.codes;
  arrays.scales.data = buffers.scales;
  arrays.global_scale.required = true;
  arrays.found_scale.required = false;
  arrays.column_factors.required = false;
  return arrays;
}

Status check_arrays(const ResolvedQuantize& problem, const QuantizeArrays& arrays, bool quantizes) {
  const QuantizeProblem& p = problem.problem;
  DUALGEMM_TRY(check_group_pointers(problem, arrays));
  if (quantizes) {
    DUALGEMM_TRY(is_given(p.scaling)
                     ? check_absent("found_scale", arrays.found_scale.data,
                                    "must be null: the scale is given")
                     : check_absent("global_scale", arrays.global_scale.data,
                                    "must be null: the scale is found, and goes to found_scale"));
    if (!p.transform.factors) {
      DUALGEMM_TRY(check_absent("column_factors", arrays.column_factors.data,
                                "must be null: the problem's transform has no factors"));
    }
  }
  const MemoryRange* const all[] = {&arrays.x,
                                    &arrays.codes,
                                    &arrays.scales,
                                    &arrays.global_scale,
                                    &arrays.found_scale,
                                    &arrays.expert_rows,
                                    &arrays.expert_offsets,
                                    &arrays.row_experts,
                                    &arrays.column_factors,
                                    &arrays.workspace};
  for (const MemoryRange* range : all) DUALGEMM_TRY(check_range(*range));
  const MemoryRange* const written[] = {&arrays.codes, &arrays.scales, &arrays.found_scale,
                                        &arrays.workspace};
  const MemoryRange* const x[] = {&arrays.x};
  const std::span<const MemoryRange* const> outputs =
      quantizes ? std::span<const MemoryRange* const>(written)
                : std::span<const MemoryRange* const>(x);
  for (const MemoryRange* output : outputs) {
    for (const MemoryRange* other : all) {
      if (output != other) DUALGEMM_TRY(check_apart(*output, *other));
    }
  }
  return {};
}

Status check_groups(const ResolvedQuantize& problem, const RowGroupArrays& groups) {
  if (groups.row_experts != nullptr) return {};
  return check_groups(as_problem(problem.problem, problem.problem.q), as_buffers(groups),
                      GroupArrays::kHost);
}

Status check_given_scales(const ResolvedQuantize& problem, const float* global_scale) {
  if (!is_given(problem.problem.scaling)) return {};
  const bool many = problem.problem.scaling == GlobalScaling::kGivenPerBatch;
  for (int64_t i = 0; i < (many ? problem.problem.l : 1); ++i) {
    if (std::isfinite(global_scale[i]) && global_scale[i] > 0.0f) continue;
    return Status::invalid(many ? fmt::format("global_scale[{}]", i) : "global_scale",
                           fmt::to_string(global_scale[i]), "must be finite and > 0");
  }
  return {};
}

std::vector<RowRun> row_runs(const ResolvedQuantize& problem, const RowGroupArrays& groups) {
  std::vector<RowRun> runs;
  int64_t before = 0;
  const auto add = [&](RowRun run) {
    if (run.rows == 0) return;
    run.rows_before = before;
    before += run.rows;
    runs.push_back(run);
  };
  const QuantizeProblem& p = problem.problem;
  if (groups.row_experts != nullptr) {
    const int32_t* const experts = groups.row_experts;
    for (int64_t row = 0, end = 0; row < p.rows; row = end) {
      end = row;
      while (end < p.rows && experts[end] == experts[row]) ++end;
      if (experts[row] < 0 || experts[row] >= p.l) continue;
      add({.batch = 0, .row = row, .rows = end - row, .expert = experts[row], .scale_row = row});
    }
    return runs;
  }
  const Problem same = as_problem(p, p.q);
  const Buffers buffers = as_buffers(groups);
  RowGroups all(same, buffers);
  for (RowGroup group; all.next(group);) {
    add({.batch = group.a_batch,
         .row = group.row_begin,
         .rows = group.rows,
         .expert = group.batch,
         .scale_row = group.sf_row_begin});
  }
  return runs;
}

std::vector<TileRows> tile_rows(const ResolvedQuantize& problem, const RowGroupArrays& groups) {
  std::vector<TileRows> tiles;
  const QuantizeProblem& p = problem.problem;
  if (problem.contiguous() && groups.row_experts == nullptr) {
    for (const RowRun& run : row_runs(problem, groups))
      tiles.push_back({0, run.scale_row, run.rows});
    return tiles;
  }
  for (int64_t batch = 0; batch < problem.batches(); ++batch) tiles.push_back({batch, 0, p.rows});
  return tiles;
}

}  // namespace core

Status validate(const QuantizeProblem& problem, const RowGroupArrays& groups) {
  DUALGEMM_TRY(validate(problem));
  const core::ResolvedQuantize resolved = core::resolve(problem);
  QuantizeBuffers buffers;
  buffers.groups = groups;
  const core::QuantizeArrays arrays = core::arrays_of(resolved, buffers, 0);
  DUALGEMM_TRY(core::check_group_pointers(resolved, arrays));
  for (const core::MemoryRange* one :
       {&arrays.expert_rows, &arrays.expert_offsets, &arrays.row_experts})
    DUALGEMM_TRY(core::check_range(*one));
  return core::check_groups(resolved, groups);
}

Status validate(const QuantizeProblem& problem) {
  DUALGEMM_TRY(core::check_tensor_extents(problem));
  DUALGEMM_TRY(core::check_enumerator("scaling", problem.scaling));
  const bool contiguous = problem.grouping == Grouping::kContiguous;
  for (const auto& [name, matrix] : {std::pair{"x", &problem.x}, std::pair{"q", &problem.q}}) {
    if (contiguous && (matrix->batch_stride != 0 || matrix->scale_batch_stride != 0)) {
      return Status::invalid(
          std::string(name) + (matrix->batch_stride != 0 ? ".batch_stride" : ".scale_batch_stride"),
          std::to_string(matrix->batch_stride != 0 ? matrix->batch_stride
                                                   : matrix->scale_batch_stride),
          "must be 0 for contiguous groups");
    }
    DUALGEMM_TRY(
        core::check_matrix(name, *matrix, problem.rows, problem.cols, problem.l, contiguous));
  }
  if (problem.x.type == DataType::kE2M1) {
    return Status::invalid("x.type", name_of(problem.x.type), "must be f16, bf16 or f32");
  }
  if (problem.q.type != DataType::kE2M1) {
    return Status::invalid("q.type", name_of(problem.q.type), "must be e2m1");
  }
  DUALGEMM_TRY(core::check_transform("transform", problem.transform, problem.cols));
  int64_t values = 0, padded = 0;  // padded: rows to 128, columns to 64; 4 bytes a value and a row
  if (__builtin_add_overflow(problem.rows, 128, &padded) ||
      __builtin_mul_overflow(padded, problem.l, &values) ||
      __builtin_mul_overflow(values, problem.cols + 64, &values) || values > INT64_MAX / 16) {
    return Status::error(StatusCode::kOverflow, "rows, cols, l",
                         fmt::format("{}, {}, {}", problem.rows, problem.cols, problem.l),
                         "with padding, 16 bytes a value must fit in 64 bits");
  }
  return {};
}

}  // namespace dualgemm
