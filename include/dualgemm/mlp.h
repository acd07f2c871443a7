/**
 * @file mlp.h
 * A whole gated MLP, dense or of experts, from 16 bits to 16 bits, through the C interface.
 * dualgemm.h has the rules about structs, errors and threads, mlp.hpp says what is computed and
 * what each function promises.
 *
 *   // prologue: mlp_operands
 *   dualgemm_mlp_problem problem;
 *   dualgemm_mlp_buffers buffers;
 *   dualgemm_mlp* mlp;
 *   dualgemm_workspace* workspace;
 *   dualgemm_mlp_problem_init(&problem, sizeof problem);
 *   dualgemm_mlp_buffers_init(&buffers, sizeof buffers);
 *   problem.m = m;
 *   problem.hidden = hidden;
 *   problem.intermediate = intermediate;
 *   buffers.x = x;
 *   buffers.gate = gate;
 *   buffers.gate_scales = gate_scales;
 *   buffers.up = up;
 *   buffers.up_scales = up_scales;
 *   buffers.down = down;
 *   buffers.down_scales = down_scales;
 *   buffers.alpha_gate = alpha_gate;
 *   buffers.alpha_up = alpha_up;
 *   buffers.alpha_down = alpha_down;
 *   buffers.y = y;
 *   if (dualgemm_mlp_create(&problem, NULL, &mlp) != DUALGEMM_OK)
 *     return report(dualgemm_last_error_message());
 *   if (dualgemm_mlp_workspace_create(mlp, &workspace) != DUALGEMM_OK)
 *     return report(dualgemm_last_error_message());
 *   if (dualgemm_mlp_run(mlp, &buffers, dualgemm_workspace_data(workspace),
 *                        dualgemm_workspace_size(workspace)) != DUALGEMM_OK)
 *     return report(dualgemm_last_error_message());
 *   dualgemm_workspace_destroy(workspace);
 *   dualgemm_mlp_destroy(mlp);
 */
#ifndef DUALGEMM_MLP_H
#define DUALGEMM_MLP_H

#include "dualgemm/dualgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Stable part ==== */

/** What to compute. Minimum struct_size: 32 (up to and including intermediate). */
typedef struct dualgemm_mlp_problem {
  uint64_t struct_size;
  int64_t m;            /**< rows of X and Y (contiguous groups: in total) */
  int64_t hidden;       /**< columns of X, Gate, Up and Y; a positive multiple of 16 */
  int64_t intermediate; /**< rows of Gate and Up, columns of Down; a positive multiple of 16 */
  int64_t l;            /**< batches or experts, >= 1; default 1 */
  dualgemm_matrix x;    /**< BF16 (default) or F16; where no kernel of a GPU reads it, F32 */
  dualgemm_matrix gate; /**< always E2M1; default tight, linear scales; so for the next two */
  dualgemm_matrix up;
  dualgemm_matrix down;
  dualgemm_matrix y; /**< BF16 (default), F16 or F32 */
  dualgemm_activation act;
  int32_t grouping;
  int32_t bias;            /**< DUALGEMM_BIAS_*, of all three; default none */
  int32_t residual;        /**< 0 or 1; 1: buffers.residual is added, in FP32 and last */
  int32_t batch_invariant; /**< 0 or 1, as in dualgemm_problem */
  int32_t quantize_x;      /**< 0 or 1; 1: X to NVFP4 first */
  int32_t quantize_h;      /**< 0 or 1; 1: H to NVFP4, by h_scaling */
  int32_t x_scaling; /**< quantize_x: DUALGEMM_SCALING_ROW (default), _GIVEN, _GIVEN_PER_BATCH */
  int32_t reserved;  /**< must be 0 */
  /** 0 or 1; 1: no gate, H = act(alpha_up * X * Up^T + bias_up), with an act of one product
   *  (linear.h); `gate` is then the default, and what is Gate's among the buffers null. */
  int32_t without_gate;
  int32_t reserved_too; /**< must be 0 */
  int64_t x_hadamard;   /**< 0, or the size of a Hadamard transform of X; then of H */
  int64_t h_hadamard;
  /** 0 or 1; 1: X is multiplied by buffers.x_column_factors before that; mlp.hpp, x_transform */
  int32_t has_x_column_factors;
  int32_t has_h_column_factors; /**< likewise H, by buffers.h_column_factors */
  /**
   * A mixture's experts with a router: ids of a token. m counts tokens then, l experts, grouping is
   * none; mlp.hpp has the formula. 0, the default: rows are as `grouping` says.
   */
  int64_t top_k;
  int64_t named_experts;    /**< as in dualgemm_routing_problem, and so the next two */
  int32_t wide_ids;         /**< 0 or 1 */
  int32_t weights_type;     /**< default DUALGEMM_F32 */
  int32_t weights_on_input; /**< 0 or 1; 1: the weights are factors of Gate's and Up's products */
  int32_t h_scaling;        /**< quantize_h: DUALGEMM_SCALING_GIVEN (default) or _ROW */
} dualgemm_mlp_problem;

/**
 * Where the operands lie; what is not said here is said in dualgemm_buffers. Minimum struct_size:
 * 80 (up to and including y).
 */
typedef struct dualgemm_mlp_buffers {
  uint64_t struct_size;
  const void* x;
  const float* x_global_scale; /**< read: given [1], per batch [l]; else null */
  const void* gate; /**< null is legal where prepared weights are given; so for all six */
  const uint8_t* gate_scales;
  const void* up;
  const uint8_t* up_scales;
  const void* down;
  const uint8_t* down_scales;
  void* y;
  const float* alpha_gate_per_batch; /**< optional [l]; replaces alpha_gate, and so the others */
  const float* alpha_up_per_batch;
  const float* alpha_down_per_batch;
  float alpha_gate; /**< global scale of Gate, times a given one of X; default 1, as the others */
  float alpha_up;   /**< likewise of Up */
  /** likewise of Down, times h_global_scale if H is quantised with it */
  float alpha_down;
  float h_global_scale;  /**< quantize_h: dequantising; finite, > 0; default 1 */
  const void* bias_gate; /**< [l][intermediate] */
  const void* bias_up;
  const void* bias_down; /**< [l][hidden] */
  const void* residual;  /**< as Y; may be Y */
  const int32_t* expert_offsets;
  const int32_t* expert_rows;
  const int32_t* row_experts;
  const dualgemm_prepared_view* prepared_gate_up; /**< of dualgemm_mlp_gate_up() */
  const dualgemm_prepared_view* prepared_down;    /**< of dualgemm_mlp_down() */
  void* stream;
  const float* x_column_factors; /**< has_x_column_factors: [hidden]; else null */
  const float* h_column_factors; /**< has_h_column_factors: [intermediate]; else null */
  const void* topk_ids; /**< top_k: as ids of dualgemm_routing_buffers, and so the next two */
  const int32_t* expert_map;
  const void* topk_weights; /**< null: all 1 */
} dualgemm_mlp_buffers;

DUALGEMM_API dualgemm_status dualgemm_mlp_problem_init(dualgemm_mlp_problem* problem,
                                                       uint64_t struct_size) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_mlp_buffers_init(dualgemm_mlp_buffers* buffers,
                                                       uint64_t struct_size) DUALGEMM_NOEXCEPT;

/**
 * As dualgemm_validate(): buffers may be null; the numbers of experts' rows are read, and must be
 * host memory. For a GPU pass the host's copy: calls do not check the GPU's own, and kernels clamp
 * what is invalid.
 */
DUALGEMM_API dualgemm_status dualgemm_mlp_validate(
    const dualgemm_mlp_problem* problem, const dualgemm_mlp_buffers* buffers) DUALGEMM_NOEXCEPT;

/** How an MLP will run. Immutable. */
typedef struct dualgemm_mlp dualgemm_mlp;

/**
 * As dualgemm_plan_create(): options may be null; their strategy and config must be left as they
 * are. On success *mlp must be freed with dualgemm_mlp_destroy(); on failure it is null.
 */
DUALGEMM_API dualgemm_status dualgemm_mlp_create(const dualgemm_mlp_problem* problem,
                                                 const dualgemm_plan_options* options,
                                                 dualgemm_mlp** mlp) DUALGEMM_NOEXCEPT;
/** Frees; null is legal. */
DUALGEMM_API void dualgemm_mlp_destroy(dualgemm_mlp* mlp) DUALGEMM_NOEXCEPT;

/** Bytes of workspace that dualgemm_mlp_run() demands, aligned to 64. */
DUALGEMM_API dualgemm_status dualgemm_mlp_workspace_size(const dualgemm_mlp* mlp,
                                                         int64_t* bytes) DUALGEMM_NOEXCEPT;
/** As dualgemm_workspace_create(). */
DUALGEMM_API dualgemm_status dualgemm_mlp_workspace_create(
    const dualgemm_mlp* mlp, dualgemm_workspace** workspace) DUALGEMM_NOEXCEPT;

/** As dualgemm_plan_explain(), for each step. */
DUALGEMM_API dualgemm_status dualgemm_mlp_explain(const dualgemm_mlp* mlp, char* buffer,
                                                  size_t capacity,
                                                  size_t* required) DUALGEMM_NOEXCEPT;

/**
 * The plans of the two products, for dualgemm_prepare() and the like; they belong to `mlp` and live
 * as long. Null: mlp is null.
 */
DUALGEMM_API const dualgemm_plan* dualgemm_mlp_gate_up(const dualgemm_mlp* mlp) DUALGEMM_NOEXCEPT;
DUALGEMM_API const dualgemm_plan* dualgemm_mlp_down(const dualgemm_mlp* mlp) DUALGEMM_NOEXCEPT;
/** What preparing reads of `buffers`, for the plan of that product. */
DUALGEMM_API dualgemm_status
dualgemm_mlp_gate_up_weights(const dualgemm_mlp* mlp, const dualgemm_mlp_buffers* buffers,
                             dualgemm_buffers* weights) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_mlp_down_weights(const dualgemm_mlp* mlp,
                                                       const dualgemm_mlp_buffers* buffers,
                                                       dualgemm_buffers* weights) DUALGEMM_NOEXCEPT;

/**
 * Runs at most four steps, two more with top_k. Validates first; on any error nothing is written.
 * workspace: as that of dualgemm_run(). CUDA: enqueues and returns; may be recorded in a graph.
 */
DUALGEMM_API dualgemm_status dualgemm_mlp_run(const dualgemm_mlp* mlp,
                                              const dualgemm_mlp_buffers* buffers, void* workspace,
                                              int64_t workspace_bytes) DUALGEMM_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DUALGEMM_MLP_H */
