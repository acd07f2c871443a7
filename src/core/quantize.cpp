// quantize_nvfp4() and its inverse: a matrix of the host, every argument checked. What is not
// finite is looked for before anything is written. docs/formats.md, "Quantisation recipe".
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "core/arguments.hpp"
#include "core/half.hpp"
#include "core/quantize_block.hpp"
#include "core/quantize_rows.hpp"
#include "core/scale_padding.hpp"
#include "core/team.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm {
namespace {

constexpr int32_t kInfinityBits = 0x7F800000;

struct Matrix16 {  // rows of 16-blocks
  DataType type;
  int64_t rows, cols, ld;
  int64_t blocks() const noexcept { return rows * (cols / kSfVec); }
  core::RowRun all_rows() const noexcept { return {0, 0, rows, 0, 0, 0}; }
};

float element(const void* x, DataType type, int64_t index) noexcept {
  if (type == DataType::kF32) {
    float value;
    std::memcpy(&value, static_cast<const char*>(x) + index * 4, 4);
    return value;
  }
  uint16_t raw;
  std::memcpy(&raw, static_cast<const char*>(x) + index * 2, 2);
  return type == DataType::kF16 ? core::decode_f16(raw) : core::decode_bf16(raw);
}

// The first in row-major order, whatever thread met one.
Status not_finite(const void* x, const Matrix16& matrix) {
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t col = 0; col < matrix.cols; ++col) {
      const float value = element(x, matrix.type, row * matrix.ld + col);
      if (std::isfinite(value)) continue;
      const char* name = std::isnan(value) ? "NaN" : value > 0 ? "+infinity" : "-infinity";
      return Status::invalid(
          "x",
          std::string(name) + " at row " + std::to_string(row) + ", column " + std::to_string(col),
          "must be finite");
    }
  }
  return Status::error(StatusCode::kInternal, "x", "changed while it was read",
                       "must stay the same");
}

// Strides of a single row are idle and may be anything.
core::TensorPlaces places_of(const Matrix16& matrix, uint8_t* codes, int64_t ldc, uint8_t* scales,
                             const ScaleMap& map) {
  const bool many = matrix.rows > 1;
  return {.x_type = matrix.type,
          .x_row_bytes = many ? core::bytes_of(matrix.type, matrix.ld) : 0,
          .x_batch_bytes = 0,
          .codes = codes,
          .code_row_bytes = many ? ldc : 0,
          .code_batch_bytes = 0,
          .scales = scales,
          .map = map,
          .scale_batch_bytes = 0,
          .blocks_per_row = matrix.cols / kSfVec};
}

Expected<float> quantize_matrix(const void* x, const Matrix16& matrix,
                                const core::TensorPlaces& places, const QuantizeOptions& options) {
  const Expected<int> threads = core::threads_for_blocks(options.threads, matrix.blocks());
  if (!threads) return threads.status();
  core::Team team(*threads);
  const core::RowRun run = matrix.all_rows();
  const int32_t amax = core::amax_bits(team, places, x, {&run, 1});
  if (amax >= kInfinityBits) return not_finite(x, matrix);
  const core::GlobalScale global = options.global_scale == 0.0f
                                       ? core::global_scale_of_bits(amax)
                                       : core::global_scale_given(options.global_scale);
  if (places.map.layout() == ScaleLayout::kSwizzled128x4)
    core::clear_tile_padding(places.map, places.scales, 0, matrix.rows);
  core::quantize_runs(team, places, x, {&run, 1}, options.four_over_six, {&global.quantize, 1});
  return global.dequantize;
}

Status check_options(DataType x_type, const QuantizeOptions& options) {
  if (x_type != DataType::kF16 && x_type != DataType::kBF16 && x_type != DataType::kF32) {
    return Status::invalid("x_type", name_of(x_type), "must be f16, bf16 or f32");
  }
  if (!std::isfinite(options.global_scale) || options.global_scale < 0.0f) {
    return Status::invalid("global_scale", std::to_string(options.global_scale),
                           "must be finite and positive, or 0 to derive it from x");
  }
  return core::check_not_negative("threads", options.threads);
}

// What the two directions share: a matrix in a wide type and the same matrix as NVFP4.
struct Spans {
  int64_t wide_bytes, code_bytes, scale_bytes;
};

Expected<Spans> checked_spans(const char* ld_argument, int64_t rows, int64_t cols, int64_t ld,
                              int64_t element_bytes, int64_t ldc_bytes, const ScaleMap& map) {
  const Expected<int64_t> wide = core::checked_row_span(ld_argument, rows, cols, ld);
  if (!wide) return wide.status();
  const Expected<int64_t> wide_bytes = core::checked_product(ld_argument, *wide, element_bytes);
  if (!wide_bytes) return wide_bytes.status();
  const Expected<int64_t> code_bytes =
      core::checked_row_span("ldc_bytes", rows, cols / 2, ldc_bytes);
  if (!code_bytes) return code_bytes.status();
  return Spans{*wide_bytes, *code_bytes, map.required_span_size()};
}

Status check_buffers(const Spans& spans, const char* wide_argument, const void* wide,
                     const void* codes, const void* scales) {
  DUALGEMM_TRY(core::check_pointer(wide_argument, wide, spans.wide_bytes));
  DUALGEMM_TRY(core::check_pointer("codes", codes, spans.code_bytes));
  DUALGEMM_TRY(core::check_pointer("scales", scales, spans.scale_bytes));
  DUALGEMM_TRY(core::check_disjoint("codes", codes, spans.code_bytes, wide_argument, wide,
                                    spans.wide_bytes));
  DUALGEMM_TRY(core::check_disjoint("scales", scales, spans.scale_bytes, wide_argument, wide,
                                    spans.wide_bytes));
  return core::check_disjoint("scales", scales, spans.scale_bytes, "codes", codes,
                              spans.code_bytes);
}

}  // namespace

Expected<float> quantize_nvfp4(const void* x, DataType x_type, int64_t rows, int64_t cols,
                               int64_t ldx, uint8_t* codes, int64_t ldc_bytes, uint8_t* scales,
                               const QuantizeOptions& options) {
  DUALGEMM_TRY(check_options(x_type, options));
  DUALGEMM_TRY(core::check_not_negative("rows", rows));
  DUALGEMM_TRY(core::check_multiple("cols", cols, kSfVec));
  const Matrix16 matrix{x_type, rows, cols, ldx == 0 ? cols : ldx};
  const int64_t ldc = ldc_bytes == 0 ? cols / 2 : ldc_bytes;
  const Expected<ScaleMap> map = core::checked_scale_map("scale_ld", options.scale_layout, rows,
                                                         cols / kSfVec, options.scale_ld);
  if (!map) return map.status();
  const int64_t element_bytes = x_type == DataType::kF32 ? 4 : 2;
  const Expected<Spans> spans =
      checked_spans("ldx", rows, cols, matrix.ld, element_bytes, ldc, *map);
  if (!spans) return spans.status();
  DUALGEMM_TRY(check_buffers(*spans, "x", x, codes, scales));
  if (matrix.blocks() == 0) return options.global_scale == 0.0f ? 1.0f : options.global_scale;
  return quantize_matrix(x, matrix, places_of(matrix, codes, ldc, scales, *map), options);
}

Status dequantize_nvfp4(const uint8_t* codes, int64_t ldc_bytes, const uint8_t* scales,
                        ScaleLayout scale_layout, int64_t scale_ld, float global_scale,
                        int64_t rows, int64_t cols, float* out, int64_t ld_out) {
  DUALGEMM_TRY(core::check_not_negative("rows", rows));
  DUALGEMM_TRY(core::check_multiple("cols", cols, kSfVec));
  const int64_t ldc = ldc_bytes == 0 ? cols / 2 : ldc_bytes, ld = ld_out == 0 ? cols : ld_out;
  const Expected<ScaleMap> map =
      core::checked_scale_map("scale_ld", scale_layout, rows, cols / kSfVec, scale_ld);
  if (!map) return map.status();
  const Expected<Spans> spans = checked_spans("ld_out", rows, cols, ld, sizeof(float), ldc, *map);
  if (!spans) return spans.status();
  DUALGEMM_TRY(check_buffers(*spans, "out", out, codes, scales));
  if (rows == 0 || cols == 0) return Status();  // of empty rows there may be 2^63
  const Matrix16 matrix{DataType::kF32, rows, cols, ld};
  const core::TensorPlaces places =
      places_of(matrix, const_cast<uint8_t*>(codes), ldc, const_cast<uint8_t*>(scales),
                *map);  // only read
  core::Team team(1);
  const core::RowRun run = matrix.all_rows();
  core::dequantize_runs(team, places, out, {&run, 1}, {&global_scale, 1}, 0);
  return Status();
}

}  // namespace dualgemm
