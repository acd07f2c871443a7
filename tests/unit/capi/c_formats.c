/* Quantiser, scale layouts and converters, against bytes worked out by hand. */
#include <math.h>
#include <string.h>

#include "c_cases.h"
#include "dualgemm/dualgemm.h"

/* All 16 codes in order. The largest magnitude, 6, is e2m1's largest as well. */
static const float kAllValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                     -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
static const uint8_t kAllCodes[8] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE};

/* amax 6, so G = 2688/6 = 448; s = e4m3(448*6/6) = 448 = 0x7E; codes = e2m1(x * 448/448). */
static void quantize_finds_its_own_scale(c_fail fail) {
  uint8_t codes[8], scale = 0;
  float global = 0.0f, back[16];
  int i;
  C_CHECK_OK(
      dualgemm_quantize(kAllValues, DUALGEMM_F32, 1, 16, 0, codes, 0, &scale, NULL, &global));
  C_CHECK(memcmp(codes, kAllCodes, sizeof codes) == 0);
  C_CHECK(scale == 0x7E);
  C_CHECK(fabsf(global - 6.0f / 2688.0f) <= 1e-9f);
  C_CHECK_OK(
      dualgemm_dequantize(codes, 0, &scale, DUALGEMM_SCALES_LINEAR, 0, global, 1, 16, back, 0));
  for (i = 0; i < 16; ++i) C_CHECK(fabsf(back[i] - kAllValues[i]) <= 1e-6f);
}

/* g = 1/64: G = 64, s = e4m3(64) = 0x68. Everything is a power of two, so the way back is exact.
 * Two rows with wide strides; the bytes between them are not touched. The second row is 2 x the
 * first. */
static void quantize_takes_a_global_scale_and_strides(c_fail fail) {
  dualgemm_quantize_options options;
  float x[2][20], back[2][18];
  uint8_t codes[2][11], scales[2][3];
  int r, i;
  memset(codes, 0xEE, sizeof codes);
  memset(scales, 0xEE, sizeof scales);
  for (r = 0; r < 2; ++r) {
    for (i = 0; i < 20; ++i) x[r][i] = i < 16 ? kAllValues[i] * (float)(r + 1) : NAN;
    for (i = 0; i < 18; ++i) back[r][i] = 99.0f;
  }
  dualgemm_quantize_options_init(&options, sizeof options);
  options.global_scale = 1.0f / 64.0f;
  options.scale_ld = 3;
  options.threads = 2;
  C_CHECK_OK(
      dualgemm_quantize(x, DUALGEMM_F32, 2, 16, 20, codes[0], 11, scales[0], &options, NULL));
  for (r = 0; r < 2; ++r) {
    C_CHECK(memcmp(codes[r], kAllCodes, 8) == 0);
    C_CHECK(r == 1 || (codes[r][8] == 0xEE && codes[r][10] == 0xEE && scales[r][1] == 0xEE));
  }
  C_CHECK(scales[0][0] == 0x68 && scales[1][0] == 0x70); /* 64 and 128 */
  C_CHECK_OK(dualgemm_dequantize(codes[0], 11, scales[0], DUALGEMM_SCALES_LINEAR, 3, 1.0f / 64.0f,
                                 2, 16, back[0], 18));
  for (r = 0; r < 2; ++r) {
    for (i = 0; i < 16; ++i) {
      C_CHECK(back[r][i] == x[r][i] && !signbit(back[r][i]) == !signbit(x[r][i]));
    }
    C_CHECK(back[r][16] == 99.0f && back[r][17] == 99.0f);
  }
}

/* A 4 and fifteen 3s, g = 1. amax/4: s = 1, everything exact. amax/6: s = e4m3(0.667) = 0.6875 and
 * 3 becomes 4 * 0.6875 = 2.75. */
static void four_over_six_keeps_the_lower_error(c_fail fail) {
  dualgemm_quantize_options options;
  float x[16];
  uint8_t codes[8], scale = 0;
  int i;
  for (i = 0; i < 16; ++i) x[i] = i == 0 ? 4.0f : 3.0f;
  dualgemm_quantize_options_init(&options, sizeof options);
  options.global_scale = 1.0f;
  options.four_over_six = 1;
  C_CHECK_OK(dualgemm_quantize(x, DUALGEMM_F32, 1, 16, 0, codes, 0, &scale, &options, NULL));
  C_CHECK(scale == 0x38); /* 4/4 = 1 */
  C_CHECK(codes[0] == 0x56 && codes[1] == 0x55 && codes[7] == 0x55);
  options.four_over_six = 3;
  C_CHECK_ERROR(dualgemm_quantize(x, DUALGEMM_F32, 1, 16, 0, codes, 0, &scale, &options, NULL),
                DUALGEMM_INVALID_ARGUMENT, "options.four_over_six: 3");
}

static void quantize_reads_half_types_and_names_a_bad_element(c_fail fail) {
  /* 1, 2, ..., as fp16 and bf16; the rest 0. */
  uint16_t f16[16] = {0x3C00, 0x4000}, bf16[16] = {0x3F80, 0x4000};
  uint8_t from_f16[8], from_bf16[8], scale_f16 = 0, scale_bf16 = 1;
  float bad[32] = {0};
  float global_f16 = 0.0f, global_bf16 = 1.0f;
  uint8_t untouched[16], untouched_scales[2];
  C_CHECK_OK(
      dualgemm_quantize(f16, DUALGEMM_F16, 1, 16, 0, from_f16, 0, &scale_f16, NULL, &global_f16));
  C_CHECK_OK(dualgemm_quantize(bf16, DUALGEMM_BF16, 1, 16, 0, from_bf16, 0, &scale_bf16, NULL,
                               &global_bf16));
  C_CHECK(memcmp(from_f16, from_bf16, 8) == 0 && scale_f16 == scale_bf16);
  C_CHECK(global_f16 == global_bf16);
  C_CHECK(from_f16[0] == 0x75); /* 3 and 6 of the grid: 1 is half the maximum */
  bad[16 + 5] = NAN;
  C_CHECK_ERROR(
      dualgemm_quantize(bad, DUALGEMM_F32, 2, 16, 0, untouched, 0, untouched_scales, NULL, NULL),
      DUALGEMM_INVALID_ARGUMENT, "NaN at row 1, column 5");
  C_CHECK(dualgemm_quantize(bad, DUALGEMM_E2M1, 2, 16, 0, untouched, 0, untouched_scales, NULL,
                            NULL) == DUALGEMM_INVALID_ARGUMENT);
  C_CHECK(dualgemm_quantize(bad, DUALGEMM_F32, 2, 15, 0, untouched, 0, untouched_scales, NULL,
                            NULL) == DUALGEMM_INVALID_ARGUMENT);
  C_CHECK(dualgemm_quantize(NULL, DUALGEMM_F32, 2, 16, 0, untouched, 0, untouched_scales, NULL,
                            NULL) == DUALGEMM_INVALID_ARGUMENT);
  C_CHECK_OK(dualgemm_dequantize(NULL, 0, NULL, 0, 0, 1.0f, INT64_MAX / 8, 0, NULL, 0));
  C_CHECK(dualgemm_dequantize(NULL, 0, untouched_scales, 0, 0, 1.0f, 2, 16, bad, 0) ==
          DUALGEMM_INVALID_ARGUMENT);
}

static void spans_of_both_layouts(c_fail fail) {
  int64_t bytes = -1;
  C_CHECK_OK(dualgemm_scale_span(DUALGEMM_SCALES_LINEAR, 3, 5, 0, &bytes));
  C_CHECK(bytes == 15);
  C_CHECK_OK(dualgemm_scale_span(DUALGEMM_SCALES_LINEAR, 3, 5, 9, &bytes));
  C_CHECK(bytes == 2 * 9 + 5);
  C_CHECK_OK(dualgemm_scale_span(DUALGEMM_SCALES_SWIZZLED_128X4, 129, 5, 0, &bytes));
  C_CHECK(bytes == 2 * 2 * 512);
  bytes = -1;
  C_CHECK_ERROR(dualgemm_scale_span(DUALGEMM_SCALES_LINEAR, -3, 5, 0, &bytes),
                DUALGEMM_INVALID_ARGUMENT, "-3");
  C_CHECK(dualgemm_scale_span(DUALGEMM_SCALES_LINEAR, INT64_MAX, 5, 0, &bytes) ==
          DUALGEMM_OVERFLOW);
  C_CHECK(bytes == -1);
}

/* Row 33 of 34, block 4 of 5: tile 1 along k, (33 % 32)*16 + (33/32)*4 + 4%4 = 20, so 512 + 20. */
static void layouts_convert_both_ways(c_fail fail) {
  uint8_t linear[34 * 6], swizzled[1024], back[34 * 6];
  int i;
  memset(swizzled, 0xEE, sizeof swizzled);
  memset(back, 0xEE, sizeof back);
  for (i = 0; i < 34 * 6; ++i) linear[i] = (uint8_t)(i % 6 == 5 ? 0xEE : 1 + i % 125);
  C_CHECK_OK(dualgemm_convert_scales(linear, DUALGEMM_SCALES_LINEAR, 6, swizzled,
                                     DUALGEMM_SCALES_SWIZZLED_128X4, 0, 34, 5, 1));
  C_CHECK(swizzled[0] == linear[0] && swizzled[1] == linear[1] && swizzled[16] == linear[6]);
  C_CHECK(swizzled[512 + 20] == linear[33 * 6 + 4]);
  C_CHECK(swizzled[512 + 21] == 0 && swizzled[36] == 0 && swizzled[1023] == 0); /* padding */
  C_CHECK_OK(dualgemm_convert_scales(swizzled, DUALGEMM_SCALES_SWIZZLED_128X4, 0, back,
                                     DUALGEMM_SCALES_LINEAR, 6, 34, 5, 1));
  for (i = 0; i < 34 * 6; ++i) C_CHECK(i % 6 == 5 || back[i] == linear[i]);
  C_CHECK(dualgemm_convert_scales(NULL, 0, 0, back, 1, 0, 34, 5, 1) == DUALGEMM_INVALID_ARGUMENT);
  C_CHECK(dualgemm_convert_scales(linear, 7, 0, back, 1, 0, 34, 5, 1) == DUALGEMM_INVALID_ARGUMENT);
}

static void nibbles_swap(c_fail fail) {
  uint8_t bytes[3] = {0x12, 0xF0, 0x77}, out[3] = {0};
  C_CHECK_OK(dualgemm_swap_nibbles(bytes, out, 3));
  C_CHECK(out[0] == 0x21 && out[1] == 0x0F && out[2] == 0x77);
  C_CHECK_OK(dualgemm_swap_nibbles(out, out, 2));
  C_CHECK(out[0] == 0x12 && out[1] == 0xF0);
  C_CHECK(dualgemm_swap_nibbles(bytes, NULL, 3) == DUALGEMM_INVALID_ARGUMENT);
  C_CHECK(dualgemm_swap_nibbles(bytes, out, -1) == DUALGEMM_INVALID_ARGUMENT);
}

static void scales_are_inspected(c_fail fail) {
  /* 2 x 3, ld 4; the fourth column is no scale. */
  static const uint8_t scales[8] = {0x38, 0x00, 0x07, 0xFF, 0x01, 0xB8, 0x7F, 0x7F};
  dualgemm_scale_report report;
  report.struct_size = sizeof report;
  C_CHECK_OK(dualgemm_inspect_scales(scales, DUALGEMM_SCALES_LINEAR, 2, 3, 4, &report));
  C_CHECK(report.negative == 1 && report.nan == 1 && report.zero == 1 && report.subnormal == 2);
  C_CHECK(report.first_bad_row == 1 && report.first_bad_col == 1);
  C_CHECK_OK(dualgemm_inspect_scales(scales, DUALGEMM_SCALES_LINEAR, 1, 3, 4, &report));
  C_CHECK(report.first_bad_row == -1 && report.negative == 0 && report.nan == 0);
  C_CHECK_ERROR(dualgemm_inspect_scales(scales, 0, 2, 3, 4, NULL), DUALGEMM_INVALID_ARGUMENT,
                "report: null");
  C_CHECK(dualgemm_inspect_scales(NULL, 0, 2, 3, 4, &report) == DUALGEMM_INVALID_ARGUMENT);
}

/* ggml: 4 scales, then 32 bytes; in a 16-group the low nibbles are elements 0-7, the high ones
 * 8-15. */
static void ggml_blocks_convert_both_ways(c_fail fail) {
  uint8_t block[36], codes[32], scales[4], back[36];
  int i;
  for (i = 0; i < 4; ++i) block[i] = (uint8_t)(0x38 + i);
  for (i = 0; i < 32; ++i) block[4 + i] = (uint8_t)((i % 8) | 0x80 | (i % 8) << 4);
  C_CHECK_OK(dualgemm_experimental_from_ggml(block, 1, 64, codes, scales));
  C_CHECK(memcmp(scales, block, 4) == 0);
  C_CHECK(codes[0] == 0x10 && codes[3] == 0x76); /* elements 0, 1 and 6, 7 */
  C_CHECK(codes[4] == 0x98 && codes[7] == 0xFE); /* elements 8, 9 and 14, 15 */
  C_CHECK(memcmp(codes, codes + 8, 8) == 0 && memcmp(codes, codes + 24, 8) == 0);
  C_CHECK_OK(dualgemm_experimental_to_ggml(codes, scales, 1, 64, back));
  C_CHECK(memcmp(back, block, sizeof block) == 0);
  scales[2] = 0x7F;
  C_CHECK(dualgemm_experimental_to_ggml(codes, scales, 1, 64, back) == DUALGEMM_INVALID_ARGUMENT);
  C_CHECK(dualgemm_experimental_from_ggml(block, 1, 48, codes, scales) ==
          DUALGEMM_INVALID_ARGUMENT);
}

const c_case c_format_cases[] = {
    {"QuantizeFindsItsOwnScale", quantize_finds_its_own_scale},
    {"QuantizeTakesAGlobalScaleAndStrides", quantize_takes_a_global_scale_and_strides},
    {"FourOverSixKeepsTheLowerError", four_over_six_keeps_the_lower_error},
    {"QuantizeReadsHalfTypesAndNamesABadElement",
     quantize_reads_half_types_and_names_a_bad_element},
    {"SpansOfBothLayouts", spans_of_both_layouts},
    {"LayoutsConvertBothWays", layouts_convert_both_ways},
    {"NibblesSwap", nibbles_swap},
    {"ScalesAreInspected", scales_are_inspected},
    {"GgmlBlocksConvertBothWays", ggml_blocks_convert_both_ways},
    {NULL, NULL},
};
