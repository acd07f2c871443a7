/* experts.h: defaults, ids to rows and rows to tokens, structs of all ages, errors. */
#include "dualgemm/experts.h"

#include <string.h>

#include "c_cases.h"

enum { kTokens = 2, kTopK = 2, kExperts = 3, kCols = 16 };

typedef struct step {
  int32_t ids[kTokens * kTopK], offsets[kExperts + 1];
  int32_t row_tokens[kTokens * kTopK], places[kTokens * kTopK];
  float weights[kTokens * kTopK], row_scale[kTokens * kTopK];
  float rows[kTokens * kTopK * kCols], y[kTokens * kCols];
  dualgemm_routing_problem routing;
  dualgemm_routing_buffers router;
  dualgemm_combine_problem combine;
  dualgemm_combine_buffers sums;
} step;

static void set_up(step* s) {
  static const int32_t ids[] = {2, 0, 7, 0};
  static const float weights[] = {0.5f, 2.0f, 3.0f, 1.0f};
  memset(s, 0, sizeof *s);
  memcpy(s->ids, ids, sizeof ids);
  memcpy(s->weights, weights, sizeof weights);
  dualgemm_routing_problem_init(&s->routing, sizeof s->routing);
  dualgemm_routing_buffers_init(&s->router, sizeof s->router);
  dualgemm_combine_problem_init(&s->combine, sizeof s->combine);
  dualgemm_combine_buffers_init(&s->sums, sizeof s->sums);
  s->routing.tokens = s->combine.tokens = kTokens;
  s->routing.top_k = s->combine.top_k = kTopK;
  s->routing.experts = kExperts;
  s->router.ids = s->ids;
  s->router.offsets = s->offsets;
  s->router.row_tokens = s->row_tokens;
  s->router.places = s->places;
  s->combine.cols = kCols;
  s->combine.rows.type = s->combine.y.type = DUALGEMM_F32;
  s->sums.rows = s->rows;
  s->sums.places = s->places;
  s->sums.weights = s->weights;
  s->sums.y = s->y;
}

static void experts_defaults(c_fail fail) {
  dualgemm_routing_problem routing;
  dualgemm_combine_problem combine;
  memset(&routing, 0xAB, sizeof routing);
  memset(&combine, 0xAB, sizeof combine);
  C_CHECK_OK(dualgemm_routing_problem_init(&routing, sizeof routing));
  C_CHECK_OK(dualgemm_combine_problem_init(&combine, sizeof combine));
  C_CHECK(routing.top_k == 1 && routing.experts == 1 && routing.tokens == 0);
  C_CHECK(routing.weights_type == DUALGEMM_F32 && routing.wide_ids == 0);
  C_CHECK(combine.rows.type == DUALGEMM_BF16 && combine.y.type == DUALGEMM_BF16);
  C_CHECK(combine.weights_type == DUALGEMM_F32 && combine.residual == 0 && combine.top_k == 1);
  C_CHECK_ERROR(dualgemm_routing_problem_init(&routing, 24), DUALGEMM_INVALID_ARGUMENT,
                "problem.struct_size: 24");
}

static void there_and_back(c_fail fail) {
  step s;
  int col;
  set_up(&s);
  s.router.row_scale = s.row_scale;
  s.router.weights = s.weights;
  C_CHECK_OK(dualgemm_route_tokens(&s.routing, &s.router, NULL));
  C_CHECK(s.offsets[0] == 0 && s.offsets[1] == 2 && s.offsets[2] == 2 && s.offsets[3] == 3);
  C_CHECK(s.row_tokens[0] == 0 && s.row_tokens[1] == 1 && s.row_tokens[2] == 0);
  C_CHECK(s.places[0] == 2 && s.places[1] == 0 && s.places[2] == -1 && s.places[3] == 1);
  C_CHECK(s.row_scale[0] == 2.0f && s.row_scale[1] == 1.0f && s.row_scale[2] == 0.5f);
  C_CHECK(s.row_scale[3] == 0.0f);
  for (col = 0; col < 3 * kCols; ++col) s.rows[col] = (float)(1 + col / kCols);
  C_CHECK_OK(dualgemm_combine_tokens(&s.combine, &s.sums, NULL));
  C_CHECK(s.y[0] == 0.5f * 3 + 2 * 1 && s.y[kCols] == 2.0f);
  s.combine.residual = 1;
  s.sums.residual = s.y;
  C_CHECK_OK(dualgemm_combine_tokens(&s.combine, &s.sums, NULL));
  C_CHECK(s.y[0] == 7.0f && s.y[2 * kCols - 1] == 4.0f);
}

static void early_experts_structs(c_fail fail) {
  step s;
  set_up(&s);
  s.routing.struct_size = 32;
  s.routing.named_experts = 99; /* not known to such a caller */
  s.router.struct_size = 64;
  C_CHECK_OK(dualgemm_route_tokens(&s.routing, &s.router, NULL));
  C_CHECK(s.offsets[kExperts] == 3);
}

static void experts_errors(c_fail fail) {
  step s;
  set_up(&s);
  C_CHECK_ERROR(dualgemm_route_tokens(NULL, &s.router, NULL), DUALGEMM_INVALID_ARGUMENT,
                "problem: null");
  C_CHECK_ERROR(dualgemm_combine_tokens(&s.combine, NULL, NULL), DUALGEMM_INVALID_ARGUMENT,
                "buffers: null");
  s.routing.wide_ids = 2;
  C_CHECK_ERROR(dualgemm_route_tokens(&s.routing, &s.router, NULL), DUALGEMM_INVALID_ARGUMENT,
                "problem.wide_ids: 2");
  s.routing.wide_ids = 0;
  s.router.offsets = NULL;
  C_CHECK_ERROR(dualgemm_route_tokens(&s.routing, &s.router, NULL), DUALGEMM_INVALID_ARGUMENT,
                "offsets: null");
  s.combine.cols = 8;
  C_CHECK_ERROR(dualgemm_combine_tokens(&s.combine, &s.sums, NULL), DUALGEMM_INVALID_ARGUMENT,
                "cols: 8");
}

const c_case c_experts_cases[] = {
    {"ExpertsDefaults", experts_defaults},
    {"ThereAndBack", there_and_back},
    {"EarlyExpertsStructs", early_experts_structs},
    {"ExpertsErrors", experts_errors},
    {NULL, NULL},
};
