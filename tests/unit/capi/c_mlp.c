/* mlp.h: defaults, runs, prepared weights, experts, errors. */
#include "dualgemm/mlp.h"

#include <string.h>

#include "c_cases.h"

enum { kRows = 3, kHidden = 64, kInner = 48 };

/* X is 1, all weights are: H = silu(64) * 64 * alpha_up = 64, Y = 48 * 64 * alpha_down = 48. */
typedef struct mlp_operands {
  uint16_t x[kRows * kHidden];
  uint8_t w[kHidden * kInner / 2], scales[kHidden * kInner / 16];
  float y[kRows * kHidden], bias[kHidden];
  dualgemm_mlp_problem problem;
  dualgemm_mlp_buffers buffers;
} mlp_operands;

static void set_up_mlp(mlp_operands* o) {
  int i;
  memset(o, 0, sizeof *o);
  for (i = 0; i < kRows * kHidden; ++i) o->x[i] = 0x3F80;
  for (i = 0; i < kHidden; ++i) o->bias[i] = 2.0f;
  memset(o->w, 0x22, sizeof o->w);
  memset(o->scales, 0x38, sizeof o->scales);
  dualgemm_mlp_problem_init(&o->problem, sizeof o->problem);
  dualgemm_mlp_buffers_init(&o->buffers, sizeof o->buffers);
  o->problem.m = kRows;
  o->problem.hidden = kHidden;
  o->problem.intermediate = kInner;
  o->problem.y.type = DUALGEMM_F32;
  o->buffers.x = o->x;
  o->buffers.gate = o->buffers.up = o->buffers.down = o->w;
  o->buffers.gate_scales = o->buffers.up_scales = o->buffers.down_scales = o->scales;
  o->buffers.alpha_up = o->buffers.alpha_down = 1.0f / 64;
  o->buffers.y = o->y;
}

static dualgemm_status run_operands(mlp_operands* o, const dualgemm_plan_options* options) {
  dualgemm_mlp* mlp = NULL;
  dualgemm_workspace* workspace = NULL;
  dualgemm_status status = dualgemm_mlp_create(&o->problem, options, &mlp);
  if (status == DUALGEMM_OK) status = dualgemm_mlp_workspace_create(mlp, &workspace);
  if (status == DUALGEMM_OK) {
    status = dualgemm_mlp_run(mlp, &o->buffers, dualgemm_workspace_data(workspace),
                              dualgemm_workspace_size(workspace));
  }
  dualgemm_workspace_destroy(workspace);
  dualgemm_mlp_destroy(mlp);
  return status;
}

static int y_is(const mlp_operands* o, int row, float want) {
  int i;
  for (i = 0; i < kHidden; ++i) {
    if (o->y[row * kHidden + i] != want) return 0;
  }
  return 1;
}

static void mlp_defaults(c_fail fail) {
  dualgemm_mlp_problem problem;
  dualgemm_mlp_buffers buffers;
  memset(&problem, 0xAB, sizeof problem);
  memset(&buffers, 0xAB, sizeof buffers);
  C_CHECK_OK(dualgemm_mlp_problem_init(&problem, sizeof problem));
  C_CHECK_OK(dualgemm_mlp_buffers_init(&buffers, sizeof buffers));
  C_CHECK(problem.struct_size == sizeof problem && problem.hidden == 0 && problem.l == 1);
  C_CHECK(problem.x.type == DUALGEMM_BF16 && problem.y.type == DUALGEMM_BF16);
  C_CHECK(problem.gate.type == DUALGEMM_E2M1 && problem.down.type == DUALGEMM_E2M1);
  C_CHECK(problem.x_scaling == DUALGEMM_SCALING_ROW && problem.act.kind == DUALGEMM_SILU);
  C_CHECK(problem.quantize_x == 0 && problem.quantize_h == 0 && problem.residual == 0);
  C_CHECK(buffers.struct_size == sizeof buffers && buffers.alpha_gate == 1.0f);
  C_CHECK(buffers.alpha_up == 1.0f && buffers.alpha_down == 1.0f);
  C_CHECK(buffers.h_global_scale == 1.0f && buffers.stream == NULL && buffers.y == NULL);
  C_CHECK_ERROR(dualgemm_mlp_problem_init(&problem, 24), DUALGEMM_INVALID_ARGUMENT,
                "problem.struct_size: 24");
  C_CHECK_ERROR(dualgemm_mlp_buffers_init(&buffers, 72), DUALGEMM_INVALID_ARGUMENT,
                "buffers.struct_size: 72");
}

static void a_whole_mlp(c_fail fail) {
  static mlp_operands o;
  const float one = 1.0f;
  int i;
  set_up_mlp(&o);
  C_CHECK_OK(run_operands(&o, NULL));
  C_CHECK(y_is(&o, 0, 48.0f) && y_is(&o, kRows - 1, 48.0f));
  /* Sixes, and H = 96 * 6, stay what they are in NVFP4. */
  for (i = 0; i < kRows * kHidden; ++i) o.x[i] = 0x40C0;
  o.buffers.alpha_gate = 0.25f;
  o.buffers.alpha_down = 1.0f / 512;
  o.buffers.x_global_scale = &one;
  o.problem.quantize_x = 1;
  o.problem.x_scaling = DUALGEMM_SCALING_GIVEN;
  o.problem.quantize_h = 1;
  C_CHECK_OK(run_operands(&o, NULL));
  C_CHECK(y_is(&o, 0, 54.0f) && y_is(&o, kRows - 1, 54.0f));
}

static void mlp_in_place(c_fail fail) {
  static mlp_operands o;
  static float zeros[kInner];
  set_up_mlp(&o);
  o.problem.residual = 1;
  o.problem.bias = DUALGEMM_BIAS_F32;
  o.buffers.bias_gate = o.buffers.bias_up = zeros;
  o.buffers.bias_down = o.bias;
  o.buffers.residual = o.y;
  o.y[0] = 100.0f;
  C_CHECK_OK(run_operands(&o, NULL));
  C_CHECK(o.y[0] == 150.0f && o.y[1] == 50.0f);
}

/* A caller of the first version: what lies behind y is not read. */
static void early_mlp_structs(c_fail fail) {
  static mlp_operands o;
  set_up_mlp(&o);
  memset((char*)&o.problem + 32, 0xFF, sizeof o.problem - 32);
  o.problem.struct_size = 32;
  memset((char*)&o.buffers + 80, 0xFF, sizeof o.buffers - 80);
  o.buffers.struct_size = 80;
  C_CHECK_OK(run_operands(&o, NULL));
  C_CHECK(((const uint16_t*)o.y)[0] == 0x4840); /* 64 * 64 * 64 * 48 in bf16 */
}

static void prepared_mlp(c_fail fail) {
  static mlp_operands o;
  dualgemm_plan_options options;
  dualgemm_buffers weights;
  dualgemm_prepared_view views[2];
  dualgemm_prepared *gate_up = NULL, *down = NULL;
  dualgemm_mlp* mlp = NULL;
  set_up_mlp(&o);
  dualgemm_plan_options_init(&options, sizeof options);
  dualgemm_buffers_init(&weights, sizeof weights);
  options.prepared = 1;
  C_CHECK_OK(dualgemm_mlp_create(&o.problem, &options, &mlp));
  C_CHECK_OK(dualgemm_mlp_gate_up_weights(mlp, &o.buffers, &weights));
  C_CHECK_OK(dualgemm_prepare(dualgemm_mlp_gate_up(mlp), &weights, &gate_up));
  C_CHECK_OK(dualgemm_mlp_down_weights(mlp, &o.buffers, &weights));
  C_CHECK_OK(dualgemm_prepare(dualgemm_mlp_down(mlp), &weights, &down));
  C_CHECK_OK(dualgemm_prepared_get_view(gate_up, &views[0]));
  C_CHECK_OK(dualgemm_prepared_get_view(down, &views[1]));
  C_CHECK_ERROR(run_operands(&o, &options), DUALGEMM_INVALID_ARGUMENT, "prepared_gate_up: null");
  o.buffers.gate = o.buffers.up = o.buffers.down = NULL;
  o.buffers.gate_scales = o.buffers.up_scales = o.buffers.down_scales = NULL;
  o.buffers.prepared_gate_up = &views[0];
  o.buffers.prepared_down = &views[1];
  C_CHECK_OK(run_operands(&o, &options));
  C_CHECK(y_is(&o, 0, 48.0f) && y_is(&o, kRows - 1, 48.0f));
  dualgemm_prepared_destroy(down);
  dualgemm_prepared_destroy(gate_up);
  dualgemm_mlp_destroy(mlp);
}

/* Rows 0 and 2 are expert 1's, row 1 is no expert's. */
static void experts_of_an_mlp(c_fail fail) {
  static mlp_operands o;
  static uint8_t w[2 * kHidden * kInner / 2], scales[2 * kHidden * kInner / 16];
  const int32_t experts[kRows] = {1, -1, 1};
  const float alpha_down[2] = {1.0f, 1.0f / 32};
  set_up_mlp(&o);
  memset(w, 0x22, sizeof w);
  memset(scales, 0x38, sizeof scales);
  o.problem.l = 2;
  o.problem.grouping = DUALGEMM_GROUPING_CONTIGUOUS;
  o.buffers.gate = o.buffers.up = o.buffers.down = w;
  o.buffers.gate_scales = o.buffers.up_scales = o.buffers.down_scales = scales;
  o.buffers.row_experts = experts;
  o.buffers.alpha_down_per_batch = alpha_down;
  C_CHECK_OK(run_operands(&o, NULL));
  C_CHECK(y_is(&o, 0, 96.0f) && y_is(&o, 1, 0.0f) && y_is(&o, 2, 96.0f));
}

static void mlp_explained(c_fail fail) {
  static mlp_operands o;
  static char text[8192];
  dualgemm_mlp* mlp = NULL;
  size_t required = 0;
  int64_t bytes = 0;
  set_up_mlp(&o);
  C_CHECK_OK(dualgemm_mlp_create(&o.problem, NULL, &mlp));
  C_CHECK_OK(dualgemm_mlp_explain(mlp, NULL, 0, &required));
  C_CHECK(required > 100 && required < sizeof text);
  C_CHECK_ERROR(dualgemm_mlp_explain(mlp, text, 10, NULL), DUALGEMM_INVALID_ARGUMENT, "capacity");
  C_CHECK_OK(dualgemm_mlp_explain(mlp, text, sizeof text, NULL));
  C_CHECK(strstr(text, "gated MLP: m 3, hidden 64, intermediate 48") != NULL);
  C_CHECK_OK(dualgemm_mlp_workspace_size(mlp, &bytes));
  C_CHECK(bytes >= kRows * kInner * 2 && bytes % 64 == 0);
  dualgemm_mlp_destroy(mlp);
}

/* Two experts with the same weights: each token's sum is 48 times its weights. */
static void a_routed_mlp(c_fail fail) {
  static const int64_t ids[kRows * 2] = {5, 1, 1, 0, 9, 9};
  static const int32_t map[6] = {-1, 0, -1, -1, -1, 1};
  static const float weights[kRows * 2] = {0.5f, 0.25f, 2.0f, 4.0f, 1.0f, 1.0f};
  static uint8_t w[kHidden * kInner], scales[kHidden * kInner / 8];
  mlp_operands o;
  set_up_mlp(&o);
  memset(w, 0x22, sizeof w);
  memset(scales, 0x38, sizeof scales);
  o.buffers.gate = o.buffers.up = o.buffers.down = w;
  o.buffers.gate_scales = o.buffers.up_scales = o.buffers.down_scales = scales;
  o.problem.l = 2;
  o.problem.top_k = 2;
  o.problem.named_experts = 6;
  o.problem.wide_ids = 1;
  o.buffers.topk_ids = ids;
  o.buffers.expert_map = map;
  o.buffers.topk_weights = weights;
  C_CHECK_OK(run_operands(&o, NULL));
  C_CHECK(y_is(&o, 0, 36.0f) && y_is(&o, 1, 96.0f) && y_is(&o, 2, 0.0f));
  o.problem.weights_on_input = 2;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "weights_on_input: 2");
  o.problem.weights_on_input = 0;
  o.problem.h_scaling = DUALGEMM_SCALING_TENSOR;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "h_scaling: tensor");
  o.problem.h_scaling = DUALGEMM_SCALING_GIVEN;
  o.problem.top_k = 0;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "top_k: 0");
}

static void mlp_errors(c_fail fail) {
  static mlp_operands o;
  dualgemm_mlp* mlp = (dualgemm_mlp*)&o;
  dualgemm_workspace* workspace = (dualgemm_workspace*)&o;
  dualgemm_buffers weights;
  int64_t bytes = 7;
  const int32_t too_many = 1000000;
  dualgemm_buffers_init(&weights, sizeof weights);
  set_up_mlp(&o);
  C_CHECK_ERROR(dualgemm_mlp_create(&o.problem, NULL, NULL), DUALGEMM_INVALID_ARGUMENT,
                "mlp: null");
  o.problem.hidden = 40;
  C_CHECK_ERROR(dualgemm_mlp_create(&o.problem, NULL, &mlp), DUALGEMM_INVALID_ARGUMENT,
                "hidden: 40; must be a positive multiple of 16");
  C_CHECK(mlp == NULL);
  o.problem.hidden = kHidden;
  o.problem.reserved = 1;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "problem.reserved: 1");
  o.problem.reserved = 0;
  o.problem.reserved_too = 1;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "problem.reserved_too: 1");
  o.problem.reserved_too = 0;
  o.problem.has_x_column_factors = 2;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "has_x_column_factors: 2");
  o.problem.has_x_column_factors = 0;
  o.problem.h_hadamard = 24;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "h_transform.hadamard: 24");
  o.problem.h_hadamard = 0;
  o.problem.has_h_column_factors = 1;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "h_column_factors: null");
  o.problem.has_h_column_factors = 0;
  o.problem.without_gate = 1;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "gate: not null");
  o.problem.without_gate = 2;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "without_gate: 2");
  o.problem.without_gate = 0;
  o.problem.quantize_h = 2;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "quantize_h: 2");
  o.problem.quantize_h = 1;
  o.buffers.h_global_scale = 0.0f;
  C_CHECK_ERROR(run_operands(&o, NULL), DUALGEMM_INVALID_ARGUMENT, "h_global_scale: 0");
  C_CHECK_OK(dualgemm_mlp_validate(&o.problem, NULL));
  C_CHECK_ERROR(dualgemm_mlp_validate(&o.problem, &o.buffers), DUALGEMM_INVALID_ARGUMENT,
                "h_global_scale: 0");
  o.buffers.h_global_scale = 1.0f;
  C_CHECK_OK(dualgemm_mlp_validate(&o.problem, &o.buffers));
  o.problem.grouping = DUALGEMM_GROUPING_MASKED;
  o.buffers.expert_rows = &too_many;
  C_CHECK_ERROR(dualgemm_mlp_validate(&o.problem, &o.buffers), DUALGEMM_INVALID_ARGUMENT,
                "expert_rows[0]: 1000000; must be 0 .. m");
  C_CHECK_ERROR(dualgemm_mlp_validate(NULL, NULL), DUALGEMM_INVALID_ARGUMENT, "problem: null");
  C_CHECK(y_is(&o, 0, 0.0f));
  C_CHECK_ERROR(dualgemm_mlp_run(NULL, &o.buffers, NULL, 0), DUALGEMM_INVALID_ARGUMENT,
                "mlp: null");
  C_CHECK_ERROR(dualgemm_mlp_workspace_size(NULL, &bytes), DUALGEMM_INVALID_ARGUMENT, "mlp: null");
  C_CHECK_ERROR(dualgemm_mlp_workspace_create(NULL, &workspace), DUALGEMM_INVALID_ARGUMENT,
                "mlp: null");
  C_CHECK_ERROR(dualgemm_mlp_explain(NULL, NULL, 0, NULL), DUALGEMM_INVALID_ARGUMENT, "mlp: null");
  C_CHECK_ERROR(dualgemm_mlp_down_weights(NULL, &o.buffers, &weights), DUALGEMM_INVALID_ARGUMENT,
                "mlp: null");
  C_CHECK(workspace == NULL && bytes == 7);
  C_CHECK(dualgemm_mlp_gate_up(NULL) == NULL && dualgemm_mlp_down(NULL) == NULL);
  dualgemm_mlp_destroy(NULL);
}

const c_case c_mlp_cases[] = {
    {"MlpDefaults", mlp_defaults}, {"AWholeMlp", a_whole_mlp},
    {"MlpInPlace", mlp_in_place},  {"EarlyMlpStructs", early_mlp_structs},
    {"PreparedMlp", prepared_mlp}, {"ExpertsOfAnMlp", experts_of_an_mlp},
    {"ARoutedMlp", a_routed_mlp},  {"MlpExplained", mlp_explained},
    {"MlpErrors", mlp_errors},     {NULL, NULL},
};
