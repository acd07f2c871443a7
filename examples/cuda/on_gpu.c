/* The C interface on a GPU: operands, workspace and result in device memory, work on a stream of
 * the caller. D = silu(A * Gate^T) * (A * Up^T), NVFP4 in, FP32 out; then the same problem on the
 * CPU and the largest difference. Exits with 1 if they differ, with 77 if there is no GPU. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "dualgemm/dualgemm.h"

enum { M = 40, N = 256, K = 512, NO_GPU = 77 };

static int fail(void) {
  fprintf(stderr, "%s\n", dualgemm_last_error_message());
  return 1;
}

static int fail_cuda(cudaError_t error) {
  fprintf(stderr, "%s\n", cudaGetErrorString(error));
  return 1;
}

/* codes[rows][K/2] and scales[rows][K/16] of some numbers. */
static dualgemm_status make_matrix(int rows, float phase, uint8_t* codes, uint8_t* scales,
                                   float* global_scale) {
  static float values[N * K];
  int i;
  for (i = 0; i < rows * K; ++i) values[i] = sinf(phase * (float)i);
  return dualgemm_quantize(values, DUALGEMM_F32, rows, K, 0, codes, 0, scales, NULL, global_scale);
}

/* A copy in device memory; null if that fails. */
static void* to_device(const void* host, size_t bytes) {
  void* device = NULL;
  if (cudaMalloc(&device, bytes) != cudaSuccess) return NULL;
  if (cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice) == cudaSuccess) return device;
  cudaFree(device);
  return NULL;
}

/* Everything that lies in device memory. */
struct on_device {
  void *a, *a_scales, *gate, *gate_scales, *up, *up_scales, *d, *workspace;
};

static void release(struct on_device* device) {
  cudaFree(device->a);
  cudaFree(device->a_scales);
  cudaFree(device->gate);
  cudaFree(device->gate_scales);
  cudaFree(device->up);
  cudaFree(device->up_scales);
  cudaFree(device->d);
  cudaFree(device->workspace);
}

/* Plans for the GPU, enqueues on a stream and waits for it. `host` says where the operands lie on
 * the host; D receives the result. */
static int run_on_gpu(const dualgemm_problem* problem, const dualgemm_buffers* host, float* d) {
  struct on_device device = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  dualgemm_operand_bytes sizes;
  dualgemm_plan_options options;
  dualgemm_buffers buffers = *host;
  dualgemm_plan* plan = NULL;
  cudaStream_t stream = NULL;
  cudaError_t error = cudaSuccess;
  int64_t workspace_bytes = 0;
  char config[256];
  int result = 1;

  dualgemm_plan_options_init(&options, sizeof options);
  options.device = DUALGEMM_DEVICE_CUDA;
  if (dualgemm_plan_create(problem, &options, &plan) != DUALGEMM_OK) {
    const int unsupported = dualgemm_last_status() == DUALGEMM_UNSUPPORTED;
    fail();
    return unsupported ? NO_GPU : 1;
  }
  dualgemm_plan_config(plan, config, sizeof config, NULL);
  dualgemm_plan_workspace_size(plan, &workspace_bytes);
  sizes.struct_size = sizeof sizes;
  dualgemm_operand_sizes(problem, &sizes);
  printf("%s, %lld bytes of workspace\n", config, (long long)workspace_bytes);

  device.a = to_device(host->a, (size_t)sizes.a);
  device.a_scales = to_device(host->a_scales, (size_t)sizes.a_scales);
  device.gate = to_device(host->gate, (size_t)sizes.gate);
  device.gate_scales = to_device(host->gate_scales, (size_t)sizes.gate_scales);
  device.up = to_device(host->up, (size_t)sizes.up);
  device.up_scales = to_device(host->up_scales, (size_t)sizes.up_scales);
  buffers.a = device.a;
  buffers.a_scales = device.a_scales;
  buffers.gate = device.gate;
  buffers.gate_scales = device.gate_scales;
  buffers.up = device.up;
  buffers.up_scales = device.up_scales;
  error = cudaMalloc(&device.d, (size_t)sizes.d);
  if (error == cudaSuccess) error = cudaMalloc(&device.workspace, (size_t)workspace_bytes + 1);
  if (error == cudaSuccess) error = cudaStreamCreate(&stream);
  if (error != cudaSuccess) {
    fail_cuda(error);
  } else {
    buffers.d = device.d;
    buffers.stream = stream;
    if (dualgemm_run(plan, &buffers, device.workspace, workspace_bytes, NULL) != DUALGEMM_OK) {
      fail(); /* a null operand, too, ends here with a message */
    } else {
      error = cudaMemcpyAsync(d, device.d, (size_t)sizes.d, cudaMemcpyDeviceToHost, stream);
      if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
      result = error == cudaSuccess ? 0 : fail_cuda(error);
    }
  }
  if (stream != NULL) cudaStreamDestroy(stream);
  release(&device);
  dualgemm_plan_destroy(plan);
  return result;
}

int main(void) {
  static uint8_t a[M * K / 2], gate[N * K / 2], up[N * K / 2];
  static uint8_t a_scales[M * K / 16], gate_scales[N * K / 16], up_scales[N * K / 16];
  static float d[M * N], on_cpu[M * N];
  float a_global, gate_global, up_global;
  double worst = 0.0;
  dualgemm_problem problem;
  dualgemm_buffers buffers;
  int i, status;

  if (make_matrix(M, 0.7f, a, a_scales, &a_global) != DUALGEMM_OK) return fail();
  if (make_matrix(N, 0.3f, gate, gate_scales, &gate_global) != DUALGEMM_OK) return fail();
  if (make_matrix(N, 0.9f, up, up_scales, &up_global) != DUALGEMM_OK) return fail();
  dualgemm_problem_init(&problem, sizeof problem);
  problem.m = M;
  problem.n = N;
  problem.k = K;
  problem.d.type = DUALGEMM_F32;
  dualgemm_buffers_init(&buffers, sizeof buffers);
  buffers.a = a;
  buffers.a_scales = a_scales;
  buffers.gate = gate;
  buffers.gate_scales = gate_scales;
  buffers.up = up;
  buffers.up_scales = up_scales;
  buffers.alpha_gate = a_global * gate_global;
  buffers.alpha_up = a_global * up_global;

  status = run_on_gpu(&problem, &buffers, d);
  if (status != 0) return status;
  buffers.d = on_cpu;
  if (dualgemm_run_once(&problem, &buffers, NULL, NULL) != DUALGEMM_OK) return fail();
  for (i = 0; i < M * N; ++i) {
    const double difference = fabs((double)d[i] - on_cpu[i]) / (1.0 + fabs((double)on_cpu[i]));
    if (!(difference <= worst)) worst = difference; /* a NaN stays */
  }
  printf("largest difference from the CPU's result: %.1e\n", worst);
  return worst <= 1e-4 ? 0 : 1;
}
