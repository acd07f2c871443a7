/**
 * @file formats.h
 * NVFP4 data through the C interface: quantiser, scale layouts, converters. dualgemm.h includes it
 * and has the rules about structs, errors and threads; docs/formats.md has the pictures.
 */
#ifndef DUALGEMM_FORMATS_H
#define DUALGEMM_FORMATS_H

#include <stdint.h>

#include "dualgemm/constants.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Stable part ==== */

/** Minimum struct_size: 16. */
typedef struct dualgemm_quantize_options {
  uint64_t struct_size;
  float global_scale; /**< dequantising multiplier; 0 (default) = amax / (6*448) of this tensor */
  int32_t four_over_six; /**< 0 or 1; per block also try amax/4, keep the lower mean |error| */
  int32_t scale_layout;
  int32_t threads;  /**< 0 = all usable cores; the result does not depend on it */
  int64_t scale_ld; /**< linear layout; 0 = cols / 16 */
} dualgemm_quantize_options;

DUALGEMM_API dualgemm_status dualgemm_quantize_options_init(dualgemm_quantize_options* options,
                                                            uint64_t struct_size) DUALGEMM_NOEXCEPT;

/**
 * Quantises x[rows][cols] (F16, BF16 or F32; cols a multiple of 16) to E2M1 codes[rows][cols/2] and
 * one E4M3 scale per 16 neighbours. ldx: elements between rows of x, 0 = cols. ldc_bytes: bytes
 * between rows of codes, 0 = cols/2. scales: dualgemm_scale_span() bytes; swizzled padding becomes
 * 0.
 *
 *   G = 2688 / amax(x),  s = e4m3(min(G * amax_of_block / 6, 448)),  code = e2m1(x * G / s)
 *
 * with code 0 where s = 0. options may be null. *global_scale (may be null) receives the
 * dequantising factor, w = e2m1 * e4m3 * global_scale; 1 for an all-zero tensor. A NaN or an
 * infinity in x is DUALGEMM_INVALID_ARGUMENT and names the element.
 */
DUALGEMM_API dualgemm_status dualgemm_quantize(const void* x, int32_t x_type, int64_t rows,
                                               int64_t cols, int64_t ldx, uint8_t* codes,
                                               int64_t ldc_bytes, uint8_t* scales,
                                               const dualgemm_quantize_options* options,
                                               float* global_scale) DUALGEMM_NOEXCEPT;

/** out[rows][cols] = e2m1 * e4m3 * global_scale in FP32; ld_out: elements, 0 = cols. */
DUALGEMM_API dualgemm_status dualgemm_dequantize(const uint8_t* codes, int64_t ldc_bytes,
                                                 const uint8_t* scales, int32_t scale_layout,
                                                 int64_t scale_ld, float global_scale, int64_t rows,
                                                 int64_t cols, float* out,
                                                 int64_t ld_out) DUALGEMM_NOEXCEPT;

/** Bytes of the scales of rows x sf_cols blocks, sf_cols = k / 16; ld: linear only, 0 = sf_cols. */
DUALGEMM_API dualgemm_status dualgemm_scale_span(int32_t scale_layout, int64_t rows,
                                                 int64_t sf_cols, int64_t ld,
                                                 int64_t* bytes) DUALGEMM_NOEXCEPT;

/**
 * Rewrites the scales of `batches` batches from one layout to another. Batches are tight in both; a
 * linear side may carry ld (0 = sf_cols), a swizzled one must give 0. Padding of dst is written as
 * 0. dst must not overlap src.
 */
DUALGEMM_API dualgemm_status dualgemm_convert_scales(const uint8_t* src, int32_t src_layout,
                                                     int64_t src_ld, uint8_t* dst,
                                                     int32_t dst_layout, int64_t dst_ld,
                                                     int64_t rows, int64_t sf_cols,
                                                     int64_t batches) DUALGEMM_NOEXCEPT;

/** Exchanges the nibbles of every byte, for data with high nibble = even k. dst may be src. */
DUALGEMM_API dualgemm_status dualgemm_swap_nibbles(const uint8_t* src, uint8_t* dst,
                                                   int64_t bytes) DUALGEMM_NOEXCEPT;

/** Counts over the block scales, padding excluded. Minimum struct_size: 16. */
typedef struct dualgemm_scale_report {
  uint64_t struct_size;
  int64_t negative; /**< sign bit set; ignored in computing, as the hardware does */
  int64_t nan;      /**< 0x7F, 0xFF: every output they touch is NaN */
  int64_t zero;
  int64_t subnormal;     /**< 0x01 .. 0x07 */
  int64_t first_bad_row; /**< first negative or NaN scale; -1 = none */
  int64_t first_bad_col;
} dualgemm_scale_report;

DUALGEMM_API dualgemm_status
dualgemm_inspect_scales(const uint8_t* scales, int32_t scale_layout, int64_t rows, int64_t sf_cols,
                        int64_t ld, dualgemm_scale_report* report) DUALGEMM_NOEXCEPT;

/* ==== Experimental part: may change or vanish in any release ==== */

/**
 * ggml's NVFP4 rows, ggml blocks of 64 values = 4 scale bytes + 32 code bytes, cols a multiple of
 * 64. A permutation of bytes both ways; codes [rows][cols/2], scales linear [rows][cols/16]. ggml
 * reads the scale 0x7F as 0, so "from" maps it to 0 and "to" refuses it.
 */
DUALGEMM_API dualgemm_status dualgemm_experimental_from_ggml(const uint8_t* ggml_blocks,
                                                             int64_t rows, int64_t cols,
                                                             uint8_t* codes,
                                                             uint8_t* scales) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_experimental_to_ggml(const uint8_t* codes,
                                                           const uint8_t* scales, int64_t rows,
                                                           int64_t cols,
                                                           uint8_t* ggml_blocks) DUALGEMM_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DUALGEMM_FORMATS_H */
