/* 16 ones times 16 ones, twice, identity activation: exactly 16 * 16. */
#include <dualgemm/dualgemm.h>
#include <stdio.h>

int main(void) {
  const uint8_t ones[8] = {0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22};
  const uint8_t scale = 0x38;
  float d = 0;
  dualgemm_problem problem;
  dualgemm_buffers buffers;
  dualgemm_status status = dualgemm_problem_init(&problem, sizeof problem);
  if (status == DUALGEMM_OK) status = dualgemm_buffers_init(&buffers, sizeof buffers);
  problem.m = problem.n = 1;
  problem.k = 16;
  problem.d.type = DUALGEMM_F32;
  problem.act.kind = DUALGEMM_IDENTITY;
  buffers.a = buffers.gate = buffers.up = ones;
  buffers.a_scales = buffers.gate_scales = buffers.up_scales = &scale;
  buffers.d = &d;
  if (status == DUALGEMM_OK) status = dualgemm_run_once(&problem, &buffers, NULL, NULL);
  if (status != DUALGEMM_OK || d != 256.0f) {
    fprintf(stderr, "d = %g, status: %s\n", d, dualgemm_last_error_message());
    return 1;
  }
  printf("dualgemm %s from C: %g\n", dualgemm_version(), d);
  return 0;
}
