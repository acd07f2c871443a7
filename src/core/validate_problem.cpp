#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "core/checked_problem.hpp"
#include "core/enum_table.hpp"
#include "core/resolved_activation.hpp"
#include "core/validate.hpp"
#include "dualgemm/dualgemm.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm {
namespace core {
namespace {

// "operand.field", put together only when there is something to report.
struct Name {
  const char* operand;
  const char* field = "";
  std::string str() const { return std::string(operand) + field; }
};

Status invalid(Name name, std::string observed, std::string rule) {
  return Status::invalid(name.str(), std::move(observed), std::move(rule));
}

template <class Enum>
Status check_enum(Name name, Enum value) {
  return is_enumerator(value) ? Status() : check_enumerator(name.str(), value);
}

Status check_at_least(Name name, int64_t value, int64_t least, const char* why = "") {
  if (value >= least) return {};
  return invalid(name, std::to_string(value), "must be at least " + std::to_string(least) + why);
}

// 0 means "tight" and is always legal.
Status check_stride(Name name, int64_t value, int64_t least, const char* least_is) {
  return value == 0 ? Status() : check_at_least(name, value, least, least_is);
}

Status check_even(Name name, int64_t value, DataType type) {
  if (type != DataType::kE2M1 || value % 2 == 0) return {};
  return invalid(name, std::to_string(value), "must be even: two e2m1 codes share a byte");
}

Status check_zero(Name name, int64_t value, const char* rule) {
  return value == 0 ? Status() : invalid(name, std::to_string(value), rule);
}

// (count - 1) * stride + last, all non-negative; false when it leaves int64.
bool checked_span(int64_t count, int64_t stride, int64_t last, int64_t* span) {
  int64_t steps = 0;
  return !__builtin_mul_overflow(count > 0 ? count - 1 : 0, stride, &steps) &&
         !__builtin_add_overflow(steps, last, span);
}

// A stride must fit in 64 bits as bytes even where a single row leaves it idle: kernels compute it
// all the same.
bool is_stride(int64_t stride) {
  int64_t bytes = 0;
  return !__builtin_mul_overflow(stride, int64_t{16}, &bytes);
}

// `batches` spans, `stride` apart (0 = tight), each at most that long.
Status check_batches(Name name, Name stride_name, int64_t batches, int64_t stride, int64_t span,
                     int64_t tight) {
  if (batches > 1) {
    DUALGEMM_TRY(check_stride(stride_name, stride, span, " (one batch), or 0 for tight"));
  }
  int64_t total = 0, bytes = 0;
  if (is_stride(stride) && checked_span(batches, stride == 0 ? tight : stride, span, &total) &&
      !__builtin_mul_overflow(total, int64_t{16}, &bytes)) {
    return {};
  }
  return Status::error(StatusCode::kOverflow, name.str(),
                       fmt::format("{} batches, stride {}", batches, stride),
                       "its size must fit in 64 bits");
}

Status check_data_span(const char* name, const Matrix& matrix, int64_t rows, int64_t cols,
                       int64_t batches) {
  const int64_t ld = matrix.ld == 0 ? cols : matrix.ld;
  int64_t span = 0, tight = 0;
  if (!checked_span(rows, ld, cols, &span) || __builtin_mul_overflow(rows, ld, &tight) ||
      !is_stride(ld)) {
    return Status::error(StatusCode::kOverflow, name, fmt::format("{} rows, ld {}", rows, ld),
                         "its size must fit in 64 bits");
  }
  return check_batches({name}, {name, ".batch_stride"}, batches, matrix.batch_stride, span, tight);
}

Status check_scale_span(const char* name, const Matrix& matrix, int64_t rows, int64_t cols,
                        int64_t batches) {
  const int64_t sf_cols = cols / kSfVec;
  if (matrix.scale_layout == ScaleLayout::kLinear) {
    DUALGEMM_TRY(check_stride({name, ".scale_ld"}, matrix.scale_ld, sf_cols,
                              " (columns/16), or 0 for tight"));
  } else {
    DUALGEMM_TRY(check_zero({name, ".scale_ld"}, matrix.scale_ld,
                            "must be 0 for swizzled_128x4, whose tiles are always tight"));
  }
  const Expected<int64_t> span =
      checked_scale_span(matrix.scale_layout, rows, sf_cols, matrix.scale_ld);
  if (!span || !is_stride(matrix.scale_ld)) {
    return Status::error(StatusCode::kOverflow, Name{name, "_scales"}.str(),
                         fmt::format("{} rows of {} scales", rows, sf_cols),
                         "its size must fit in 64 bits");
  }
  return check_batches({name, "_scales"}, {name, ".scale_batch_stride"}, batches,
                       matrix.scale_batch_stride, *span, *span);
}

// For kinds without parameters: not given, or what changes nothing.
Status check_neutral(const char* name, std::optional<float> value, float neutral,
                     ActivationKind kind) {
  if (!value || *value == neutral) return {};
  return Status::invalid(
      name, fmt::to_string(*value),
      fmt::format("must not be given for {}: only the SwiGLU kinds use it", name_of(kind)));
}

Status check_finite(const char* name, float value) {
  if (std::isfinite(value)) return {};
  return Status::invalid(name, fmt::to_string(value), "must be finite");
}

// One A and one D for all experts, so no stride between batches.
Status check_no_batch_stride(const char* name, const Matrix& matrix) {
  const char* rule = "must be 0 for contiguous groups";
  DUALGEMM_TRY(check_zero({name, ".batch_stride"}, matrix.batch_stride, rule));
  return check_zero({name, ".scale_batch_stride"}, matrix.scale_batch_stride, rule);
}

}  // namespace

Status check_extents(const Problem& problem) {
  DUALGEMM_TRY(check_enumerator("grouping", problem.grouping));
  // Experts without tokens are ordinary; a batch without rows is a mistake.
  DUALGEMM_TRY(check_at_least({"m"}, problem.m, problem.grouping == Grouping::kNone ? 1 : 0));
  DUALGEMM_TRY(check_at_least({"n"}, problem.n, 1));
  DUALGEMM_TRY(check_at_least({"k"}, problem.k, kSfVec));
  DUALGEMM_TRY(check_at_least({"l"}, problem.l, 1));
  if (problem.k % kSfVec != 0) {
    return Status::invalid("k", std::to_string(problem.k), "must be a multiple of 16");
  }
  return {};
}

Status check_rows_of_a(const Problem& problem) {
  DUALGEMM_TRY(check_at_least({"a_rows"}, problem.a_rows, 0));
  if (problem.grouping != Grouping::kContiguous) {
    return check_zero({"a_rows"}, problem.a_rows, "must be 0 unless grouping is contiguous");
  }
  if (problem.a_rows <= std::numeric_limits<int32_t>::max()) return {};
  return Status::invalid("a_rows", std::to_string(problem.a_rows),
                         "must be below 2^31: an index is an int32");
}

Status check_activation(const Activation& act) {
  DUALGEMM_TRY(check_enumerator("act.kind", act.kind));
  if (!takes_parameters(act.kind)) {
    DUALGEMM_TRY(check_neutral("act.alpha", act.alpha, 1.0f, act.kind));
    DUALGEMM_TRY(check_neutral("act.beta", act.beta, 0.0f, act.kind));
    return check_neutral("act.limit", act.limit, std::numeric_limits<float>::infinity(), act.kind);
  }
  if (act.kind == ActivationKind::kClampedSwiglu && !act.limit) {
    return Status::invalid("act.limit", "not given",
                           "clamped_swiglu needs one, > 0 (infinity: no clamping)");
  }
  const ResolvedActivation resolved = act;
  DUALGEMM_TRY(check_finite("act.alpha", resolved.alpha));
  if (resolved.alpha == 0.0f) {  // half of g: no known activation, but what a forgotten field holds
    return Status::invalid("act.alpha", "0", "must not be 0");
  }
  DUALGEMM_TRY(check_finite("act.beta", resolved.beta));
  if (!(resolved.limit > 0.0f)) {  // NaN too
    return Status::invalid("act.limit", fmt::to_string(resolved.limit),
                           "must be > 0 (infinity: no clamping)");
  }
  return {};
}

Status check_combine(const Problem& problem) {
  DUALGEMM_TRY(check_enumerator("combine", problem.combine));
  if (problem.combine == Combine::kGlu) {
    const char* rule = "must be 0 for glu: only side_by_side has a second part";
    DUALGEMM_TRY(check_zero({"up_column"}, problem.up_column, rule));
    if (!problem.residual) return {};
    return Status::invalid("residual", "true", "must be false for glu: only side_by_side adds one");
  }
  if (problem.combine == Combine::kActivatedSideBySide) {
    DUALGEMM_TRY(check_activation(problem.act));
    if (takes_parameters(problem.act.kind)) {
      return Status::invalid("act.kind", name_of(problem.act.kind),
                             "must be an activation of one product: this one is of two");
    }
  } else if (!(problem.act == Activation{})) {
    return Status::invalid("act", name_of(problem.act.kind),
                           "must be the default for side_by_side, which applies none");
  }
  if (problem.up_column < 0 || problem.up_column > problem.n) {
    return Status::invalid("up_column", std::to_string(problem.up_column),
                           "must be 0 .. n = " + std::to_string(problem.n));
  }
  if (problem.d.type != DataType::kE2M1) return {};
  if (problem.up_column % kSfVec != 0) {
    return Status::invalid("up_column", std::to_string(problem.up_column),
                           "must be a multiple of 16 when d is e2m1");
  }
  if (!problem.residual) return {};
  return Status::invalid("residual", "true", "must be false when d is e2m1");
}

Status check_bias(const Problem& problem) {
  DUALGEMM_TRY(check_enumerator("bias", problem.bias));
  if (problem.bias == BiasType::kNone) {
    return check_zero({"bias_stride"}, problem.bias_stride, "must be 0: the bias is none");
  }
  DUALGEMM_TRY(
      check_stride({"bias_stride"}, problem.bias_stride, problem.n, " (n), or 0 for tight"));
  return check_batches({"bias"}, {"bias_stride"}, problem.l, problem.bias_stride, problem.n,
                       problem.n);
}

Status check_weight(const char* name, const char* type_name, const Matrix& matrix, int64_t n,
                    int64_t k, int64_t l) {
  DUALGEMM_TRY(check_matrix(name, matrix, n, k, l, false));
  if (matrix.type == DataType::kE2M1) return {};
  return Status::invalid(type_name, name_of(matrix.type), "weights must be e2m1");
}

Status check_token_strides(const Problem& problem) {
  if (problem.grouping != Grouping::kContiguous) return {};
  DUALGEMM_TRY(check_no_batch_stride("a", problem.a));
  return check_no_batch_stride("d", problem.d);
}

Status check_output(const Problem& problem, int64_t n) {
  if (problem.d.type == DataType::kE2M1 && n % kSfVec != 0) {
    return Status::invalid("n", std::to_string(n), "must be a multiple of 16 when d is e2m1");
  }
  return check_matrix("d", problem.d, problem.m, columns_of_d(problem), problem.l,
                      problem.grouping == Grouping::kContiguous);
}

Status check_matrix(const char* name, const Matrix& matrix, int64_t rows, int64_t cols,
                    int64_t batches, bool contiguous) {
  DUALGEMM_TRY(check_enum({name, ".type"}, matrix.type));
  DUALGEMM_TRY(check_enum({name, ".scale_layout"}, matrix.scale_layout));
  DUALGEMM_TRY(check_stride({name, ".ld"}, matrix.ld, cols, " (columns), or 0 for tight"));
  DUALGEMM_TRY(check_even({name, ".ld"}, matrix.ld, matrix.type));
  DUALGEMM_TRY(check_at_least({name, ".batch_stride"}, matrix.batch_stride, 0));
  DUALGEMM_TRY(check_even({name, ".batch_stride"}, matrix.batch_stride, matrix.type));
  DUALGEMM_TRY(check_at_least({name, ".scale_batch_stride"}, matrix.scale_batch_stride, 0));
  const int64_t copies = contiguous ? 1 : batches;
  DUALGEMM_TRY(check_data_span(name, matrix, rows, cols, copies));
  if (matrix.type != DataType::kE2M1) {
    const char* rule = "must be 0: only e2m1 has scales";
    DUALGEMM_TRY(check_zero({name, ".scale_ld"}, matrix.scale_ld, rule));
    return check_zero({name, ".scale_batch_stride"}, matrix.scale_batch_stride, rule);
  }
  int64_t scale_rows = rows, padding = 0;
  if (contiguous && matrix.scale_layout == ScaleLayout::kSwizzled128x4 &&
      (__builtin_mul_overflow(batches, int64_t{128}, &padding) ||  // at most a tile per expert
       __builtin_add_overflow(rows, padding, &scale_rows))) {
    return Status::error(StatusCode::kOverflow, Name{name, "_scales"}.str(),
                         fmt::format("{} experts", batches), "its size must fit in 64 bits");
  }
  return check_scale_span(name, matrix, scale_rows, cols, copies);
}

Status check_padded_sizes(const Problem& problem) {
  // In double: what matters lies far from the limit, and nothing can overflow on the way.
  const double rows = static_cast<double>(std::max(problem.m, problem.a_rows)) + 128,
               cols = static_cast<double>(problem.n) + static_cast<double>(problem.up_column) + 128,
               depth = static_cast<double>(problem.k) + 8192,
               batches = static_cast<double>(problem.l);
  const double values = batches * std::max({rows * depth, cols * depth, rows * cols});
  if (values * 16 <= 0x1p62) return {};
  return Status::error(
      StatusCode::kOverflow, "m, n, k, l",
      fmt::format("{}, {}, {}, {}", problem.m, problem.n, problem.k, problem.l),
      "with m and n padded by 128 and k by 8192, 16 bytes a value must fit in 64 bits");
}

}  // namespace core

Expected<core::CheckedProblem> core::CheckedProblem::of(const Problem& problem) {
  DUALGEMM_TRY(validate(problem));
  return CheckedProblem(problem);
}

Status validate(const Problem& problem) {
  DUALGEMM_TRY(core::check_extents(problem));
  DUALGEMM_TRY(core::check_activation(problem.act));
  DUALGEMM_TRY(core::check_combine(problem));
  DUALGEMM_TRY(core::check_bias(problem));
  DUALGEMM_TRY(core::check_token_strides(problem));
  const auto& [m, n, k, l] = std::tie(problem.m, problem.n, problem.k, problem.l);
  const bool contiguous = problem.grouping == Grouping::kContiguous;
  DUALGEMM_TRY(core::check_rows_of_a(problem));
  DUALGEMM_TRY(core::check_matrix("a", problem.a, core::rows_of_a(problem), k, l,
                                  contiguous && problem.a_rows == 0));
  DUALGEMM_TRY(core::check_weight("gate", "gate.type", problem.gate, n, k, l));
  DUALGEMM_TRY(core::check_weight("up", "up.type", problem.up, n, k, l));
  DUALGEMM_TRY(core::check_output(problem, n));  // after the weights: n fits in 64 bits by far
  return core::check_padded_sizes(problem);
}

}  // namespace dualgemm
