/* struct_size in all its ages, null pointers, error texts, names, versions. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "c_cases.h"
#include "dualgemm/dualgemm.h"

/* A caller built against a later header, whose structs have grown. */
typedef struct later_problem {
  dualgemm_problem known;
  uint64_t wish[2];
} later_problem;

static dualgemm_problem small_problem(void) {
  dualgemm_problem problem;
  dualgemm_problem_init(&problem, sizeof problem);
  problem.m = 2;
  problem.n = 3;
  problem.k = 32;
  return problem;
}

static void init_sets_the_defaults(c_fail fail) {
  dualgemm_problem problem;
  dualgemm_buffers buffers;
  dualgemm_plan_options options;
  dualgemm_quantize_options quantize;
  memset(&problem, 0xAB, sizeof problem);
  memset(&buffers, 0xAB, sizeof buffers);
  memset(&options, 0xAB, sizeof options);
  memset(&quantize, 0xAB, sizeof quantize);
  C_CHECK_OK(dualgemm_problem_init(&problem, sizeof problem));
  C_CHECK_OK(dualgemm_buffers_init(&buffers, sizeof buffers));
  C_CHECK_OK(dualgemm_plan_options_init(&options, sizeof options));
  C_CHECK_OK(dualgemm_quantize_options_init(&quantize, sizeof quantize));

  C_CHECK(problem.struct_size == sizeof problem);
  C_CHECK(problem.m == 0 && problem.n == 0 && problem.k == 0 && problem.l == 1);
  C_CHECK(problem.a.type == DUALGEMM_E2M1 && problem.gate.type == DUALGEMM_E2M1);
  C_CHECK(problem.up.type == DUALGEMM_E2M1 && problem.d.type == DUALGEMM_F16);
  C_CHECK(problem.d.ld == 0 && problem.d.batch_stride == 0 && problem.a.scale_ld == 0);
  C_CHECK(problem.a.scale_layout == DUALGEMM_SCALES_LINEAR && problem.a.scale_batch_stride == 0);
  C_CHECK(problem.act.kind == DUALGEMM_SILU && isnan(problem.act.alpha));
  C_CHECK(isnan(problem.act.beta) && isnan(problem.act.limit));
  C_CHECK(problem.grouping == DUALGEMM_GROUPING_NONE && problem.batch_invariant == 0);
  C_CHECK(problem.bias == DUALGEMM_BIAS_NONE && problem.reserved == 0);
  C_CHECK(problem.combine == DUALGEMM_COMBINE_GLU && problem.up_column == 0);
  C_CHECK(problem.bias_stride == 0 && problem.residual == 0);
  C_CHECK(buffers.struct_size == sizeof buffers && buffers.a == NULL && buffers.prepared == NULL);
  C_CHECK(buffers.bias_gate == NULL && buffers.bias_up == NULL);
  C_CHECK(buffers.residual == NULL && buffers.row_experts == NULL);
  C_CHECK(buffers.alpha_gate == 1.0f && buffers.alpha_up == 1.0f);
  C_CHECK(buffers.d_global_scale == 1.0f && buffers.reserved == 0);
  C_CHECK(options.struct_size == sizeof options && options.strategy == DUALGEMM_STRATEGY_AUTO);
  C_CHECK(options.isa == DUALGEMM_ISA_AUTO && options.threads == 0 && options.prepared == 0);
  C_CHECK(quantize.struct_size == sizeof quantize && quantize.global_scale == 0.0f);
  C_CHECK(quantize.scale_layout == DUALGEMM_SCALES_LINEAR && quantize.four_over_six == 0);
}

static void init_serves_smaller_and_larger_structs(c_fail fail) {
  later_problem later;
  dualgemm_problem early;
  unsigned char canary[sizeof early - 32];
  memset(canary, 0xAB, sizeof canary);
  memset(&early, 0xAB, sizeof early);
  memset(&later, 0xAB, sizeof later);
  C_CHECK_OK(dualgemm_problem_init(&early, 32));
  C_CHECK(early.struct_size == 32 && early.m == 0 && early.k == 0);
  C_CHECK(memcmp((char*)&early + 32, canary, sizeof canary) == 0);
  C_CHECK_OK(dualgemm_problem_init(&later.known, sizeof later));
  C_CHECK(later.known.struct_size == sizeof later && later.known.l == 1);
  C_CHECK(later.wish[0] == 0 && later.wish[1] == 0);
  C_CHECK_ERROR(dualgemm_problem_init(&early, 24), DUALGEMM_INVALID_ARGUMENT, "struct_size: 24");
}

/* Only struct_size, m, n and k exist for this caller; what follows is other memory of his. */
static void a_smaller_struct_gets_defaults(c_fail fail) {
  dualgemm_problem problem = small_problem();
  dualgemm_operand_bytes sizes, early_sizes;
  sizes.struct_size = early_sizes.struct_size = sizeof sizes;
  C_CHECK_OK(dualgemm_operand_sizes(&problem, &sizes));
  problem.struct_size = 32;
  memset((char*)&problem + 32, 0xFF, sizeof problem - 32);
  C_CHECK_OK(dualgemm_operand_sizes(&problem, &early_sizes));
  C_CHECK(memcmp(&sizes, &early_sizes, sizeof sizes) == 0);
  /* With l as well: 5 batches, and still no layout. */
  problem.struct_size = 40;
  problem.l = 5;
  C_CHECK_OK(dualgemm_operand_sizes(&problem, &early_sizes));
  C_CHECK(early_sizes.a == 5 * sizes.a && early_sizes.d == 5 * sizes.d);
}

static void a_larger_struct_must_end_in_zeros(c_fail fail) {
  later_problem later;
  memset(&later, 0, sizeof later);
  later.known = small_problem();
  later.known.struct_size = sizeof later;
  C_CHECK_OK(dualgemm_validate(&later.known, NULL));
  later.wish[1] = 1;
  C_CHECK_ERROR(dualgemm_validate(&later.known, NULL), DUALGEMM_INVALID_ARGUMENT,
                "problem: byte 272 is 1; this library is older");
  later.known.struct_size = sizeof later - 8; /* the wish is beyond the struct again */
  C_CHECK_OK(dualgemm_validate(&later.known, NULL));
}

static void impossible_struct_sizes_are_refused(c_fail fail) {
  static const uint64_t sizes[] = {0,         1, 8, 24, 31, 33, 100, 4097, 4104, UINT64_MAX - 7,
                                   UINT64_MAX};
  size_t i;
  for (i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    dualgemm_problem problem = small_problem();
    dualgemm_buffers buffers;
    dualgemm_plan_options options;
    dualgemm_device_info device;
    dualgemm_plan* plan = (dualgemm_plan*)&problem;
    dualgemm_buffers_init(&buffers, sizeof buffers);
    dualgemm_plan_options_init(&options, sizeof options);
    buffers.struct_size = options.struct_size = device.struct_size = sizes[i];
    C_CHECK_ERROR(dualgemm_validate(&problem, &buffers), DUALGEMM_INVALID_ARGUMENT,
                  "buffers.struct_size: ");
    if (sizes[i] != 24) { /* a legal size of these two */
      C_CHECK_ERROR(dualgemm_plan_create(&problem, &options, &plan), DUALGEMM_INVALID_ARGUMENT,
                    "options.struct_size: ");
      C_CHECK(plan == NULL);
      C_CHECK_ERROR(dualgemm_get_device_info(&device), DUALGEMM_INVALID_ARGUMENT,
                    "info.struct_size: ");
    }
    problem.struct_size = sizes[i];
    C_CHECK_ERROR(dualgemm_validate(&problem, NULL), DUALGEMM_INVALID_ARGUMENT,
                  "problem.struct_size: ");
  }
}

static void outputs_fill_what_the_caller_knows(c_fail fail) {
  struct {
    dualgemm_device_info known;
    uint64_t later;
  } info;
  dualgemm_device_info early;
  unsigned char canary[sizeof early - 16];
  memset(canary, 0xAB, sizeof canary);
  memset(&info, 0xAB, sizeof info);
  memset(&early, 0xAB, sizeof early);
  early.struct_size = 16;
  C_CHECK_OK(dualgemm_get_device_info(&early));
  C_CHECK(early.struct_size == 16 && early.kind == DUALGEMM_DEVICE_CPU && early.cores >= 1);
  C_CHECK(memcmp((char*)&early + 16, canary, sizeof canary) == 0);
  info.known.struct_size = sizeof info;
  C_CHECK_OK(dualgemm_get_device_info(&info.known));
  C_CHECK(info.known.struct_size == sizeof info && info.known.cores == early.cores);
  C_CHECK(info.later == 0xABABABABABABABABu);
  C_CHECK(info.known.num_isas >= 1 && info.known.num_isas <= 15);
  C_CHECK(info.known.isas[info.known.num_isas - 1] == DUALGEMM_ISA_SCALAR);
  C_CHECK(info.known.l1d_bytes > 0 && info.known.l2_bytes > 0 && info.known.l3_bytes >= 0);
  C_CHECK(memchr(info.known.name, 0, sizeof info.known.name) != NULL);
}

static void flags_and_reserved_fields_are_checked(c_fail fail) {
  dualgemm_problem problem = small_problem();
  dualgemm_buffers buffers;
  dualgemm_plan_options options;
  dualgemm_plan* plan = NULL;
  problem.batch_invariant = 2;
  C_CHECK_ERROR(dualgemm_validate(&problem, NULL), DUALGEMM_INVALID_ARGUMENT,
                "batch_invariant: 2; must be 0 or 1");
  problem.batch_invariant = 1;
  C_CHECK_OK(dualgemm_validate(&problem, NULL));
  dualgemm_buffers_init(&buffers, sizeof buffers);
  buffers.reserved = -1;
  C_CHECK_ERROR(dualgemm_validate(&problem, &buffers), DUALGEMM_INVALID_ARGUMENT,
                "buffers.reserved: -1");
  dualgemm_plan_options_init(&options, sizeof options);
  options.prepared = 7;
  C_CHECK_ERROR(dualgemm_plan_create(&problem, &options, &plan), DUALGEMM_INVALID_ARGUMENT,
                "options.prepared: 7");
  options.prepared = 0;
  options.unaligned = 2;
  C_CHECK_ERROR(dualgemm_plan_create(&problem, &options, &plan), DUALGEMM_INVALID_ARGUMENT,
                "options.unaligned: 2; must be 0 or 1");
  options.unaligned = 1;
  options.trusted_pointers = -1;
  C_CHECK_ERROR(dualgemm_plan_create(&problem, &options, &plan), DUALGEMM_INVALID_ARGUMENT,
                "options.trusted_pointers: -1; must be 0 or 1");
  options.trusted_pointers = 1;
  C_CHECK_OK(dualgemm_plan_create(&problem, &options, &plan));
  dualgemm_plan_destroy(plan);
  options.reserved = 1;
  C_CHECK_ERROR(dualgemm_plan_create(&problem, &options, &plan), DUALGEMM_INVALID_ARGUMENT,
                "options.reserved: 1");
}

/* config came after the first release of the struct: callers that do not know it have none. */
static void config_is_read_where_the_caller_has_it(c_fail fail) {
  dualgemm_problem problem = small_problem();
  dualgemm_plan_options options;
  dualgemm_plan* plan = NULL;
  dualgemm_plan_options_init(&options, sizeof options);
  C_CHECK(options.config == NULL);
  options.config = "";
  C_CHECK_OK(dualgemm_plan_create(&problem, &options, &plan));
  dualgemm_plan_destroy(plan);
  options.config = "tile_q=8";
  C_CHECK_ERROR(dualgemm_plan_create(&problem, &options, &plan), DUALGEMM_INVALID_ARGUMENT,
                "config: 'tile_q'; is no key");
  options.config = "tile_m=8";
  C_CHECK_ERROR(dualgemm_plan_create(&problem, &options, &plan), DUALGEMM_INVALID_ARGUMENT,
                "config: 'tile_m=8'; needs the device cuda, the plan is made for cpu");
  options.struct_size = offsetof(dualgemm_plan_options, config);
  C_CHECK_OK(dualgemm_plan_create(&problem, &options, &plan));
  dualgemm_plan_destroy(plan);
}

/* So did the two flags behind it: what lies there in an older caller's memory is not read. */
static void later_flags_are_read_where_the_caller_has_them(c_fail fail) {
  dualgemm_problem problem = small_problem();
  dualgemm_plan_options options;
  dualgemm_plan* plan = NULL;
  dualgemm_plan_options_init(&options, sizeof options);
  C_CHECK(options.unaligned == 0 && options.trusted_pointers == 0);
  options.unaligned = options.trusted_pointers = 7;
  C_CHECK_ERROR(dualgemm_plan_create(&problem, &options, &plan), DUALGEMM_INVALID_ARGUMENT,
                "options.unaligned: 7");
  options.struct_size = offsetof(dualgemm_plan_options, unaligned);
  C_CHECK_OK(dualgemm_plan_create(&problem, &options, &plan));
  dualgemm_plan_destroy(plan);
  options.config = "tile_q=8"; /* which this size still has */
  C_CHECK_ERROR(dualgemm_plan_create(&problem, &options, &plan), DUALGEMM_INVALID_ARGUMENT,
                "config: 'tile_q'; is no key");
  C_CHECK_OK(dualgemm_plan_options_init(&options, offsetof(dualgemm_plan_options, unaligned)));
  C_CHECK(options.config == NULL && options.unaligned == 7 && options.trusted_pointers == 7);
}

static void numbers_that_are_no_enumerator_are_refused(c_fail fail) {
  static const int32_t bad[] = {-1, 99, INT32_MAX, INT32_MIN};
  size_t i;
  for (i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    dualgemm_problem problem = small_problem();
    dualgemm_plan_options options;
    dualgemm_plan* plan = NULL;
    int64_t bytes = 0;
    problem.a.type = bad[i];
    C_CHECK_ERROR(dualgemm_validate(&problem, NULL), DUALGEMM_INVALID_ARGUMENT, "a.type: ");
    problem = small_problem();
    problem.up.scale_layout = bad[i];
    C_CHECK_ERROR(dualgemm_validate(&problem, NULL), DUALGEMM_INVALID_ARGUMENT,
                  "up.scale_layout: ");
    problem = small_problem();
    problem.act.kind = bad[i];
    C_CHECK_ERROR(dualgemm_validate(&problem, NULL), DUALGEMM_INVALID_ARGUMENT, "act.kind: ");
    problem = small_problem();
    problem.grouping = bad[i];
    C_CHECK_ERROR(dualgemm_validate(&problem, NULL), DUALGEMM_INVALID_ARGUMENT, "grouping: ");
    problem = small_problem();
    dualgemm_plan_options_init(&options, sizeof options);
    options.strategy = bad[i];
    C_CHECK(dualgemm_plan_create(&problem, &options, &plan) != DUALGEMM_OK && plan == NULL);
    dualgemm_plan_options_init(&options, sizeof options);
    options.device = bad[i];
    C_CHECK(dualgemm_plan_create(&problem, &options, &plan) != DUALGEMM_OK && plan == NULL);
    dualgemm_plan_options_init(&options, sizeof options);
    options.isa = bad[i];
    C_CHECK(dualgemm_plan_create(&problem, &options, &plan) != DUALGEMM_OK && plan == NULL);
    C_CHECK(dualgemm_scale_span(bad[i], 4, 4, 0, &bytes) == DUALGEMM_INVALID_ARGUMENT);
    C_CHECK(strcmp(dualgemm_strategy_name(bad[i]), "unknown") == 0);
    C_CHECK(strcmp(dualgemm_status_name(bad[i]), "unknown") == 0);
  }
}

static void errors_have_four_texts(c_fail fail) {
  dualgemm_problem problem = small_problem();
  problem.k = 4090;
  C_CHECK(dualgemm_validate(&problem, NULL) == DUALGEMM_INVALID_ARGUMENT);
  C_CHECK(dualgemm_last_status() == DUALGEMM_INVALID_ARGUMENT);
  C_CHECK(strcmp(dualgemm_last_error_message(), "k: 4090; must be a multiple of 16") == 0);
  C_CHECK(strcmp(dualgemm_last_error_argument(), "k") == 0);
  C_CHECK(strcmp(dualgemm_last_error_observed(), "4090") == 0);
  C_CHECK(strcmp(dualgemm_last_error_rule(), "must be a multiple of 16") == 0);
  problem.k = 4096;
  C_CHECK_OK(dualgemm_validate(&problem, NULL));
  C_CHECK(dualgemm_last_status() == DUALGEMM_OK);
  C_CHECK(strcmp(dualgemm_last_error_message(), "ok") == 0);
  C_CHECK(strcmp(dualgemm_last_error_argument(), "") == 0);
  C_CHECK(strcmp(dualgemm_last_error_observed(), "") == 0);
  C_CHECK(strcmp(dualgemm_last_error_rule(), "") == 0);
  problem.n = INT64_MAX / 4;
  problem.k = 4096;
  C_CHECK(dualgemm_validate(&problem, NULL) == DUALGEMM_OVERFLOW);
}

static void versions_agree(c_fail fail) {
  C_CHECK(strcmp(dualgemm_version(), "0.1.0") == 0);
  C_CHECK(dualgemm_version_number() == 100);
  C_CHECK(DUALGEMM_VERSION_MAJOR == 0 && DUALGEMM_VERSION_MINOR == 1 &&
          DUALGEMM_VERSION_PATCH == 0);
}

static void names_are_those_of_the_command_line(c_fail fail) {
  C_CHECK(strcmp(dualgemm_status_name(DUALGEMM_WORKSPACE_TOO_SMALL), "workspace_too_small") == 0);
  C_CHECK(strcmp(dualgemm_data_type_name(DUALGEMM_BF16), "bf16") == 0);
  C_CHECK(strcmp(dualgemm_scale_layout_name(DUALGEMM_SCALES_SWIZZLED_128X4), "swizzled_128x4") ==
          0);
  C_CHECK(strcmp(dualgemm_activation_name(DUALGEMM_SWIGLU_OAI), "swiglu_oai") == 0);
  C_CHECK(strcmp(dualgemm_grouping_name(DUALGEMM_GROUPING_MASKED), "masked") == 0);
  C_CHECK(strcmp(dualgemm_strategy_name(DUALGEMM_STRATEGY_FUSED_SEQUENTIAL), "fused_sequential") ==
          0);
  C_CHECK(strcmp(dualgemm_bias_name(DUALGEMM_BIAS_F32), "f32") == 0);
  C_CHECK(strcmp(dualgemm_device_name(DUALGEMM_DEVICE_CPU), "cpu") == 0);
  C_CHECK(strcmp(dualgemm_isa_name(DUALGEMM_ISA_AVX512_VNNI), "avx512_vnni") == 0);
  C_CHECK(strcmp(dualgemm_regime_name(DUALGEMM_REGIME_MULTI_ROW), "multi_row") == 0);
}

static void names_parse_back(c_fail fail) {
  int32_t value = -5;
  C_CHECK_OK(dualgemm_parse_data_type("f32", &value));
  C_CHECK(value == DUALGEMM_F32);
  C_CHECK_OK(dualgemm_parse_scale_layout("swizzled_128x4", &value));
  C_CHECK(value == DUALGEMM_SCALES_SWIZZLED_128X4);
  C_CHECK_OK(dualgemm_parse_activation("gelu_tanh", &value));
  C_CHECK(value == DUALGEMM_GELU_TANH);
  C_CHECK_OK(dualgemm_parse_grouping("contiguous", &value));
  C_CHECK(value == DUALGEMM_GROUPING_CONTIGUOUS);
  C_CHECK_OK(dualgemm_parse_bias("bf16", &value));
  C_CHECK(value == DUALGEMM_BIAS_BF16);
  C_CHECK_OK(dualgemm_parse_strategy("two_pass", &value));
  C_CHECK(value == DUALGEMM_STRATEGY_TWO_PASS);
  C_CHECK_OK(dualgemm_parse_device("cuda", &value));
  C_CHECK(value == DUALGEMM_DEVICE_CUDA);
  C_CHECK_OK(dualgemm_parse_isa("amx_bf16", &value));
  C_CHECK(value == DUALGEMM_ISA_AMX_BF16);
  value = 77;
  C_CHECK_ERROR(dualgemm_parse_isa("sse2", &value), DUALGEMM_INVALID_ARGUMENT, "avx2");
  C_CHECK_ERROR(dualgemm_parse_isa(NULL, &value), DUALGEMM_INVALID_ARGUMENT, "name: null");
  C_CHECK_ERROR(dualgemm_parse_isa("avx2", NULL), DUALGEMM_INVALID_ARGUMENT, "isa: null");
  C_CHECK(value == 77);
}

static void null_is_an_error_where_it_is_not_allowed(c_fail fail) {
  const dualgemm_status invalid = DUALGEMM_INVALID_ARGUMENT;
  dualgemm_problem problem = small_problem();
  dualgemm_buffers buffers;
  dualgemm_operand_bytes sizes;
  dualgemm_plan_info info;
  dualgemm_plan* plan = NULL;
  dualgemm_prepared_descriptor descriptor;
  dualgemm_prepared_view view;
  dualgemm_prepared* prepared = (dualgemm_prepared*)&problem;
  char text[8];
  int64_t bytes = 0;
  size_t count = 0;
  sizes.struct_size = sizeof sizes;
  info.struct_size = sizeof info;
  dualgemm_buffers_init(&buffers, sizeof buffers);
  C_CHECK_ERROR(dualgemm_problem_init(NULL, sizeof problem), invalid, "problem: null");
  C_CHECK_ERROR(dualgemm_buffers_init(NULL, sizeof buffers), invalid, "buffers: null");
  C_CHECK_ERROR(dualgemm_plan_options_init(NULL, 32), invalid, "options: null");
  C_CHECK_ERROR(dualgemm_quantize_options_init(NULL, 32), invalid, "options: null");
  C_CHECK_ERROR(dualgemm_validate(NULL, &buffers), invalid, "problem: null");
  C_CHECK_ERROR(dualgemm_operand_sizes(NULL, &sizes), invalid, "problem: null");
  C_CHECK_ERROR(dualgemm_operand_sizes(&problem, NULL), invalid, "sizes: null");
  C_CHECK_ERROR(dualgemm_plan_create(&problem, NULL, NULL), invalid, "plan: null");
  C_CHECK_ERROR(dualgemm_plan_create(NULL, NULL, &plan), invalid, "problem: null");
  C_CHECK_ERROR(dualgemm_plan_workspace_size(NULL, &bytes), invalid, "plan: null");
  C_CHECK_ERROR(dualgemm_plan_get_info(NULL, &info), invalid, "plan: null");
  C_CHECK_ERROR(dualgemm_plan_config(NULL, text, sizeof text, NULL), invalid, "plan: null");
  C_CHECK_ERROR(dualgemm_plan_explain(NULL, text, sizeof text, NULL), invalid, "plan: null");
  C_CHECK_ERROR(dualgemm_prepare(NULL, &buffers, &prepared), invalid, "plan: null");
  C_CHECK(prepared == NULL);
  C_CHECK_ERROR(dualgemm_prepared_size(NULL, &bytes), invalid, "prepared: null");
  C_CHECK_ERROR(dualgemm_plan_prepared_descriptor(NULL, &descriptor), invalid, "plan: null");
  C_CHECK_ERROR(dualgemm_prepare_into(NULL, &buffers, text, 8), invalid, "plan: null");
  C_CHECK_ERROR(dualgemm_prepared_read_header(text, 256, NULL), invalid, "descriptor: null");
  C_CHECK_ERROR(dualgemm_prepared_read_header(NULL, 256, &descriptor), invalid, "prepared: null");
  C_CHECK_ERROR(dualgemm_prepared_open(text, 256, NULL), invalid, "view: null");
  C_CHECK_ERROR(dualgemm_prepared_open(NULL, 256, &view), invalid, "prepared: null");
  C_CHECK_ERROR(dualgemm_prepared_experts(NULL, 0, 1, &view), invalid, "all: null");
  C_CHECK_ERROR(dualgemm_prepared_experts(&view, 0, 1, NULL), invalid, "some: null");
  C_CHECK_ERROR(dualgemm_prepared_get_view(NULL, &view), invalid, "prepared: null");
  C_CHECK_ERROR(dualgemm_prepared_borrow(NULL, &prepared), invalid, "view: null");
  C_CHECK_ERROR(dualgemm_prepared_borrow(&view, NULL), invalid, "prepared: null");
  C_CHECK_ERROR(dualgemm_run(NULL, &buffers, NULL, 0, NULL), invalid, "plan: null");
  C_CHECK_ERROR(dualgemm_run_once(NULL, &buffers, NULL, NULL), invalid, "problem: null");
  C_CHECK_ERROR(dualgemm_run_once(&problem, NULL, NULL, NULL), invalid, "buffers: null");
  C_CHECK_ERROR(dualgemm_get_device_info(NULL), invalid, "info: null");
  C_CHECK_ERROR(dualgemm_scale_span(0, 1, 1, 0, NULL), invalid, "bytes: null");
  C_CHECK_ERROR(dualgemm_experimental_strategies(NULL, 0, NULL), invalid, "count: null");
  C_CHECK_ERROR(dualgemm_experimental_strategies(NULL, 20, &count), invalid, "strategies: null");
  dualgemm_plan_destroy(NULL);
  dualgemm_prepared_destroy(NULL);

  C_CHECK_OK(dualgemm_plan_create(&problem, NULL, &plan));
  C_CHECK_ERROR(dualgemm_plan_workspace_size(plan, NULL), invalid, "bytes: null");
  C_CHECK_ERROR(dualgemm_plan_get_info(plan, NULL), invalid, "info: null");
  C_CHECK_ERROR(dualgemm_plan_config(plan, NULL, 0, NULL), invalid, "required: null");
  C_CHECK_ERROR(dualgemm_plan_config(plan, NULL, 5, &count), invalid, "capacity: 5");
  C_CHECK_ERROR(dualgemm_prepare(plan, &buffers, NULL), invalid, "prepared: null");
  C_CHECK_ERROR(dualgemm_plan_prepared_descriptor(plan, NULL), invalid, "descriptor: null");
  C_CHECK_ERROR(dualgemm_prepare_into(plan, NULL, text, 8), invalid, "buffers: null");
  C_CHECK_ERROR(dualgemm_prepare(plan, NULL, &prepared), invalid, "buffers: null");
  C_CHECK_ERROR(dualgemm_run(plan, NULL, NULL, 0, NULL), invalid, "buffers: null");
  C_CHECK_ERROR(dualgemm_validate(&problem, &buffers), invalid, "a: null");
  dualgemm_plan_destroy(plan);
}

const c_case c_struct_cases[] = {
    {"InitSetsTheDefaults", init_sets_the_defaults},
    {"InitServesSmallerAndLargerStructs", init_serves_smaller_and_larger_structs},
    {"ASmallerStructGetsDefaults", a_smaller_struct_gets_defaults},
    {"ALargerStructMustEndInZeros", a_larger_struct_must_end_in_zeros},
    {"ImpossibleStructSizesAreRefused", impossible_struct_sizes_are_refused},
    {"OutputsFillWhatTheCallerKnows", outputs_fill_what_the_caller_knows},
    {"FlagsAndReservedFieldsAreChecked", flags_and_reserved_fields_are_checked},
    {"ConfigIsReadWhereTheCallerHasIt", config_is_read_where_the_caller_has_it},
    {"LaterFlagsAreReadWhereTheCallerHasThem", later_flags_are_read_where_the_caller_has_them},
    {"NumbersThatAreNoEnumeratorAreRefused", numbers_that_are_no_enumerator_are_refused},
    {"ErrorsHaveFourTexts", errors_have_four_texts},
    {"VersionsAgree", versions_agree},
    {"NamesAreThoseOfTheCommandLine", names_are_those_of_the_command_line},
    {"NamesParseBack", names_parse_back},
    {"NullIsAnErrorWhereItIsNotAllowed", null_is_an_error_where_it_is_not_allowed},
    {NULL, NULL},
};
