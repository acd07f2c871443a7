// NVFP4 and its neighbours: codecs, scale layouts, quantiser, converters. docs/formats.md has the
// pictures.
#pragma once

#include <cstdint>

#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm {

// ---- scale layouts ----------------------------------------------------------

// A mapping object in the manner of std::mdspan: (row, sf_col) -> offset in scales from the start
// of one batch.
class ScaleMap {
 public:
  // rows >= 0, sf_cols = k/16 >= 0. ld: kLinear only, 0 = sf_cols. The caller has validated that
  // the span fits in 64 bits (checked_scale_span).
  constexpr ScaleMap(ScaleLayout layout, int64_t rows, int64_t sf_cols, int64_t ld = 0) noexcept
      : layout_(layout), rows_(rows), cols_(sf_cols), ld_(ld == 0 ? sf_cols : ld) {}

  constexpr ScaleLayout layout() const noexcept { return layout_; }
  constexpr int64_t rows() const noexcept { return rows_; }
  constexpr int64_t cols() const noexcept { return cols_; }
  constexpr int64_t ld() const noexcept { return ld_; }

  constexpr int64_t operator()(int64_t row, int64_t col) const noexcept {
    if (layout_ == ScaleLayout::kLinear) return row * ld_ + col;
    return ((row / 128) * ((cols_ + 3) / 4) + col / 4) * 512 + (row % 32) * 16 +
           ((row % 128) / 32) * 4 + col % 4;
  }

  // Bytes that must exist, padding of the last swizzled tiles included. Linear: up to the last
  // scale, not the last row's padding.
  constexpr int64_t required_span_size() const noexcept {
    if (rows_ == 0 || cols_ == 0) return 0;
    if (layout_ == ScaleLayout::kLinear) return (rows_ - 1) * ld_ + cols_;
    return ((rows_ + 127) / 128) * ((cols_ + 3) / 4) * 512;
  }
  constexpr bool is_unique() const noexcept {
    return layout_ != ScaleLayout::kLinear || ld_ >= cols_ || rows_ <= 1;
  }
  constexpr bool is_exhaustive() const noexcept {  // no padding
    return layout_ == ScaleLayout::kLinear ? (ld_ == cols_ || rows_ <= 1)
                                           : rows_ % 128 == 0 && cols_ % 4 == 0;
  }

  struct Coordinate {
    int64_t row, col;
    bool is_padding;  // row >= rows() or col >= cols()
  };
  // Precondition: 0 <= offset < required_span_size().
  constexpr Coordinate inverse(int64_t offset) const noexcept {
    if (layout_ == ScaleLayout::kLinear) {
      const int64_t row = ld_ == 0 ? 0 : offset / ld_, col = ld_ == 0 ? 0 : offset % ld_;
      return {row, col, row >= rows_ || col >= cols_};
    }
    const int64_t tiles_k = (cols_ + 3) / 4;
    const int64_t tile = offset / 512, in = offset % 512;
    const int64_t row = (tile / tiles_k) * 128 + (in % 16) / 4 * 32 + in / 16;
    const int64_t col = (tile % tiles_k) * 4 + in % 4;
    return {row, col, row >= rows_ || col >= cols_};
  }

 private:
  ScaleLayout layout_;
  int64_t rows_, cols_, ld_;
};

// required_span_size() with overflow and sign checks on every input.
Expected<int64_t> checked_scale_span(ScaleLayout layout, int64_t rows, int64_t sf_cols,
                                     int64_t ld = 0);

// ---- scalar codecs ----------------------------------------------------------

float decode_e2m1(uint8_t code) noexcept;  // the low four bits count; sign in bit 3, -0 kept
uint8_t encode_e2m1(
    float value) noexcept;  // nearest, ties to even code, saturates at 6; NaN -> 0x7 with its sign
float decode_e4m3(uint8_t bits) noexcept;  // OCP "fn": 0x7F and 0xFF are NaN, no infinities
float decode_scale(
    uint8_t bits) noexcept;  // as the hardware reads a block scale: decode_e4m3(bits & 0x7F)
uint8_t encode_e4m3(float value) noexcept;  // nearest even, saturates at 448 (infinity too), NaN ->
                                            // 0x7F with its sign
float decode_f16(uint16_t bits) noexcept;
uint16_t encode_f16(
    float value) noexcept;  // nearest even, overflow to infinity, NaN stays a (quiet) NaN
float decode_bf16(uint16_t bits) noexcept;
uint16_t encode_bf16(
    float value) noexcept;  // nearest even, overflow to infinity, NaN stays a (quiet) NaN

// ---- quantiser --------------------------------------------------------------

struct QuantizeOptions {
  float global_scale = 0.0f;  // dequantising multiplier; 0 = amax / (6*448) of this tensor
  bool four_over_six =
      false;  // per block also try amax/4, keep the lower mean absolute error (ties: amax/6)
  ScaleLayout scale_layout = ScaleLayout::kLinear;
  int64_t scale_ld = 0;  // kLinear; 0 = cols/16
  int threads = 0;       // 0 = all available cores; the result does not depend on it
};

// x[rows][cols] (kF16, kBF16 or kF32; ldx elements between rows, 0 = cols) -> codes[rows][cols/2]
// (ldc_bytes between rows, 0 = cols/2) and scales. With G = 2688/amax(x) in FP32 (given a global
// scale g: G = 1/g):
//   s = e4m3(min(G*amax_block/6, 448)),  code = e2m1(x*G/s), 0 when s = 0        -- every operation
//   rounded to FP32, in this order
// Swizzled padding is written as 0. All-zero tensor: global scale 1, all bytes 0. NaN or infinity
// in x: an error that names the element. Returns the dequantising global scale used: w = e2m1 *
// e4m3 * global.
Expected<float> quantize_nvfp4(const void* x, DataType x_type, int64_t rows, int64_t cols,
                               int64_t ldx, uint8_t* codes, int64_t ldc_bytes, uint8_t* scales,
                               const QuantizeOptions& options = {});

// The inverse: out = e2m1 * e4m3 * global_scale in FP32. NaN scales give NaN.
Status dequantize_nvfp4(const uint8_t* codes, int64_t ldc_bytes, const uint8_t* scales,
                        ScaleLayout scale_layout, int64_t scale_ld, float global_scale,
                        int64_t rows, int64_t cols, float* out, int64_t ld_out);

// ---- converters -------------------------------------------------------------

// Scales of `batches` batches, tight in both layouts (linear may carry ld). Padding of the
// destination is written as 0. dst must not overlap src.
Status convert_scale_layout(const uint8_t* src, ScaleLayout src_layout, int64_t src_ld,
                            uint8_t* dst, ScaleLayout dst_layout, int64_t dst_ld, int64_t rows,
                            int64_t sf_cols, int64_t batches = 1);

// Exchanges the nibbles of every byte (high nibble = even k <-> low nibble = even k). dst may be
// src.
Status swap_nibbles(const uint8_t* src, uint8_t* dst, int64_t bytes);

// ggml's NVFP4 rows: blocks of 64 values = 4 scale bytes + 32 code bytes; in a 16-group the low
// nibbles are elements 0-7. cols % 64 == 0. A permutation of bytes both ways; ggml reads scale byte
// 0x7F as 0, so from_ggml maps it to 0 and to_ggml refuses it.
Status from_ggml_nvfp4(const uint8_t* blocks, int64_t rows, int64_t cols, uint8_t* codes,
                       uint8_t* scales_linear);
Status to_ggml_nvfp4(const uint8_t* codes, const uint8_t* scales_linear, int64_t rows, int64_t cols,
                     uint8_t* blocks);

// What `validate --strict` reports about block scales; padding is not looked at.
struct ScaleReport {
  int64_t negative = 0;  // sign bit set (ignored in computing, as the hardware does)
  int64_t nan = 0;       // 0x7F, 0xFF: every output they touch is NaN
  int64_t zero = 0;
  int64_t subnormal = 0;                           // 0x01 .. 0x07
  int64_t first_bad_row = -1, first_bad_col = -1;  // first negative or NaN scale
};
Expected<ScaleReport> inspect_scales(const uint8_t* scales, ScaleLayout layout, int64_t rows,
                                     int64_t sf_cols, int64_t ld = 0);

}  // namespace dualgemm
