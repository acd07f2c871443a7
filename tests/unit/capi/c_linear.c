/* linear.h: defaults, one call, plans and prepared weights of the dual problem, errors. */
#include "dualgemm/linear.h"

#include <stddef.h>
#include <string.h>

#include "c_cases.h"

enum { kRows = 3, kColumns = 40, kDepth = 32 };

/* Row j of W is 1 + j % 2 everywhere, A is 1: column j of D is 32 * (1 + j % 2). */
typedef struct operands {
  uint8_t a[kRows * kDepth / 2], a_scales[kRows * kDepth / 16];
  uint8_t w[kColumns * kDepth / 2], w_scales[kColumns * kDepth / 16];
  float d[kRows * kColumns], bias[kColumns];
  dualgemm_linear_problem problem;
  dualgemm_linear_buffers buffers;
} operands;

static void set_up(operands* o) {
  int j;
  memset(o, 0, sizeof *o);
  memset(o->a, 0x22, sizeof o->a);
  memset(o->a_scales, 0x38, sizeof o->a_scales);
  for (j = 0; j < kColumns; ++j) {
    memset(o->w + j * kDepth / 2, j % 2 == 0 ? 0x22 : 0x44, kDepth / 2);
    o->bias[j] = (float)j;
  }
  memset(o->w_scales, 0x38, sizeof o->w_scales);
  dualgemm_linear_problem_init(&o->problem, sizeof o->problem);
  dualgemm_linear_buffers_init(&o->buffers, sizeof o->buffers);
  o->problem.m = kRows;
  o->problem.n = kColumns;
  o->problem.k = kDepth;
  o->problem.d.type = DUALGEMM_F32;
  o->buffers.a = o->a;
  o->buffers.a_scales = o->a_scales;
  o->buffers.w = o->w;
  o->buffers.w_scales = o->w_scales;
  o->buffers.d = o->d;
}

/* D = factor * product + bias + before. */
static int is_right(const operands* o, float factor, float bias, float before) {
  int i, j;
  for (i = 0; i < kRows; ++i) {
    for (j = 0; j < kColumns; ++j) {
      const float want = factor * 32.0f * (float)(1 + j % 2) + bias * (float)j + before;
      if (o->d[i * kColumns + j] != want) return 0;
    }
  }
  return 1;
}

static void linear_defaults(c_fail fail) {
  dualgemm_linear_problem problem;
  dualgemm_linear_buffers buffers;
  memset(&problem, 0xAB, sizeof problem);
  memset(&buffers, 0xAB, sizeof buffers);
  C_CHECK_OK(dualgemm_linear_problem_init(&problem, sizeof problem));
  C_CHECK_OK(dualgemm_linear_buffers_init(&buffers, sizeof buffers));
  C_CHECK(problem.struct_size == sizeof problem && problem.n == 0 && problem.l == 1);
  C_CHECK(problem.a.type == DUALGEMM_E2M1 && problem.w.type == DUALGEMM_E2M1);
  C_CHECK(problem.d.type == DUALGEMM_F16 && problem.bias == DUALGEMM_BIAS_NONE);
  C_CHECK(problem.grouping == DUALGEMM_GROUPING_NONE && problem.residual == 0);
  C_CHECK(buffers.struct_size == sizeof buffers && buffers.alpha == 1.0f);
  C_CHECK(buffers.d_global_scale == 1.0f && buffers.w == NULL && buffers.stream == NULL);
  C_CHECK_ERROR(dualgemm_linear_problem_init(&problem, 24), DUALGEMM_INVALID_ARGUMENT,
                "problem.struct_size: 24");
  C_CHECK_ERROR(dualgemm_linear_buffers_init(&buffers, 64), DUALGEMM_INVALID_ARGUMENT,
                "buffers.struct_size: 64");
}

static void one_product_in_one_call(c_fail fail) {
  static operands o;
  dualgemm_run_info info;
  set_up(&o);
  info.struct_size = sizeof info;
  C_CHECK_OK(dualgemm_linear_validate(&o.problem, &o.buffers));
  C_CHECK_OK(dualgemm_linear_run_once(&o.problem, &o.buffers, NULL, &info));
  C_CHECK(is_right(&o, 1.0f, 0.0f, 0.0f) && info.threads >= 1);
  o.problem.bias = DUALGEMM_BIAS_F32;
  o.problem.residual = 1;
  o.buffers.bias = o.bias;
  o.buffers.alpha = 0.5f;
  o.buffers.residual = o.d; /* in place */
  memset(o.d, 0, sizeof o.d);
  o.d[1] = 7.0f;
  C_CHECK_OK(dualgemm_linear_run_once(&o.problem, &o.buffers, NULL, NULL));
  o.d[1] -= 7.0f;
  C_CHECK(is_right(&o, 0.5f, 1.0f, 0.0f));
}

/* A caller of the first version: what lies behind d is not read. */
static void early_linear_structs(c_fail fail) {
  static operands o;
  set_up(&o);
  o.problem.d.type = DUALGEMM_F16;
  memset((char*)&o.problem + 32, 0xFF, sizeof o.problem - 32);
  o.problem.struct_size = 32;
  memset((char*)&o.buffers + 72, 0xFF, sizeof o.buffers - 72);
  o.buffers.struct_size = 72;
  C_CHECK_OK(dualgemm_linear_run_once(&o.problem, &o.buffers, NULL, NULL));
  C_CHECK(((const uint16_t*)o.d)[0] == 0x5000 && ((const uint16_t*)o.d)[1] == 0x5400);
}

/* 32 and 64 without one, whose sigmoid is 1; the struct of before has none. */
static void activations(c_fail fail) {
  static operands o;
  dualgemm_problem dual;
  set_up(&o);
  o.problem.d.type = DUALGEMM_F16;
  C_CHECK(o.problem.act.kind == DUALGEMM_IDENTITY);
  o.problem.act.kind = DUALGEMM_SIGMOID;
  C_CHECK_OK(dualgemm_linear_run_once(&o.problem, &o.buffers, NULL, NULL));
  C_CHECK(((const uint16_t*)o.d)[0] == 0x3C00 && ((const uint16_t*)o.d)[1] == 0x3C00);
  dualgemm_problem_init(&dual, sizeof dual);
  C_CHECK_OK(dualgemm_linear_dual_problem(&o.problem, &dual));
  C_CHECK(dual.combine == DUALGEMM_COMBINE_ACTIVATED_SIDE_BY_SIDE);
  C_CHECK(dual.act.kind == DUALGEMM_SIGMOID);
  o.problem.act.kind = DUALGEMM_SWIGLU_OAI;
  C_CHECK(dualgemm_linear_validate(&o.problem, NULL) == DUALGEMM_INVALID_ARGUMENT);
  o.problem.act.kind = 99;
  C_CHECK(dualgemm_linear_validate(&o.problem, NULL) == DUALGEMM_INVALID_ARGUMENT);
  memset(&o.problem.act, 0xFF, sizeof o.problem.act);
  o.problem.struct_size = offsetof(dualgemm_linear_problem, act);
  C_CHECK_OK(dualgemm_linear_run_once(&o.problem, &o.buffers, NULL, NULL));
  C_CHECK(((const uint16_t*)o.d)[0] == 0x5000 && ((const uint16_t*)o.d)[1] == 0x5400);
}

static void prepared_halves(c_fail fail) {
  static operands o;
  dualgemm_problem dual;
  dualgemm_buffers buffers;
  dualgemm_plan_options options;
  dualgemm_plan* plan = NULL;
  dualgemm_prepared* prepared = NULL;
  dualgemm_prepared_view view;
  set_up(&o);
  dualgemm_problem_init(&dual, sizeof dual);
  dualgemm_buffers_init(&buffers, sizeof buffers);
  dualgemm_plan_options_init(&options, sizeof options);
  options.prepared = 1;
  C_CHECK_OK(dualgemm_linear_dual_problem(&o.problem, &dual));
  C_CHECK(dual.combine == DUALGEMM_COMBINE_SIDE_BY_SIDE && dual.up_column == 16 && dual.n == 24);
  C_CHECK_OK(dualgemm_linear_dual_buffers(&o.problem, &o.buffers, &buffers));
  C_CHECK((const uint8_t*)buffers.up == o.w + 16 * kDepth / 2);
  C_CHECK_OK(dualgemm_validate(&dual, &buffers));
  C_CHECK_OK(dualgemm_linear_plan_create(&o.problem, &options, &plan));
  C_CHECK_OK(dualgemm_prepare(plan, &buffers, &prepared));
  o.buffers.w = NULL;
  o.buffers.w_scales = NULL;
  o.buffers.prepared = prepared;
  C_CHECK_OK(dualgemm_linear_dual_buffers(&o.problem, &o.buffers, &buffers));
  C_CHECK(buffers.prepared == prepared && buffers.gate == NULL && buffers.up == NULL);
  C_CHECK_OK(dualgemm_linear_run_once(&o.problem, &o.buffers, NULL, NULL));
  C_CHECK(is_right(&o, 1.0f, 0.0f, 0.0f));
  memset(o.d, 0, sizeof o.d);
  C_CHECK_OK(dualgemm_prepared_get_view(prepared, &view));
  o.buffers.prepared = NULL;
  o.buffers.prepared_view = &view;
  C_CHECK_OK(dualgemm_linear_run_once(&o.problem, &o.buffers, NULL, NULL));
  C_CHECK(is_right(&o, 1.0f, 0.0f, 0.0f));
  dualgemm_prepared_destroy(prepared);
  dualgemm_plan_destroy(plan);
}

/* Rows 0 and 2 are expert 0's and 1's, row 1 is no expert's. */
static void linear_rows_name_their_experts(c_fail fail) {
  static operands o;
  static uint8_t w[2 * kColumns * kDepth / 2], w_scales[2 * kColumns * kDepth / 16];
  const int32_t experts[kRows] = {0, -1, 1};
  set_up(&o);
  memcpy(w, o.w, sizeof o.w);
  memset(w + sizeof o.w, 0x44, sizeof o.w);
  memset(w_scales, 0x38, sizeof w_scales);
  o.problem.l = 2;
  o.problem.grouping = DUALGEMM_GROUPING_CONTIGUOUS;
  o.buffers.w = w;
  o.buffers.w_scales = w_scales;
  o.buffers.row_experts = experts;
  o.d[kColumns] = -1.0f;
  C_CHECK_OK(dualgemm_linear_run_once(&o.problem, &o.buffers, NULL, NULL));
  C_CHECK(o.d[0] == 32.0f && o.d[1] == 64.0f && o.d[kColumns] == -1.0f);
  C_CHECK(o.d[2 * kColumns] == 64.0f && o.d[3 * kColumns - 1] == 64.0f);
}

static void linear_errors(c_fail fail) {
  static operands o;
  dualgemm_problem dual;
  dualgemm_plan* plan = (dualgemm_plan*)&o;
  set_up(&o);
  C_CHECK_ERROR(dualgemm_linear_validate(NULL, NULL), DUALGEMM_INVALID_ARGUMENT, "problem: null");
  C_CHECK_ERROR(dualgemm_linear_run_once(&o.problem, NULL, NULL, NULL), DUALGEMM_INVALID_ARGUMENT,
                "buffers: null");
  o.buffers.w = NULL;
  C_CHECK_ERROR(dualgemm_linear_validate(&o.problem, &o.buffers), DUALGEMM_INVALID_ARGUMENT,
                "w: null; is required");
  C_CHECK_ERROR(dualgemm_linear_dual_problem(&o.problem, NULL), DUALGEMM_INVALID_ARGUMENT,
                "dual: null");
  dualgemm_problem_init(&dual, sizeof dual);
  dual.struct_size = sizeof dual - 24; /* without the fields that make it what it is */
  C_CHECK_ERROR(dualgemm_linear_dual_problem(&o.problem, &dual), DUALGEMM_INVALID_ARGUMENT,
                "dual.struct_size: 240");
  o.problem.residual = 2;
  C_CHECK_ERROR(dualgemm_linear_validate(&o.problem, NULL), DUALGEMM_INVALID_ARGUMENT,
                "residual: 2; must be 0 or 1");
  o.problem.residual = 0;
  o.problem.k = 24;
  C_CHECK_ERROR(dualgemm_linear_plan_create(&o.problem, NULL, &plan), DUALGEMM_INVALID_ARGUMENT,
                "k: 24");
  C_CHECK(plan == NULL);
}

const c_case c_linear_cases[] = {
    {"LinearDefaults", linear_defaults},
    {"OneProductInOneCall", one_product_in_one_call},
    {"EarlyLinearStructs", early_linear_structs},
    {"Activations", activations},
    {"PreparedHalves", prepared_halves},
    {"LinearRowsNameTheirExperts", linear_rows_name_their_experts},
    {"LinearErrors", linear_errors},
    {NULL, NULL},
};
