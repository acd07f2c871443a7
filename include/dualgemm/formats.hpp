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

// Swizzled bytes of `batches` batches as the strided 6-D tensor of the GPU MODE challenge, of CuTe
// and of FlashInfer: extents [32, 4, ceil(rows/128), 4, ceil(sf_cols/4), batches], indexed by
// (row%32, row%128/32, row/128, col%4, col/4, batch). A view: no byte moves. Slowest to fastest in
// memory: batch, row/128, col/4, row%32, row%128/32, col%4.
class PermutedScaleView {
 public:
  // The caller has validated that batches * span fits in 64 bits.
  constexpr PermutedScaleView(int64_t rows, int64_t sf_cols, int64_t batches = 1) noexcept
      : extents_{32, 4, (rows + 127) / 128, 4, (sf_cols + 3) / 4, batches},
        strides_{16, 4, 512 * extents_[4], 1, 512, 512 * extents_[4] * extents_[2]} {}

  static constexpr int rank() noexcept { return 6; }
  constexpr int64_t extent(int dimension) const noexcept { return extents_[dimension]; }
  constexpr int64_t stride(int dimension) const noexcept { return strides_[dimension]; }
  constexpr int64_t operator()(int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4,
                               int64_t i5) const noexcept {
    return i0 * strides_[0] + i1 * strides_[1] + i2 * strides_[2] + i3 * strides_[3] +
           i4 * strides_[4] + i5 * strides_[5];
  }

 private:
  int64_t extents_[6], strides_[6];
};

// ---- scalar codecs ----------------------------------------------------------

// The low four bits count; sign in bit 3, -0 kept.
float decode_e2m1(uint8_t code) noexcept;
// Nearest, ties to the even code, saturates at 6; the sign is kept (-0.1 gives -0); NaN gives 7
// with its sign.
uint8_t encode_e2m1(float value) noexcept;

// OCP "fn": 0x7F and 0xFF are NaN, no infinities.
float decode_e4m3(uint8_t bits) noexcept;
// As the hardware reads a block scale: decode_e4m3(bits & 0x7F).
float decode_scale(uint8_t bits) noexcept;
// Nearest even, saturates at 448 (infinity too); NaN gives 0x7F with its sign.
uint8_t encode_e4m3(float value) noexcept;

// Encoders: nearest even, overflow to infinity, NaN stays a quiet NaN with the upper bits of its
// payload. Decoders: exact; a signalling NaN becomes quiet.
float decode_f16(uint16_t bits) noexcept;
uint16_t encode_f16(float value) noexcept;
float decode_bf16(uint16_t bits) noexcept;
uint16_t encode_bf16(float value) noexcept;

// ---- quantiser --------------------------------------------------------------

struct QuantizeOptions {
  // Dequantising multiplier, finite and positive; 0 = amax / (6*448) of this tensor.
  float global_scale = 0.0f;
  // For each block also try amax/4, keep the lower sum of |x*G - code*s| (ties: amax/6).
  bool four_over_six = false;
  ScaleLayout scale_layout = ScaleLayout::kLinear;
  int64_t scale_ld = 0;  // kLinear; 0 = cols/16
  int threads = 0;       // 0 = all usable cores; the result does not depend on it
};

// x[rows][cols] (kF16, kBF16 or kF32; ldx elements between rows, 0 = cols; any alignment)
//   -> codes[rows][cols/2] (ldc_bytes between rows, 0 = cols/2) and scales. cols % 16 == 0.
//
// With G = 2688/amax(x) in FP32 (given a global scale g: G = 1/g), for every block of 16:
//   s = e4m3(min(G*amax_block/6, 448)),  code = e2m1(x*G/s), 0 when s = 0
// every operation rounded to FP32, in this order. A derived global scale is amax/2688, but not
// below 2^-126 (then G = 2^126), and 1 for an all-zero tensor; 1/g is capped at the largest float.
//
// Swizzled padding is written as 0; the gap between rows (ldc_bytes, scale_ld) is not touched.
// NaN or infinity in x: an error that names the first such element; nothing is written. The
// outputs must not overlap each other or x. Returns the dequantising global scale used:
// w = e2m1 * e4m3 * global.
Expected<float> quantize_nvfp4(const void* x, DataType x_type, int64_t rows, int64_t cols,
                               int64_t ldx, uint8_t* codes, int64_t ldc_bytes, uint8_t* scales,
                               const QuantizeOptions& options = {});

// The inverse: out = (e2m1 * e4m3, exact) * global_scale, rounded to FP32 once. NaN scales give
// NaN. ld = 0 means tight.
Status dequantize_nvfp4(const uint8_t* codes, int64_t ldc_bytes, const uint8_t* scales,
                        ScaleLayout scale_layout, int64_t scale_ld, float global_scale,
                        int64_t rows, int64_t cols, float* out, int64_t ld_out);

// ---- converters -------------------------------------------------------------

// Scales of `batches` batches, each required_span_size() bytes after the one before, as with
// Matrix::scale_batch_stride = 0. Swizzled padding of the destination is written as 0, the gap
// between rows of a linear one (dst_ld) is not touched; the source's padding is not read. dst must
// not overlap src.
Status convert_scale_layout(const uint8_t* src, ScaleLayout src_layout, int64_t src_ld,
                            uint8_t* dst, ScaleLayout dst_layout, int64_t dst_ld, int64_t rows,
                            int64_t sf_cols, int64_t batches = 1);

// Exchanges the nibbles of every byte (high nibble = even k <-> low nibble = even k). dst is src or
// does not overlap it.
Status swap_nibbles(const uint8_t* src, uint8_t* dst, int64_t bytes);

// ggml's NVFP4 rows: ggml blocks of 64 values = 4 scale bytes + 32 code bytes; in a 16-block the
// low nibbles are elements 0-7. cols % 64 == 0. A permutation of bytes both ways, but for NaN
// scales: ggml reads 0x7F as 0, so from_ggml_nvfp4 maps it to 0, and 0xFF as 480, which E4M3 lacks,
// so from_ggml_nvfp4 refuses it; to_ggml_nvfp4 refuses both.
Status from_ggml_nvfp4(const uint8_t* ggml_blocks, int64_t rows, int64_t cols, uint8_t* codes,
                       uint8_t* scales_linear);
Status to_ggml_nvfp4(const uint8_t* codes, const uint8_t* scales_linear, int64_t rows, int64_t cols,
                     uint8_t* ggml_blocks);

// What `validate --strict` reports about block scales; padding is not looked at.
struct ScaleReport {
  int64_t negative = 0;  // sign bit set (ignored in computing, as the hardware does)
  int64_t nan = 0;       // 0x7F, 0xFF: every output they touch is NaN
  int64_t zero = 0;
  int64_t subnormal = 0;                           // 0x01 .. 0x07, sign aside
  int64_t first_bad_row = -1, first_bad_col = -1;  // first negative or NaN scale
};
Expected<ScaleReport> inspect_scales(const uint8_t* scales, ScaleLayout layout, int64_t rows,
                                     int64_t sf_cols, int64_t ld = 0);

}  // namespace dualgemm
