/**
 * @file linear.h
 * One product, D = act(alpha * A * W^T + bias) + residual, through the C interface, with the
 * formats, layouts, groups, outputs and prepared weights of the dual one. dualgemm.h has the rules
 * about structs, errors and threads, linear.hpp says how W's two halves become a dual product.
 *
 *   // prologue: linear_operands
 *   dualgemm_linear_problem problem;
 *   dualgemm_linear_buffers buffers;
 *   dualgemm_linear_problem_init(&problem, sizeof problem);
 *   dualgemm_linear_buffers_init(&buffers, sizeof buffers);
 *   problem.m = m;
 *   problem.n = n;
 *   problem.k = k;
 *   buffers.a = a;
 *   buffers.a_scales = a_scales;
 *   buffers.w = w;
 *   buffers.w_scales = w_scales;
 *   buffers.alpha = alpha;
 *   buffers.d = d;
 *   if (dualgemm_linear_run_once(&problem, &buffers, NULL, NULL) != DUALGEMM_OK)
 *     return report(dualgemm_last_error_message());
 */
#ifndef DUALGEMM_LINEAR_H
#define DUALGEMM_LINEAR_H

#include "dualgemm/dualgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Stable part ==== */

/** What to compute. Minimum struct_size: 32 (up to and including k). */
typedef struct dualgemm_linear_problem {
  uint64_t struct_size;
  int64_t m;         /**< rows of A and D (contiguous groups: in total) */
  int64_t n;         /**< rows of W, columns of D */
  int64_t k;         /**< columns of A and W; a positive multiple of 16 */
  int64_t l;         /**< batches or experts, >= 1; default 1 */
  dualgemm_matrix a; /**< m x k; default E2M1, tight, linear scales */
  dualgemm_matrix w; /**< n x k, always E2M1; default tight, linear scales */
  dualgemm_matrix d; /**< m x n; default F16. E2M1: n % 16 == 0, no residual */
  int32_t grouping;
  int32_t batch_invariant; /**< 0 or 1, as in dualgemm_problem */
  int32_t bias;            /**< DUALGEMM_BIAS_*: the type of buffers.bias; default none */
  int32_t residual;        /**< 0 or 1; 1: buffers.residual is added, in FP32 and last */
  /** Default DUALGEMM_IDENTITY, also where struct_size ends before it. Not one of the two SwiGLU
   *  kinds: silu(x) is x * sigmoid(x), before the residual is added. */
  dualgemm_activation act;
  int64_t a_rows; /**< as in dualgemm_problem */
} dualgemm_linear_problem;

/**
 * Where the operands lie; what is not said here is said in dualgemm_buffers. Minimum struct_size:
 * 72 (up to and including d).
 */
typedef struct dualgemm_linear_buffers {
  uint64_t struct_size;
  const void* a;
  const uint8_t* a_scales;
  const float* a_row_scale;
  const void* w; /**< null is legal when prepared weights are given; so for the next one */
  const uint8_t* w_scales;
  const float* alpha_per_batch; /**< optional [l]; replaces alpha */
  float alpha;                  /**< dequantising global scale of A times that of W; default 1 */
  float d_global_scale;         /**< default 1 */
  void* d;
  uint8_t* d_scales;
  const void* bias;     /**< [l][n] */
  const void* residual; /**< as D; may be D */
  const int32_t* expert_offsets;
  const int32_t* expert_rows;
  const int32_t* row_experts;
  const dualgemm_prepared* prepared;
  const dualgemm_prepared_view* prepared_view;
  void* stream;
  const int32_t* a_row_index; /**< a_rows > 0: [m]; else null */
} dualgemm_linear_buffers;

DUALGEMM_API dualgemm_status dualgemm_linear_problem_init(dualgemm_linear_problem* problem,
                                                          uint64_t struct_size) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_linear_buffers_init(dualgemm_linear_buffers* buffers,
                                                          uint64_t struct_size) DUALGEMM_NOEXCEPT;

/**
 * The dual problem that computes it, for every function of dualgemm.h that takes one: plans,
 * operand sizes. dual->struct_size must be sizeof *dual, as dualgemm_problem_init() sets it. An
 * error is about `problem` itself.
 */
DUALGEMM_API dualgemm_status dualgemm_linear_dual_problem(const dualgemm_linear_problem* problem,
                                                          dualgemm_problem* dual) DUALGEMM_NOEXCEPT;

/** The buffers that go with it, for dualgemm_prepare() and dualgemm_run(); nothing is copied but
 *  the pointers. */
DUALGEMM_API dualgemm_status dualgemm_linear_dual_buffers(const dualgemm_linear_problem* problem,
                                                          const dualgemm_linear_buffers* buffers,
                                                          dualgemm_buffers* dual) DUALGEMM_NOEXCEPT;

/** As dualgemm_validate(); buffers may be null. */
DUALGEMM_API dualgemm_status dualgemm_linear_validate(const dualgemm_linear_problem* problem,
                                                      const dualgemm_linear_buffers* buffers)
    DUALGEMM_NOEXCEPT;

/** As dualgemm_plan_create(); options may be null. */
DUALGEMM_API dualgemm_status dualgemm_linear_plan_create(const dualgemm_linear_problem* problem,
                                                         const dualgemm_plan_options* options,
                                                         dualgemm_plan** plan) DUALGEMM_NOEXCEPT;

/** As dualgemm_run_once(): options and info may be null. */
DUALGEMM_API dualgemm_status dualgemm_linear_run_once(const dualgemm_linear_problem* problem,
                                                      const dualgemm_linear_buffers* buffers,
                                                      const dualgemm_plan_options* options,
                                                      dualgemm_run_info* info) DUALGEMM_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DUALGEMM_LINEAR_H */
