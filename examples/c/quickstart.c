/* One gated-MLP layer through the C interface: weights and activations quantised to NVFP4, then
 * D = silu(A * Gate^T) * (A * Up^T) in FP32. Prints what ran and one element beside the same sum
 * done by hand; exits with 1 if they differ. */
#include <math.h>
#include <stdio.h>

#include "dualgemm/dualgemm.h"

enum { M = 8, N = 256, K = 512 };

static int fail(void) {
  fprintf(stderr, "%s\n", dualgemm_last_error_message());
  return 1;
}

/* codes[rows][K/2] and scales[rows][K/16] of some numbers; *values keeps them as NVFP4 has them. */
static dualgemm_status make_matrix(int rows, float phase, uint8_t* codes, uint8_t* scales,
                                   float* values, float* global_scale) {
  dualgemm_status status;
  int i;
  for (i = 0; i < rows * K; ++i) values[i] = sinf(phase * (float)i);
  status =
      dualgemm_quantize(values, DUALGEMM_F32, rows, K, 0, codes, 0, scales, NULL, global_scale);
  if (status != DUALGEMM_OK) return status;
  return dualgemm_dequantize(codes, 0, scales, DUALGEMM_SCALES_LINEAR, 0, *global_scale, rows, K,
                             values, 0);
}

static double dot(const float* x, const float* y) {
  double sum = 0.0;
  int i;
  for (i = 0; i < K; ++i) sum += (double)x[i] * y[i];
  return sum;
}

int main(void) {
  static uint8_t a[M * K / 2], gate[N * K / 2], up[N * K / 2];
  static uint8_t a_scales[M * K / 16], gate_scales[N * K / 16], up_scales[N * K / 16];
  static float a_values[M * K], gate_values[N * K], up_values[N * K], d[M * N];
  float a_global, gate_global, up_global;
  dualgemm_problem problem;
  dualgemm_buffers buffers;
  dualgemm_plan* plan = NULL;
  dualgemm_status status;
  dualgemm_workspace* workspace = NULL;
  char config[256];
  double g, u, want;
  const int i = 3, j = 200;

  if (make_matrix(M, 0.7f, a, a_scales, a_values, &a_global) != DUALGEMM_OK) return fail();
  if (make_matrix(N, 0.3f, gate, gate_scales, gate_values, &gate_global) != DUALGEMM_OK) {
    return fail();
  }
  if (make_matrix(N, 0.9f, up, up_scales, up_values, &up_global) != DUALGEMM_OK) return fail();

  /* What to compute, and how it will run. */
  dualgemm_problem_init(&problem, sizeof problem);
  problem.m = M;
  problem.n = N;
  problem.k = K;
  problem.d.type = DUALGEMM_F32;
  if (dualgemm_plan_create(&problem, NULL, &plan) != DUALGEMM_OK) return fail();
  if (dualgemm_workspace_create(plan, &workspace) != DUALGEMM_OK) return fail();
  dualgemm_plan_config(plan, config, sizeof config, NULL);

  /* Where it lies. */
  dualgemm_buffers_init(&buffers, sizeof buffers);
  buffers.a = a;
  buffers.a_scales = a_scales;
  buffers.gate = gate;
  buffers.gate_scales = gate_scales;
  buffers.up = up;
  buffers.up_scales = up_scales;
  buffers.alpha_gate = a_global * gate_global;
  buffers.alpha_up = a_global * up_global;
  buffers.d = d;

  status = dualgemm_run(plan, &buffers, dualgemm_workspace_data(workspace),
                        dualgemm_workspace_size(workspace), NULL);
  dualgemm_workspace_destroy(workspace);
  dualgemm_plan_destroy(plan);
  if (status != DUALGEMM_OK) return fail();

  g = dot(a_values + i * K, gate_values + j * K);
  u = dot(a_values + i * K, up_values + j * K);
  want = g / (1.0 + exp(-g)) * u;
  printf("%s\nd[%d][%d] = %.6f, by hand %.6f\n", config, i, j, d[i * N + j], want);
  return fabs(d[i * N + j] - want) <= 1e-4 * (1.0 + fabs(want)) ? 0 : 1;
}
