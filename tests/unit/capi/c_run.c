/* Plans, prepared weights and runs on problems whose results follow in one line of arithmetic. */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "c_cases.h"
#include "dualgemm/dualgemm.h"

/* Two tokens, three neurons, k = 16. All codes of A and Up are 1, those of Gate 1/2, so with the
 * block scales sa, sg, su:  g = 16*sa*sg/2 = 8*sa*sg,  u = 16*sa*su.  sa = {1, 2}, sg = {1, 1/2,
 * 2}, su = {1, 1, 1/2}: with the identity g*u = 128*sa^2*sg*su = {128, 64, 128}, {512, 256, 512}.
 */
typedef struct small_case {
  uint8_t a[2 * 8], gate[3 * 8], up[3 * 8];
  uint8_t a_scales[2], gate_scales[3], up_scales[3];
  uint16_t d[2 * 3 + 1];
  dualgemm_problem problem;
  dualgemm_buffers buffers;
} small_case;

enum { kScaleHalf = 0x30, kScaleOne = 0x38, kScaleTwo = 0x40, kCanary = 0xABCD };

static const uint16_t kIdentityResult[6] = {0x5800, 0x5400, 0x5800, 0x6000, 0x5C00, 0x6000};

static void fill_small_case(small_case* c, int32_t activation) {
  memset(c->a, 0x22, sizeof c->a);
  memset(c->gate, 0x11, sizeof c->gate);
  memset(c->up, 0x22, sizeof c->up);
  c->a_scales[0] = kScaleOne;
  c->a_scales[1] = kScaleTwo;
  c->gate_scales[0] = kScaleOne;
  c->gate_scales[1] = kScaleHalf;
  c->gate_scales[2] = kScaleTwo;
  c->up_scales[0] = c->up_scales[1] = kScaleOne;
  c->up_scales[2] = kScaleHalf;
  memset(c->d, 0xFF, sizeof c->d);
  c->d[6] = kCanary;
  dualgemm_problem_init(&c->problem, sizeof c->problem);
  c->problem.m = 2;
  c->problem.n = 3;
  c->problem.k = 16;
  c->problem.act.kind = activation;
  dualgemm_buffers_init(&c->buffers, sizeof c->buffers);
  c->buffers.a = c->a;
  c->buffers.a_scales = c->a_scales;
  c->buffers.gate = c->gate;
  c->buffers.gate_scales = c->gate_scales;
  c->buffers.up = c->up;
  c->buffers.up_scales = c->up_scales;
  c->buffers.d = c->d;
}

static int is_identity_result(const small_case* c) {
  return memcmp(c->d, kIdentityResult, sizeof kIdentityResult) == 0 && c->d[6] == kCanary;
}

static void one_call_computes(c_fail fail) {
  small_case c;
  dualgemm_run_info info;
  fill_small_case(&c, DUALGEMM_IDENTITY);
  memset(&info, 0xAB, sizeof info);
  info.struct_size = sizeof info;
  C_CHECK_OK(dualgemm_validate(&c.problem, &c.buffers));
  C_CHECK_OK(dualgemm_run_once(&c.problem, &c.buffers, NULL, &info));
  C_CHECK(is_identity_result(&c));
  C_CHECK(info.isa > DUALGEMM_ISA_AUTO && strncmp(dualgemm_isa_name(info.isa), "sm", 2) != 0);
  C_CHECK(info.threads >= 1 && info.regime >= 0 && info.regime <= DUALGEMM_REGIME_TILE);
  C_CHECK(info.reserved == 0 && info.intermediate_bytes >= 0);
  /* 4 * 1/2 = 2 times as much: alphas act on g and u. */
  memset(c.d, 0xFF, sizeof kIdentityResult);
  c.buffers.alpha_gate = 4.0f;
  c.buffers.alpha_up = 0.5f;
  C_CHECK_OK(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL));
  C_CHECK(c.d[0] == 0x5C00 && c.d[3] == 0x6400); /* 256, 1024 */
}

/* g = 8, u = 16: 8/(1 + exp(-8)) * 16 = 127.957 */
static void silu_is_the_default(c_fail fail) {
  small_case c;
  float d[6];
  fill_small_case(&c, DUALGEMM_SILU);
  c.problem.d.type = DUALGEMM_F32;
  c.buffers.d = d;
  C_CHECK_OK(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL));
  C_CHECK(fabs(d[0] - 128.0 / (1.0 + exp(-8.0))) <= 1e-4);
  C_CHECK(fabs(d[1] - 64.0 / (1.0 + exp(-4.0))) <= 1e-4);
}

/* Plan, prepared weights if the strategy demands them, workspace, run. */
static void run_with_strategy(c_fail fail, small_case* c, int32_t strategy) {
  dualgemm_plan_options options;
  dualgemm_plan_info info;
  dualgemm_plan* plan = NULL;
  dualgemm_prepared* prepared = NULL;
  void* workspace = NULL;
  dualgemm_plan_options_init(&options, sizeof options);
  options.strategy = strategy;
  C_CHECK_OK(dualgemm_plan_create(&c->problem, &options, &plan));
  info.struct_size = sizeof info;
  C_CHECK_OK(dualgemm_plan_get_info(plan, &info));
  C_CHECK(info.strategy == strategy);
  C_CHECK_OK(dualgemm_run_once(&c->problem, &c->buffers, &options, NULL));
  C_CHECK(is_identity_result(c));
  memset(c->d, 0xFF, sizeof kIdentityResult);
  C_CHECK(posix_memalign(&workspace, 64, (size_t)info.workspace_bytes + 64) == 0);
  if (info.prepared) {
    C_CHECK_ERROR(dualgemm_run(plan, &c->buffers, workspace, info.workspace_bytes, NULL),
                  DUALGEMM_INVALID_ARGUMENT, "prepared: null");
    C_CHECK_OK(dualgemm_prepare(plan, &c->buffers, &prepared));
    c->buffers.prepared = prepared;
  }
  C_CHECK_OK(dualgemm_run(plan, &c->buffers, workspace, info.workspace_bytes, NULL));
  C_CHECK(is_identity_result(c));
  free(workspace);
  dualgemm_prepared_destroy(prepared);
  dualgemm_plan_destroy(plan);
}

static void every_strategy_computes(c_fail fail) {
  int32_t strategies[16];
  size_t count = 0, i;
  C_CHECK_OK(dualgemm_experimental_strategies(NULL, 0, &count));
  C_CHECK(count >= 7 && count <= 16);
  C_CHECK_ERROR(dualgemm_experimental_strategies(strategies, 2, &count), DUALGEMM_INVALID_ARGUMENT,
                "capacity: 2");
  C_CHECK_OK(dualgemm_experimental_strategies(strategies, 16, &count));
  for (i = 0; i < count; ++i) {
    small_case c;
    fill_small_case(&c, DUALGEMM_IDENTITY);
    run_with_strategy(fail, &c, strategies[i]);
  }
}

static void a_plan_describes_itself_and_runs(c_fail fail) {
  small_case c;
  dualgemm_plan_options options;
  dualgemm_plan* plan = NULL;
  dualgemm_plan_info info;
  char text[4096], short_text[4] = "abc";
  size_t required = 0, explain_required = 0;
  int64_t bytes = -1;
  void* workspace = NULL;
  fill_small_case(&c, DUALGEMM_IDENTITY);
  dualgemm_plan_options_init(&options, sizeof options);
  options.strategy = DUALGEMM_STRATEGY_TWO_PASS; /* has intermediates, hence a workspace */
  options.threads = 1;
  C_CHECK_OK(dualgemm_plan_create(&c.problem, &options, &plan));
  if (plan == NULL) return;
  info.struct_size = sizeof info;
  C_CHECK_OK(dualgemm_plan_get_info(plan, &info));
  C_CHECK(info.strategy == DUALGEMM_STRATEGY_TWO_PASS && info.device == DUALGEMM_DEVICE_CPU);
  C_CHECK(info.threads == 1 && info.prepared == 0 && info.isa > DUALGEMM_ISA_AUTO);
  C_CHECK_OK(dualgemm_plan_workspace_size(plan, &bytes));
  C_CHECK(bytes == info.workspace_bytes && bytes > 0);

  C_CHECK_OK(dualgemm_plan_config(plan, NULL, 0, &required));
  C_CHECK(required > 10 && required <= sizeof text);
  C_CHECK_OK(dualgemm_plan_config(plan, text, required, NULL));
  C_CHECK(strlen(text) + 1 == required && strstr(text, "cpu_") == text);
  C_CHECK(strstr(text, "two_pass") != NULL);
  C_CHECK_OK(dualgemm_plan_explain(plan, text, sizeof text, &explain_required));
  C_CHECK(strlen(text) + 1 == explain_required && strstr(text, "two_pass") != NULL);
  required = 0;
  C_CHECK_ERROR(dualgemm_plan_explain(plan, short_text, sizeof short_text, &required),
                DUALGEMM_INVALID_ARGUMENT, "capacity: 4");
  C_CHECK(required == explain_required && strcmp(short_text, "abc") == 0);

  C_CHECK(posix_memalign(&workspace, 64, (size_t)bytes) == 0);
  C_CHECK_ERROR(dualgemm_run(plan, &c.buffers, workspace, bytes - 1, NULL),
                DUALGEMM_WORKSPACE_TOO_SMALL, "workspace");
  C_CHECK(dualgemm_run(plan, &c.buffers, NULL, bytes, NULL) != DUALGEMM_OK);
  C_CHECK(c.d[0] == 0xFFFF); /* nothing written on error */
  C_CHECK_OK(dualgemm_run(plan, &c.buffers, workspace, bytes, NULL));
  C_CHECK(is_identity_result(&c));
  free(workspace);
  dualgemm_plan_destroy(plan);
}

static void weights_are_prepared_once(c_fail fail) {
  small_case c;
  dualgemm_plan_options options;
  dualgemm_plan* plan = NULL;
  dualgemm_prepared* prepared = NULL;
  dualgemm_plan_info info;
  void* workspace = NULL;
  int64_t bytes = -1;
  fill_small_case(&c, DUALGEMM_IDENTITY);
  dualgemm_plan_options_init(&options, sizeof options);
  options.strategy = DUALGEMM_STRATEGY_CACHED;
  options.prepared = 1;
  C_CHECK_OK(dualgemm_plan_create(&c.problem, &options, &plan));
  if (plan == NULL) return;
  info.struct_size = sizeof info;
  C_CHECK_OK(dualgemm_plan_get_info(plan, &info));
  C_CHECK(info.prepared == 1 && info.prepared_bytes > 0);
  C_CHECK_OK(dualgemm_prepare(plan, &c.buffers, &prepared));
  C_CHECK_OK(dualgemm_prepared_size(prepared, &bytes));
  C_CHECK(bytes == info.prepared_bytes);
  memset(c.gate, 0, sizeof c.gate); /* no longer needed */
  c.buffers.gate = c.buffers.up = NULL;
  c.buffers.gate_scales = c.buffers.up_scales = NULL;
  C_CHECK(posix_memalign(&workspace, 64, (size_t)info.workspace_bytes + 64) == 0);
  C_CHECK(dualgemm_run(plan, &c.buffers, workspace, info.workspace_bytes, NULL) ==
          DUALGEMM_INVALID_ARGUMENT); /* neither weights nor prepared ones */
  c.buffers.prepared = prepared;
  C_CHECK_OK(dualgemm_run(plan, &c.buffers, workspace, info.workspace_bytes, NULL));
  C_CHECK(is_identity_result(&c));
  free(workspace);
  dualgemm_prepared_destroy(prepared);
  dualgemm_plan_destroy(plan);
}

/* Bytes of the caller's, moved in between; and what their functions refuse. */
static void prepared_weights_are_bytes(c_fail fail) {
  const dualgemm_status invalid = DUALGEMM_INVALID_ARGUMENT;
  small_case c;
  dualgemm_plan_options options;
  dualgemm_plan* plan = NULL;
  dualgemm_prepared* handle = NULL;
  dualgemm_plan_info info;
  dualgemm_prepared_descriptor made, read;
  dualgemm_prepared_view view, part, of_handle;
  void *memory = NULL, *moved = NULL, *workspace = NULL;
  fill_small_case(&c, DUALGEMM_IDENTITY);
  dualgemm_plan_options_init(&options, sizeof options);
  options.prepared = 1;
  C_CHECK_OK(dualgemm_plan_create(&c.problem, &options, &plan));
  if (plan == NULL) return;
  info.struct_size = sizeof info;
  C_CHECK_OK(dualgemm_plan_get_info(plan, &info));
  C_CHECK_OK(dualgemm_plan_prepared_descriptor(plan, &made));
  C_CHECK(made.format == DUALGEMM_PREPARED_CPU_PANELS && made.version == 1 && made.n == 3);
  C_CHECK(made.k == 16 && made.l == 1 && made.alignment == 64 && made.expert_bytes == made.bytes);
  C_CHECK(made.bytes == info.prepared_bytes && made.bytes % 256 == 0);
  C_CHECK(strcmp(dualgemm_prepared_format_name(made.format), "cpu_panels") == 0);
  C_CHECK(posix_memalign(&memory, 64, (size_t)made.bytes) == 0);
  C_CHECK(posix_memalign(&moved, 64, (size_t)made.bytes) == 0);
  C_CHECK(posix_memalign(&workspace, 64, (size_t)info.workspace_bytes + 64) == 0);
  C_CHECK_ERROR(dualgemm_prepare_into(plan, &c.buffers, memory, made.bytes - 1), invalid,
                "prepared: ");
  C_CHECK_ERROR(dualgemm_prepare_into(plan, &c.buffers, NULL, made.bytes), invalid,
                "prepared: null");
  C_CHECK_OK(dualgemm_prepare_into(plan, &c.buffers, memory, made.bytes));
  memcpy(moved, memory, (size_t)made.bytes);
  C_CHECK_OK(dualgemm_prepare(plan, &c.buffers, &handle));
  C_CHECK_OK(dualgemm_prepared_get_view(handle, &of_handle));
  C_CHECK(memcmp(&of_handle.descriptor, &made, sizeof made) == 0);
  C_CHECK(memcmp(of_handle.memory, memory, (size_t)made.bytes) == 0);
  dualgemm_prepared_destroy(handle);
  memset(memory, 0, (size_t)made.bytes);
  memset(c.gate, 0, sizeof c.gate); /* no longer needed */
  c.buffers.gate = c.buffers.up = NULL;
  c.buffers.gate_scales = c.buffers.up_scales = NULL;

  C_CHECK_OK(dualgemm_prepared_read_header(moved, made.bytes, &read));
  C_CHECK(memcmp(&read, &made, sizeof made) == 0);
  C_CHECK_ERROR(dualgemm_prepared_open(moved, made.bytes - 256, &view), invalid, "whole parts");
  C_CHECK_ERROR(dualgemm_prepared_open(memory, made.bytes, &view), invalid, "must begin with");
  C_CHECK_OK(dualgemm_prepared_open(moved, made.bytes, &view));
  C_CHECK(view.memory == moved && view.bytes == made.bytes);
  C_CHECK_ERROR(dualgemm_prepared_experts(&view, 1, 1, &part), invalid, "first: 1");
  C_CHECK_OK(dualgemm_prepared_experts(&view, 0, 1, &part));
  C_CHECK(memcmp(&part, &view, sizeof view) == 0);
  c.buffers.prepared_view = &view;
  C_CHECK_OK(dualgemm_run(plan, &c.buffers, workspace, info.workspace_bytes, NULL));
  C_CHECK(is_identity_result(&c));
  memset(c.d, 0xFF, sizeof kIdentityResult);
  C_CHECK_OK(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL));
  C_CHECK(is_identity_result(&c));

  memset(c.d, 0xFF, sizeof kIdentityResult);
  view.descriptor.version = 2;
  C_CHECK_ERROR(dualgemm_run(plan, &c.buffers, workspace, info.workspace_bytes, NULL), invalid,
                "prepared: cpu_panels version 2; this library knows version 1");
  C_CHECK_ERROR(dualgemm_prepared_borrow(&view, &handle), invalid, "version 2");
  C_CHECK(handle == NULL && c.d[0] == 0xFFFF);
  view.descriptor.version = 1;
  C_CHECK_OK(dualgemm_prepared_borrow(&view, &handle));
  c.buffers.prepared = handle;
  C_CHECK_ERROR(dualgemm_run(plan, &c.buffers, workspace, info.workspace_bytes, NULL), invalid,
                "prepared: a handle and a view");
  c.buffers.prepared_view = NULL;
  C_CHECK_OK(dualgemm_run(plan, &c.buffers, workspace, info.workspace_bytes, NULL));
  C_CHECK(is_identity_result(&c));
  /* A caller who was compiled before there were views. */
  c.buffers.prepared_view = &view;
  c.buffers.struct_size = offsetof(dualgemm_buffers, prepared_view);
  C_CHECK_OK(dualgemm_run(plan, &c.buffers, workspace, info.workspace_bytes, NULL));
  dualgemm_prepared_destroy(handle);
  dualgemm_plan_destroy(plan);
  free(workspace);
  free(moved);
  free(memory);
}

/* What a caller allocates by dualgemm_operand_sizes() is what the layouts need. */
static void operand_sizes_are_those_of_the_layouts(c_fail fail) {
  dualgemm_problem problem;
  dualgemm_operand_bytes sizes;
  dualgemm_problem_init(&problem, sizeof problem);
  sizes.struct_size = sizeof sizes;
  problem.m = 130;
  problem.n = 32;
  problem.k = 80; /* 5 scales a row */
  problem.l = 2;
  problem.a.scale_layout = DUALGEMM_SCALES_SWIZZLED_128X4;
  problem.d.type = DUALGEMM_E2M1;
  problem.gate.ld = 160;
  C_CHECK_OK(dualgemm_operand_sizes(&problem, &sizes));
  C_CHECK(sizes.a == 2 * 130 * 40 && sizes.a_scales == 2 * (2 * 2 * 512));
  C_CHECK(sizes.gate == (32 + 31) * 80 + 40 && sizes.gate_scales == 2 * 32 * 5);
  C_CHECK(sizes.up == 2 * 32 * 40 && sizes.up_scales == 2 * 32 * 5);
  C_CHECK(sizes.d == 2 * 130 * 16 && sizes.d_scales == 2 * 130 * 2);
  C_CHECK(sizes.a_row_scale == 2 * 130 * 4);
  /* 130 rows over 2 experts in 128-row tiles: 1 + 129 takes 3 tiles, the most possible. */
  problem.grouping = DUALGEMM_GROUPING_CONTIGUOUS;
  problem.a.type = DUALGEMM_E2M1;
  C_CHECK_OK(dualgemm_operand_sizes(&problem, &sizes));
  C_CHECK(sizes.a == 130 * 40 && sizes.a_scales == 3 * 2 * 512);
  C_CHECK(sizes.d == 130 * 16 && sizes.d_scales == 130 * 2 && sizes.a_row_scale == 130 * 4);
  /* fp16 activations have no scales. */
  problem.grouping = DUALGEMM_GROUPING_NONE;
  problem.a.type = DUALGEMM_F16;
  problem.d.type = DUALGEMM_F32;
  C_CHECK_OK(dualgemm_operand_sizes(&problem, &sizes));
  C_CHECK(sizes.a == 2 * 130 * 80 * 2 && sizes.a_scales == 0);
  C_CHECK(sizes.d == 2 * 130 * 32 * 4 && sizes.d_scales == 0);
  problem.k = 8;
  C_CHECK(dualgemm_operand_sizes(&problem, &sizes) == DUALGEMM_INVALID_ARGUMENT);
}

/* The same weights for both experts, but expert 1's alphas give 2*3 = 6 times as much. */
static void experts_have_their_own_alphas(c_fail fail) {
  static const float gate_alphas[2] = {1.0f, 2.0f}, up_alphas[2] = {1.0f, 3.0f};
  static const int32_t offsets[3] = {0, 1, 2}, rows[2] = {0, 1};
  small_case c;
  uint8_t gate[2 * 24], up[2 * 24], gate_scales[6], up_scales[6], a[4 * 8], a_scales[4];
  float d[4 * 3];
  int i;
  fill_small_case(&c, DUALGEMM_IDENTITY);
  for (i = 0; i < 2; ++i) {
    memcpy(gate + 24 * i, c.gate, 24);
    memcpy(up + 24 * i, c.up, 24);
    memcpy(gate_scales + 3 * i, c.gate_scales, 3);
    memcpy(up_scales + 3 * i, c.up_scales, 3);
    memcpy(a + 16 * i, c.a, 16);
    memcpy(a_scales + 2 * i, c.a_scales, 2);
  }
  c.problem.l = 2;
  c.problem.d.type = DUALGEMM_F32;
  c.buffers.a = a;
  c.buffers.a_scales = a_scales;
  c.buffers.gate = gate;
  c.buffers.up = up;
  c.buffers.gate_scales = gate_scales;
  c.buffers.up_scales = up_scales;
  c.buffers.alpha_gate_per_batch = gate_alphas;
  c.buffers.alpha_up_per_batch = up_alphas;
  c.buffers.d = d;

  c.problem.grouping = DUALGEMM_GROUPING_CONTIGUOUS;
  c.buffers.expert_offsets = offsets;
  for (i = 0; i < 12; ++i) d[i] = -1.0f;
  C_CHECK_OK(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL));
  C_CHECK(d[0] == 128.0f && d[1] == 64.0f && d[2] == 128.0f);
  C_CHECK(d[3] == 6 * 512.0f && d[4] == 6 * 256.0f && d[5] == 6 * 512.0f && d[6] == -1.0f);

  c.problem.grouping = DUALGEMM_GROUPING_MASKED;
  C_CHECK_ERROR(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL), DUALGEMM_INVALID_ARGUMENT,
                "expert_offsets");
  c.buffers.expert_offsets = NULL;
  c.buffers.expert_rows = rows; /* expert 0: none, expert 1: the first of its two */
  for (i = 0; i < 12; ++i) d[i] = -1.0f;
  C_CHECK_OK(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL));
  C_CHECK(d[0] == -1.0f && d[3] == -1.0f && d[9] == -1.0f);
  C_CHECK(d[6] == 6 * 128.0f && d[7] == 6 * 64.0f && d[8] == 6 * 128.0f);
}

/* One row of 16 equal outputs 128: d_global_scale 1 gives s = e4m3(128/6) = 22 (0x5B: 1.375 * 16),
 * 128/22 = 5.8 -> 6 (code 7). */
static void the_output_can_be_nvfp4(c_fail fail) {
  small_case c;
  uint8_t gate[16 * 8], up[16 * 8], scales[16], d[9], d_scales[2];
  fill_small_case(&c, DUALGEMM_IDENTITY);
  memset(gate, 0x11, sizeof gate);
  memset(up, 0x22, sizeof up);
  memset(scales, kScaleOne, sizeof scales);
  memset(d, 0xEE, sizeof d);
  memset(d_scales, 0xEE, sizeof d_scales);
  c.problem.m = 1;
  c.problem.n = 16;
  c.problem.d.type = DUALGEMM_E2M1;
  c.buffers.gate = gate;
  c.buffers.up = up;
  c.buffers.gate_scales = c.buffers.up_scales = scales;
  c.buffers.d = d;
  C_CHECK_ERROR(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL), DUALGEMM_INVALID_ARGUMENT,
                "d_scales");
  c.buffers.d_scales = d_scales;
  C_CHECK_OK(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL));
  C_CHECK(d[0] == 0x77 && d[7] == 0x77 && d[8] == 0xEE);
  C_CHECK(d_scales[0] == 0x5B && d_scales[1] == 0xEE);
  c.buffers.d_global_scale = 0.0f;
  C_CHECK_ERROR(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL), DUALGEMM_INVALID_ARGUMENT,
                "d_global_scale");
}

/* fp16 activations (W4A16) with a factor per row: a = 1, so row 0 is as above, row 1 is 1/4 of 512.
 */
static void half_activations_and_row_scales(c_fail fail) {
  static const float row_scale[2] = {1.0f, 0.5f};
  small_case c;
  uint16_t a[32];
  int i;
  fill_small_case(&c, DUALGEMM_IDENTITY);
  for (i = 0; i < 32; ++i) a[i] = i < 16 ? 0x3C00 : 0x4000; /* 1, 2 */
  c.problem.a.type = DUALGEMM_F16;
  c.buffers.a = a;
  c.buffers.a_row_scale = row_scale;
  C_CHECK_ERROR(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL), DUALGEMM_INVALID_ARGUMENT,
                "a_scales");
  c.buffers.a_scales = NULL;
  C_CHECK_OK(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL));
  C_CHECK(c.d[0] == 0x5800 && c.d[1] == 0x5400 && c.d[3] == 0x5800 && c.d[4] == 0x5400);
}

/* Without biases g and u of the first row are (8, 16), (4, 16), (16, 8), of the second twice that.
 */
static void biases_are_added(c_fail fail) {
  static const float bias_gate[3] = {-5.0f, 0.0f, 1.0f}, bias_up[3] = {-15.0f, 0.0f, 0.0f};
  static const uint16_t half_gate[3] = {0xC0A0, 0, 0x3F80}, half_up[3] = {0xC170, 0, 0};
  /* 3 * 1, 4 * 16, 17 * 8, 11 * 17, 8 * 32, 33 * 16 */
  static const uint16_t result[6] = {0x4200, 0x5400, 0x5840, 0x59D8, 0x5C00, 0x6020};
  small_case c;
  fill_small_case(&c, DUALGEMM_IDENTITY);
  c.problem.bias = DUALGEMM_BIAS_F32;
  C_CHECK_ERROR(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL), DUALGEMM_INVALID_ARGUMENT,
                "bias_gate: null; is required");
  c.buffers.bias_gate = bias_gate;
  C_CHECK_ERROR(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL), DUALGEMM_INVALID_ARGUMENT,
                "bias_up: null; is required");
  c.buffers.bias_up = bias_up;
  C_CHECK_OK(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL));
  C_CHECK(memcmp(c.d, result, sizeof result) == 0 && c.d[6] == kCanary);
  memset(c.d, 0xFF, sizeof result);
  c.problem.bias = DUALGEMM_BIAS_BF16;
  c.buffers.bias_gate = half_gate;
  c.buffers.bias_up = half_up;
  C_CHECK_OK(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL));
  C_CHECK(memcmp(c.d, result, sizeof result) == 0 && c.d[6] == kCanary);
  c.problem.bias = DUALGEMM_BIAS_NONE;
  C_CHECK_ERROR(dualgemm_run_once(&c.problem, &c.buffers, NULL, NULL), DUALGEMM_INVALID_ARGUMENT,
                "bias_gate: not null");
  c.problem.bias = 3;
  C_CHECK_ERROR(dualgemm_validate(&c.problem, NULL), DUALGEMM_INVALID_ARGUMENT, "bias: 3");
  c.problem.bias = DUALGEMM_BIAS_NONE;
  c.problem.reserved = 1;
  C_CHECK_ERROR(dualgemm_validate(&c.problem, NULL), DUALGEMM_INVALID_ARGUMENT,
                "problem.reserved: 1");
}

/* The one call prepares the weights where the options ask for it. */
static void one_call_prepares_when_asked(c_fail fail) {
  small_case c;
  dualgemm_plan_options options;
  fill_small_case(&c, DUALGEMM_IDENTITY);
  dualgemm_plan_options_init(&options, sizeof options);
  options.strategy = DUALGEMM_STRATEGY_FUSED;
  options.prepared = 1;
  C_CHECK_OK(dualgemm_run_once(&c.problem, &c.buffers, &options, NULL));
  C_CHECK(is_identity_result(&c));
}

static void a_workspace_of_the_library_serves(c_fail fail) {
  small_case c;
  dualgemm_plan* plan = NULL;
  dualgemm_plan_options options;
  dualgemm_workspace* workspace = NULL;
  int64_t bytes = 0;
  fill_small_case(&c, DUALGEMM_IDENTITY);
  dualgemm_plan_options_init(&options, sizeof options);
  options.strategy = DUALGEMM_STRATEGY_TWO_PASS;
  C_CHECK_OK(dualgemm_plan_create(&c.problem, &options, &plan));
  C_CHECK_OK(dualgemm_plan_workspace_size(plan, &bytes));
  C_CHECK_OK(dualgemm_workspace_create(plan, &workspace));
  C_CHECK(bytes > 0 && dualgemm_workspace_size(workspace) == bytes);
  C_CHECK((uintptr_t)dualgemm_workspace_data(workspace) % 64 == 0);
  C_CHECK_OK(dualgemm_run(plan, &c.buffers, dualgemm_workspace_data(workspace),
                          dualgemm_workspace_size(workspace), NULL));
  C_CHECK(is_identity_result(&c));
  dualgemm_workspace_destroy(workspace);
  C_CHECK_ERROR(dualgemm_workspace_create(NULL, &workspace), DUALGEMM_INVALID_ARGUMENT,
                "plan: null");
  C_CHECK(workspace == NULL && dualgemm_workspace_data(NULL) == NULL);
  C_CHECK(dualgemm_workspace_size(NULL) == 0);
  C_CHECK_ERROR(dualgemm_workspace_create(plan, NULL), DUALGEMM_INVALID_ARGUMENT,
                "workspace: null");
  dualgemm_workspace_destroy(NULL);
  dualgemm_plan_destroy(plan);
}

const c_case c_run_cases[] = {
    {"OneCallPreparesWhenAsked", one_call_prepares_when_asked},
    {"AWorkspaceOfTheLibraryServes", a_workspace_of_the_library_serves},
    {"OneCallComputes", one_call_computes},
    {"SiluIsTheDefault", silu_is_the_default},
    {"EveryStrategyComputes", every_strategy_computes},
    {"APlanDescribesItselfAndRuns", a_plan_describes_itself_and_runs},
    {"WeightsArePreparedOnce", weights_are_prepared_once},
    {"PreparedWeightsAreBytes", prepared_weights_are_bytes},
    {"OperandSizesAreThoseOfTheLayouts", operand_sizes_are_those_of_the_layouts},
    {"ExpertsHaveTheirOwnAlphas", experts_have_their_own_alphas},
    {"TheOutputCanBeNvfp4", the_output_can_be_nvfp4},
    {"HalfActivationsAndRowScales", half_activations_and_row_scales},
    {"BiasesAreAdded", biases_are_added},
    {NULL, NULL},
};
