/* quantize.h: structs of all ages, the two directions, conversion of scales, errors. */
#include "dualgemm/quantize.h"

#include <math.h>
#include <string.h>

#include "c_cases.h"

/* All 16 codes in order; the second row is twice the first. */
static const float kValues[32] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                  -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f,
                                  0.0f,  1.0f,  2.0f,  3.0f,  4.0f,  6.0f,  8.0f,  12.0f,
                                  -0.0f, -1.0f, -2.0f, -3.0f, -4.0f, -6.0f, -8.0f, -12.0f};
static const uint8_t kCodes[8] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE};

static dualgemm_quantize_problem two_rows(int32_t scaling) {
  dualgemm_quantize_problem problem;
  dualgemm_quantize_problem_init(&problem, sizeof problem);
  problem.rows = 2;
  problem.cols = 16;
  problem.x.type = DUALGEMM_F32;
  problem.scaling = scaling;
  return problem;
}

static void quantize_defaults(c_fail fail) {
  dualgemm_quantize_problem problem;
  dualgemm_quantize_buffers buffers;
  dualgemm_dequantize_buffers back;
  dualgemm_execution_options options;
  memset(&problem, 0xAB, sizeof problem);
  memset(&buffers, 0xAB, sizeof buffers);
  memset(&back, 0xAB, sizeof back);
  memset(&options, 0xAB, sizeof options);
  C_CHECK_OK(dualgemm_quantize_problem_init(&problem, sizeof problem));
  C_CHECK_OK(dualgemm_quantize_buffers_init(&buffers, sizeof buffers));
  C_CHECK_OK(dualgemm_dequantize_buffers_init(&back, sizeof back));
  C_CHECK_OK(dualgemm_execution_options_init(&options, sizeof options));
  C_CHECK(problem.struct_size == sizeof problem && problem.rows == 0 && problem.l == 1);
  C_CHECK(problem.x.type == DUALGEMM_F16 && problem.q.type == DUALGEMM_E2M1);
  C_CHECK(problem.scaling == DUALGEMM_SCALING_TENSOR && problem.four_over_six == 0);
  C_CHECK(buffers.x == NULL && buffers.stream == NULL && back.x == NULL);
  C_CHECK(options.device == DUALGEMM_DEVICE_AUTO && options.threads == 0);
  C_CHECK_ERROR(dualgemm_quantize_problem_init(&problem, 16), DUALGEMM_INVALID_ARGUMENT,
                "struct_size: 16");
}

static void a_row_has_a_scale_of_its_own(c_fail fail) {
  dualgemm_quantize_problem problem = two_rows(DUALGEMM_SCALING_ROW);
  dualgemm_quantize_buffers buffers;
  dualgemm_dequantize_buffers inverse;
  dualgemm_quantize_bytes sizes;
  uint8_t codes[16], scales[2];
  float found[2], back[32];
  int i;
  sizes.struct_size = sizeof sizes;
  C_CHECK_OK(dualgemm_quantize_sizes(&problem, DUALGEMM_DEVICE_CPU, &sizes));
  C_CHECK(sizes.x == 128 && sizes.codes == 16 && sizes.scales == 2 && sizes.global_scale == 8);
  C_CHECK(sizes.workspace == 0);
  dualgemm_quantize_buffers_init(&buffers, sizeof buffers);
  buffers.x = kValues;
  buffers.codes = codes;
  buffers.scales = scales;
  buffers.found_scale = found;
  C_CHECK_OK(dualgemm_quantize_tensor(&problem, &buffers, NULL));
  C_CHECK(memcmp(codes, kCodes, 8) == 0 && memcmp(codes + 8, kCodes, 8) == 0);
  C_CHECK(scales[0] == 0x7E && scales[1] == 0x7E);
  C_CHECK(found[0] == 6.0f / 2688.0f && found[1] == 12.0f / 2688.0f);
  dualgemm_dequantize_buffers_init(&inverse, sizeof inverse);
  inverse.codes = codes;
  inverse.scales = scales;
  inverse.global_scale = found;
  inverse.x = back;
  C_CHECK_OK(dualgemm_dequantize_tensor(&problem, &inverse, NULL));
  for (i = 0; i < 32; ++i) C_CHECK(fabsf(back[i] - kValues[i]) <= 1e-5f);
}

/* Only row 1 is wanted; a caller of the first version of the structs. */
static void groups_and_early_structs(c_fail fail) {
  dualgemm_quantize_problem problem = two_rows(DUALGEMM_SCALING_GIVEN);
  dualgemm_quantize_buffers buffers;
  dualgemm_execution_options options;
  uint8_t codes[16], scales[2];
  const float given = 1.0f / 64.0f;
  const int32_t experts[2] = {-1, 0};
  memset(codes, 0xEE, sizeof codes);
  memset(scales, 0xEE, sizeof scales);
  problem.grouping = DUALGEMM_GROUPING_CONTIGUOUS;
  dualgemm_quantize_buffers_init(&buffers, sizeof buffers);
  buffers.x = kValues;
  buffers.codes = codes;
  buffers.scales = scales;
  buffers.global_scale = &given;
  buffers.row_experts = experts;
  dualgemm_execution_options_init(&options, sizeof options);
  options.threads = 1;
  C_CHECK_OK(dualgemm_quantize_tensor(&problem, &buffers, &options));
  C_CHECK(codes[0] == 0xEE && scales[0] == 0xEE && memcmp(codes + 8, kCodes, 8) == 0);
  C_CHECK(scales[1] == 0x70); /* e4m3(64 * 12 / 6) */
  problem.grouping = DUALGEMM_GROUPING_NONE;
  memset((char*)&buffers + 48, 0xFF, sizeof buffers - 48);
  buffers.struct_size = 48;
  C_CHECK_OK(dualgemm_quantize_tensor(&problem, &buffers, NULL));
  C_CHECK(memcmp(codes, kCodes, 8) == 0 && scales[0] == 0x68);
}

static void quantize_errors(c_fail fail) {
  dualgemm_quantize_problem problem = two_rows(DUALGEMM_SCALING_TENSOR);
  dualgemm_quantize_buffers buffers;
  dualgemm_execution_options options;
  dualgemm_quantize_buffers_init(&buffers, sizeof buffers);
  C_CHECK_ERROR(dualgemm_quantize_tensor(&problem, &buffers, NULL), DUALGEMM_INVALID_ARGUMENT,
                "x: null; is required");
  C_CHECK_OK(dualgemm_quantize_validate(&problem, NULL));
  C_CHECK_ERROR(dualgemm_quantize_validate(NULL, NULL), DUALGEMM_INVALID_ARGUMENT, "problem: null");
  {
    const int32_t falling[2] = {1, 2};
    dualgemm_quantize_problem grouped = problem;
    dualgemm_quantize_buffers groups;
    dualgemm_quantize_buffers_init(&groups, sizeof groups);
    grouped.grouping = DUALGEMM_GROUPING_CONTIGUOUS;
    groups.expert_offsets = falling;
    C_CHECK_ERROR(dualgemm_quantize_validate(&grouped, &groups), DUALGEMM_INVALID_ARGUMENT,
                  "expert_offsets[0]: 1; must be 0");
  }
  C_CHECK_ERROR(dualgemm_quantize_tensor(NULL, &buffers, NULL), DUALGEMM_INVALID_ARGUMENT,
                "problem: null");
  C_CHECK_ERROR(dualgemm_dequantize_tensor(&problem, NULL, NULL), DUALGEMM_INVALID_ARGUMENT,
                "buffers: null");
  dualgemm_execution_options_init(&options, sizeof options);
  options.trusted_pointers = 2;
  C_CHECK_ERROR(dualgemm_quantize_tensor(&problem, &buffers, &options), DUALGEMM_INVALID_ARGUMENT,
                "options.trusted_pointers: 2");
  problem.scaling = 9;
  C_CHECK_ERROR(dualgemm_quantize_tensor(&problem, &buffers, NULL), DUALGEMM_INVALID_ARGUMENT,
                "scaling: 9");
  problem = two_rows(DUALGEMM_SCALING_TENSOR);
  problem.reserved = 1;
  C_CHECK_ERROR(dualgemm_quantize_tensor(&problem, &buffers, NULL), DUALGEMM_INVALID_ARGUMENT,
                "problem.reserved: 1");
  problem.reserved = 0;
  problem.has_column_factors = 2;
  C_CHECK_ERROR(dualgemm_quantize_tensor(&problem, &buffers, NULL), DUALGEMM_INVALID_ARGUMENT,
                "problem.has_column_factors: 2");
}

/* 16 ones times a Hadamard matrix over 4 are 4 and 15 zeros; factors come first. */
static void rows_are_transformed(c_fail fail) {
  dualgemm_transform_problem problem;
  dualgemm_transform_buffers buffers;
  float x[2][16], y[2][16], factors[16];
  int i;
  for (i = 0; i < 16; ++i) x[0][i] = x[1][i] = 1.0f, factors[i] = i < 8 ? 2.0f : -2.0f;
  C_CHECK_OK(dualgemm_transform_problem_init(&problem, sizeof problem));
  C_CHECK_OK(dualgemm_transform_buffers_init(&buffers, sizeof buffers));
  C_CHECK(problem.l == 1 && problem.hadamard == 0 && problem.x.type == DUALGEMM_F16);
  problem.rows = 2;
  problem.cols = 16;
  problem.x.type = problem.y.type = DUALGEMM_F32;
  problem.hadamard = 16;
  buffers.x = x;
  buffers.y = y;
  C_CHECK_OK(dualgemm_transform_rows(&problem, &buffers, NULL));
  C_CHECK(y[0][0] == 4.0f && y[1][0] == 4.0f);
  for (i = 1; i < 16; ++i) C_CHECK(y[0][i] == 0.0f && y[1][i] == 0.0f);
  problem.has_column_factors = 1;
  buffers.column_factors = factors;
  C_CHECK_OK(dualgemm_transform_rows(&problem, &buffers, NULL));
  for (i = 0; i < 16; ++i) C_CHECK(y[1][i] == (i == 8 ? 8.0f : 0.0f));
  problem.hadamard = 24;
  C_CHECK_ERROR(dualgemm_transform_rows(&problem, &buffers, NULL), DUALGEMM_INVALID_ARGUMENT,
                "transform.hadamard: 24");
  problem.hadamard = 0;
  problem.reserved = 1;
  C_CHECK_ERROR(dualgemm_transform_rows(&problem, &buffers, NULL), DUALGEMM_INVALID_ARGUMENT,
                "problem.reserved: 1");
  C_CHECK_ERROR(dualgemm_transform_rows(NULL, &buffers, NULL), DUALGEMM_INVALID_ARGUMENT,
                "problem: null");
}

static void tensor_scales_convert(c_fail fail) {
  dualgemm_scale_conversion conversion;
  uint8_t src[2][3] = {{1, 2, 3}, {4, 5, 6}}, dst[512];
  memset(&conversion, 0, sizeof conversion);
  memset(dst, 0xEE, sizeof dst);
  conversion.struct_size = sizeof conversion;
  conversion.rows = 2;
  conversion.sf_cols = 3;
  conversion.l = 1;
  conversion.to.layout = DUALGEMM_SCALES_SWIZZLED_128X4;
  C_CHECK_OK(dualgemm_convert_tensor_scales(&conversion, src[0], dst, NULL, NULL));
  C_CHECK(memcmp(dst, src[0], 3) == 0 && memcmp(dst + 16, src[1], 3) == 0);
  C_CHECK(dst[3] == 0 && dst[4] == 0 && dst[511] == 0);
  conversion.to.reserved = 1;
  C_CHECK_ERROR(dualgemm_convert_tensor_scales(&conversion, src[0], dst, NULL, NULL),
                DUALGEMM_INVALID_ARGUMENT, "conversion.to.reserved: 1");
}

const c_case c_quantize_cases[] = {
    {"QuantizeDefaults", quantize_defaults},
    {"ARowHasAScaleOfItsOwn", a_row_has_a_scale_of_its_own},
    {"GroupsAndEarlyStructs", groups_and_early_structs},
    {"QuantizeErrors", quantize_errors},
    {"RowsAreTransformed", rows_are_transformed},
    {"TensorScalesConvert", tensor_scales_convert},
    {NULL, NULL},
};
