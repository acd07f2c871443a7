/* What the example takes for granted: a checkpoint, written by the command, and the problem and
 * buffers of three rows. */
#include "dualgemm/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRows = 3, kN = 32, kK = 64 };

int main(void) {
  static unsigned char codes[kRows * kK / 2], scales[kRows * kK / 16];
  static unsigned short d[kRows * kN];
  const float a_global_scale = 1.0f;
  int i;
  dualgemm_problem problem;
  dualgemm_buffers buffers;
  if (system("mkdir -p model && dualgemm make-layer --out layer.safetensors --m 3 --n 32 --k 64 && "
             "dualgemm quantize layer.safetensors --out model/model.safetensors") != 0) {
    return 1;
  }
  memset(codes, 0x22, sizeof codes);
  memset(scales, 0x38, sizeof scales);
  memset(d, 0xFF, sizeof d); /* NaNs, where nothing is written */
  dualgemm_problem_init(&problem, sizeof problem);
  dualgemm_buffers_init(&buffers, sizeof buffers);
  problem.m = kRows;
  buffers.a = codes;
  buffers.a_scales = scales;
  buffers.d = d;
  EXAMPLE;
  if (dualgemm_last_status() != DUALGEMM_OK) {
    fprintf(stderr, "%s\n", dualgemm_last_error_message());
    return 1;
  }
  for (i = 0; i < kRows * kN; ++i) {
    if ((d[i] & 0x7C00) == 0x7C00) return 1;
  }
  return 0;
}
