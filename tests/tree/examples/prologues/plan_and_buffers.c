/* What the examples take for granted: a plan for prepared weights, buffers and a workspace. */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dualgemm/dualgemm.h"

static int report(void) {
  fprintf(stderr, "%s\n", dualgemm_last_error_message());
  return 1;
}

int main(void) {
  static uint8_t codes[20 * 32], ones[20 * 4];
  static uint16_t d[3 * 20];
  dualgemm_problem problem;
  dualgemm_buffers buffers;
  dualgemm_plan_options options;
  dualgemm_plan* plan = NULL;
  void *memory = NULL, *workspace = NULL;
  int64_t bytes = 0;
  size_t i;
  memset(codes, 0x22, sizeof codes);
  memset(ones, 0x38, sizeof ones);
  dualgemm_problem_init(&problem, sizeof problem);
  problem.m = 3;
  problem.n = 20;
  problem.k = 64;
  dualgemm_buffers_init(&buffers, sizeof buffers);
  buffers.a = buffers.gate = buffers.up = codes;
  buffers.a_scales = buffers.gate_scales = buffers.up_scales = ones;
  buffers.d = d;
  dualgemm_plan_options_init(&options, sizeof options);
  options.prepared = 1;
  if (dualgemm_plan_create(&problem, &options, &plan) != DUALGEMM_OK) return report();
  if (dualgemm_plan_workspace_size(plan, &bytes) != DUALGEMM_OK) return report();
  if (posix_memalign(&workspace, 64, (size_t)bytes + 64) != 0) return 1;
  EXAMPLE;
  free(memory);
  free(workspace);
  dualgemm_plan_destroy(plan);
  /* Every product is 64, silu(64) = 64: 4096, in fp16. */
  for (i = 0; i < sizeof d / sizeof d[0]; ++i) {
    if (d[i] != 0x6C00) return 1;
  }
  return 0;
}
