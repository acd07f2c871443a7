/* The first layer of a checkpoint times a row of ones, through the installed package. Prints d[0].
 */
#include <dualgemm/checkpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(void) {
  fprintf(stderr, "%s\n", dualgemm_last_error_message());
  return 1;
}

int main(int argc, char** argv) {
  dualgemm_checkpoint* checkpoint;
  dualgemm_checkpoint_layer* layer;
  dualgemm_problem problem;
  dualgemm_buffers buffers;
  unsigned char *ones, *scales;
  float* d;
  if (dualgemm_checkpoint_open(argc > 1 ? argv[1] : "", &checkpoint) != DUALGEMM_OK) return fail();
  if (dualgemm_checkpoint_layer_count(checkpoint) == 0) return 1;
  if (dualgemm_checkpoint_load(checkpoint, dualgemm_checkpoint_layer_name(checkpoint, 0), -1, 0,
                               &layer) != DUALGEMM_OK)
    return fail();
  dualgemm_checkpoint_close(checkpoint);
  if (dualgemm_problem_init(&problem, sizeof problem) != DUALGEMM_OK) return fail();
  if (dualgemm_buffers_init(&buffers, sizeof buffers) != DUALGEMM_OK) return fail();
  if (dualgemm_checkpoint_layer_apply(layer, 1.0f, &problem, &buffers) != DUALGEMM_OK)
    return fail();
  problem.m = 1;
  problem.d.type = DUALGEMM_F32;
  ones = malloc((size_t)problem.k / 2);
  scales = malloc((size_t)problem.k / 16);
  d = malloc((size_t)problem.n * sizeof *d);
  memset(ones, 0x22, (size_t)problem.k / 2);
  memset(scales, 0x38, (size_t)problem.k / 16);
  buffers.a = ones;
  buffers.a_scales = scales;
  buffers.d = d;
  if (dualgemm_run_once(&problem, &buffers, NULL, NULL) != DUALGEMM_OK) return fail();
  printf("%.6g\n", (double)d[0]);
  dualgemm_checkpoint_layer_free(layer);
  free(ones);
  free(scales);
  free(d);
  return 0;
}
