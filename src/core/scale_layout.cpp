// Scale layouts: the checks of their arguments, conversion between them, and the report on their
// bytes.
#include <string>

#include "core/arguments.hpp"
#include "core/quantize_problem.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm {
namespace core {
namespace {

Expected<int64_t> checked_swizzled_span(int64_t rows, int64_t sf_cols) {
  int64_t padded_rows = 0, padded_cols = 0, span = 0;
  if (!__builtin_add_overflow(rows, 127, &padded_rows) &&
      !__builtin_add_overflow(sf_cols, 3, &padded_cols) &&
      !__builtin_mul_overflow(padded_rows / 128 * 128, padded_cols / 4 * 4, &span)) {
    return span;
  }
  return overflow("rows", std::to_string(rows) + " x " + std::to_string(sf_cols) + " scales");
}

}  // namespace

Expected<ScaleMap> checked_scale_map(const char* ld_argument, ScaleLayout layout, int64_t rows,
                                     int64_t sf_cols, int64_t ld) {
  DUALGEMM_TRY(check_not_negative("rows", rows));
  DUALGEMM_TRY(check_not_negative("sf_cols", sf_cols));
  DUALGEMM_TRY(check_not_negative(ld_argument, ld));
  switch (layout) {
    case ScaleLayout::kLinear: {
      const Expected<int64_t> span =
          checked_row_span(ld_argument, rows, sf_cols, ld == 0 ? sf_cols : ld);
      if (!span) return span.status();
      return ScaleMap(layout, rows, sf_cols, ld);
    }
    case ScaleLayout::kSwizzled128x4: {
      if (ld != 0) {
        return Status::invalid(ld_argument, std::to_string(ld),
                               "must be 0 for swizzled_128x4, which has no rows");
      }
      const Expected<int64_t> span = checked_swizzled_span(rows, sf_cols);
      if (!span) return span.status();
      return ScaleMap(layout, rows, sf_cols);
    }
  }
  return Status::invalid("scale layout", std::to_string(static_cast<int32_t>(layout)),
                         "must be linear or swizzled_128x4");
}

}  // namespace core

Expected<int64_t> checked_scale_span(ScaleLayout layout, int64_t rows, int64_t sf_cols,
                                     int64_t ld) {
  const Expected<ScaleMap> map = core::checked_scale_map("ld", layout, rows, sf_cols, ld);
  if (!map) return map.status();
  return map->required_span_size();
}

Status convert_scale_layout(const uint8_t* src, ScaleLayout src_layout, int64_t src_ld,
                            uint8_t* dst, ScaleLayout dst_layout, int64_t dst_ld, int64_t rows,
                            int64_t sf_cols, int64_t batches) {
  const Expected<ScaleMap> from =
      core::checked_scale_map("src_ld", src_layout, rows, sf_cols, src_ld);
  if (!from) return from.status();
  const Expected<ScaleMap> to =
      core::checked_scale_map("dst_ld", dst_layout, rows, sf_cols, dst_ld);
  if (!to) return to.status();
  DUALGEMM_TRY(core::check_not_negative("batches", batches));
  const int64_t src_stride = from->required_span_size(), dst_stride = to->required_span_size();
  const Expected<int64_t> src_bytes = core::checked_product("batches", batches, src_stride);
  if (!src_bytes) return src_bytes.status();
  const Expected<int64_t> dst_bytes = core::checked_product("batches", batches, dst_stride);
  if (!dst_bytes) return dst_bytes.status();
  const core::ResolvedConversion all{*from,      *to,        batches,   src_stride,
                                     dst_stride, *src_bytes, *dst_bytes};
  DUALGEMM_TRY(core::check_arrays(all, src, dst));
  core::convert_scales_on_cpu(all, src, dst);
  return Status();
}

Expected<ScaleReport> inspect_scales(const uint8_t* scales, ScaleLayout layout, int64_t rows,
                                     int64_t sf_cols, int64_t ld) {
  const Expected<ScaleMap> map = core::checked_scale_map("ld", layout, rows, sf_cols, ld);
  if (!map) return map.status();
  DUALGEMM_TRY(core::check_pointer("scales", scales, map->required_span_size()));
  ScaleReport report;
  if (map->required_span_size() == 0) return report;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < sf_cols; ++col) {
      const uint8_t byte = scales[(*map)(row, col)], magnitude = byte & 0x7F;
      const bool negative = byte != magnitude, nan = magnitude == 0x7F;
      report.negative += negative;
      report.nan += nan;
      report.zero += magnitude == 0;
      report.subnormal += magnitude >= 0x01 && magnitude <= 0x07;
      if ((negative || nan) && report.first_bad_row < 0) {
        report.first_bad_row = row;
        report.first_bad_col = col;
      }
    }
  }
  return report;
}

}  // namespace dualgemm
