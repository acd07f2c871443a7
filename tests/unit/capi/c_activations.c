/* What the fields of dualgemm_activation mean, given or not, as C leaves them:
 * dualgemm_problem_init() makes them NaN, an initialiser that names some fields makes the others 0.
 */
#include <math.h>
#include <string.h>

#include "c_cases.h"
#include "dualgemm/dualgemm.h"

/* D of m = n = 1, k = 16 with g = 2 and u = -18, or NaN when the call fails. */
static double d_of(dualgemm_activation act) {
  static const uint8_t a[8] = {0x04}, gate[8] = {0x02}, up[8] = {0x0F}; /* 2, 1, -6 */
  static const uint8_t one[1] = {0x38}, one_and_a_half[1] = {0x3C};
  float d = 0.0f;
  dualgemm_problem problem;
  dualgemm_buffers buffers;
  dualgemm_problem_init(&problem, sizeof problem);
  dualgemm_buffers_init(&buffers, sizeof buffers);
  problem.m = problem.n = 1;
  problem.k = 16;
  problem.d.type = DUALGEMM_F32;
  problem.act = act;
  buffers.a = a;
  buffers.a_scales = one;
  buffers.gate = gate;
  buffers.gate_scales = one;
  buffers.up = up;
  buffers.up_scales = one_and_a_half;
  buffers.d = &d;
  return dualgemm_run_once(&problem, &buffers, NULL, NULL) == DUALGEMM_OK ? d : NAN;
}

/* g*sigmoid(alpha*g) * (u + beta) of g = 2, u = -18. */
static double swiglu(double alpha, double beta, double limit) {
  const double g = fmin(2.0, limit), u = fmax(-18.0, -limit);
  return g / (1.0 + exp(-alpha * g)) * (u + beta);
}

static int is_near(double got, double want) { return fabs(got - want) <= 1e-5 * fabs(want); }

static dualgemm_activation after_init(int32_t kind) {
  dualgemm_problem problem;
  dualgemm_problem_init(&problem, sizeof problem);
  problem.act.kind = kind;
  return problem.act;
}

static void swiglu_oai_without_parameters_is_that_of_gpt_oss(c_fail fail) {
  const double gpt_oss = swiglu(1.702, 1.0, 7.0);
  const dualgemm_activation zeroed = {.kind = DUALGEMM_SWIGLU_OAI};
  C_CHECK(is_near(d_of(zeroed), gpt_oss));
  C_CHECK(is_near(d_of(after_init(DUALGEMM_SWIGLU_OAI)), gpt_oss));
  C_CHECK(!is_near(swiglu(1.0, 0.0, INFINITY), gpt_oss)); /* what plain SiLU would give */
}

static void what_is_given_counts(c_fail fail) {
  dualgemm_activation act = after_init(DUALGEMM_SWIGLU_OAI);
  act.limit = 1.5f;
  C_CHECK(is_near(d_of(act), swiglu(1.702, 1.0, 1.5)));
  act.alpha = -0.5f;
  act.beta = 3.0f;
  C_CHECK(is_near(d_of(act), swiglu(-0.5, 3.0, 1.5)));
  act.limit = INFINITY;
  C_CHECK(is_near(d_of(act), swiglu(-0.5, 3.0, INFINITY)));
  {
    const dualgemm_activation named = {.kind = DUALGEMM_SWIGLU_OAI, .beta = 2.0f};
    C_CHECK(is_near(d_of(named), swiglu(1.702, 2.0, 7.0)));
  }
  {
    const dualgemm_activation named = {.kind = DUALGEMM_CLAMPED_SWIGLU, .limit = 7.0f};
    C_CHECK(is_near(d_of(named), swiglu(1.0, 0.0, 7.0)));
  }
  act = after_init(DUALGEMM_CLAMPED_SWIGLU);
  act.alpha = 1.702f;
  act.beta = 0.0f;
  act.limit = 7.0f;
  C_CHECK(is_near(d_of(act), swiglu(1.702, 0.0, 7.0)));
}

static void what_may_have_been_forgotten_is_refused(c_fail fail) {
  const dualgemm_activation no_beta = {.kind = DUALGEMM_SWIGLU_OAI, .alpha = 1.702f, .limit = 7.0f};
  const dualgemm_activation limit_only = {.kind = DUALGEMM_SWIGLU_OAI, .limit = 7.0f};
  const dualgemm_activation no_limit = {.kind = DUALGEMM_CLAMPED_SWIGLU, .alpha = 1.5f};
  const dualgemm_activation nothing = {.kind = DUALGEMM_CLAMPED_SWIGLU};
  C_CHECK(isnan(d_of(no_beta)));
  C_CHECK(strcmp(dualgemm_last_error_argument(), "act.beta") == 0);
  C_CHECK(isnan(d_of(limit_only)));
  C_CHECK(strcmp(dualgemm_last_error_argument(), "act.beta") == 0);
  C_CHECK(isnan(d_of(no_limit)));
  C_CHECK(strcmp(dualgemm_last_error_argument(), "act.limit") == 0);
  C_CHECK(isnan(d_of(nothing)));
  C_CHECK(strcmp(dualgemm_last_error_argument(), "act.limit") == 0);
  C_CHECK(isnan(d_of(after_init(DUALGEMM_CLAMPED_SWIGLU))));
  C_CHECK(strcmp(dualgemm_last_error_message(),
                 "act.limit: not given; clamped_swiglu needs one, > 0 (infinity: no clamping)") ==
          0);
}

static void other_kinds_take_no_parameters(c_fail fail) {
  const dualgemm_activation zeroed = {.kind = DUALGEMM_IDENTITY};
  const dualgemm_activation neutral = {DUALGEMM_IDENTITY, 1.0f, 0.0f, INFINITY};
  const dualgemm_activation clamped = {DUALGEMM_IDENTITY, 1.0f, 0.0f, 7.0f};
  C_CHECK(d_of(zeroed) == -36.0);
  C_CHECK(d_of(neutral) == -36.0);
  C_CHECK(d_of(after_init(DUALGEMM_IDENTITY)) == -36.0);
  C_CHECK(isnan(d_of(clamped)));
  C_CHECK(strcmp(dualgemm_last_error_argument(), "act.limit") == 0);
}

const c_case c_activation_cases[] = {
    {"SwigluOaiWithoutParametersIsThatOfGptOss", swiglu_oai_without_parameters_is_that_of_gpt_oss},
    {"WhatIsGivenCounts", what_is_given_counts},
    {"WhatMayHaveBeenForgottenIsRefused", what_may_have_been_forgotten_is_refused},
    {"OtherKindsTakeNoParameters", other_kinds_take_no_parameters},
    {NULL, NULL},
};
