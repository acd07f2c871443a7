/**
 * @file experts.h
 * The step of a mixture of experts around its products, through the C interface: which rows each
 * expert gets, and the weighted sum of what comes back. dualgemm.h has the rules about structs,
 * errors and threads, experts.hpp says what each function promises. dualgemm_mlp_run() does the
 * whole step in one call (top_k).
 *
 *   // prologue: router
 *   dualgemm_routing_problem routing;
 *   dualgemm_routing_buffers ids;
 *   dualgemm_routing_problem_init(&routing, sizeof routing);
 *   dualgemm_routing_buffers_init(&ids, sizeof ids);
 *   routing.tokens = tokens;
 *   routing.top_k = top_k;
 *   routing.experts = experts;
 *   ids.ids = topk_ids;
 *   ids.offsets = offsets;
 *   ids.row_tokens = row_tokens;
 *   ids.places = places;
 *   if (dualgemm_route_tokens(&routing, &ids, NULL) != DUALGEMM_OK)
 *     return report(dualgemm_last_error_message());
 */
#ifndef DUALGEMM_EXPERTS_H
#define DUALGEMM_EXPERTS_H

#include "dualgemm/quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Stable part ==== */

/** Minimum struct_size: 32 (up to and including experts). */
typedef struct dualgemm_routing_problem {
  uint64_t struct_size;
  int64_t tokens;
  int64_t top_k;         /**< ids of a token, >= 1; default 1; tokens * top_k is below 2^31 */
  int64_t experts;       /**< that have rows here, >= 1; default 1; CUDA: at most 8192 */
  int64_t named_experts; /**< with an expert_map: its length; 0: ids name the experts themselves */
  int32_t wide_ids;      /**< 0 or 1; 1: ids are int64 instead of int32 */
  int32_t weights_type;  /**< F32 (default), F16 or BF16 */
} dualgemm_routing_problem;

/** CUDA: device memory, all of it. Minimum struct_size: 64 (up to and including places). */
typedef struct dualgemm_routing_buffers {
  uint64_t struct_size;
  const void* ids; /**< [tokens][top_k]; one that names no expert is a row of none */
  /** named_experts: [named_experts], each one's number among `experts`; any other: none */
  const int32_t* expert_map;
  const void* weights;      /**< of row_scale: factors of rows, [tokens][top_k]; null: 1 */
  const float* token_scale; /**< of row_scale: factors of tokens, [tokens]; null: 1 */
  int32_t* offsets;         /**< written: [experts + 1]; where each expert's rows begin */
  int32_t* row_tokens;      /**< written: [tokens * top_k]; the token that each row is */
  int32_t* places;          /**< written: [tokens][top_k]; the row of each id, -1: of no expert */
  float* row_scale;         /**< written, optional: [tokens * top_k]; weights * token_scale */
  void* stream;             /**< CUDA: the cudaStream_t; null: the default stream */
} dualgemm_routing_buffers;

DUALGEMM_API dualgemm_status dualgemm_routing_problem_init(dualgemm_routing_problem* problem,
                                                           uint64_t struct_size) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_routing_buffers_init(dualgemm_routing_buffers* buffers,
                                                           uint64_t struct_size) DUALGEMM_NOEXCEPT;

/** options may be null. CUDA: enqueues one launch and returns. */
DUALGEMM_API dualgemm_status dualgemm_route_tokens(
    const dualgemm_routing_problem* problem, const dualgemm_routing_buffers* buffers,
    const dualgemm_execution_options* options) DUALGEMM_NOEXCEPT;

/** Minimum struct_size: 112 (up to and including y). */
typedef struct dualgemm_combine_problem {
  uint64_t struct_size;
  int64_t tokens;
  int64_t top_k;        /**< >= 1; default 1 */
  int64_t cols;         /**< a positive multiple of 16 */
  dualgemm_matrix rows; /**< [tokens * top_k][cols]: BF16 (default), F16 or F32 */
  dualgemm_matrix y;    /**< [tokens][cols]: likewise */
  int32_t weights_type; /**< F32 (default), F16 or BF16 */
  int32_t residual;     /**< 0 or 1; 1: buffers.residual is added, in FP32 and last */
} dualgemm_combine_problem;

/** CUDA: device memory, all of it. Minimum struct_size: 56, all of it. */
typedef struct dualgemm_combine_buffers {
  uint64_t struct_size;
  const void* rows;
  const int32_t* places; /**< [tokens][top_k]; a row that is none adds nothing */
  const void* weights;   /**< [tokens][top_k]; null: all 1 */
  const void* residual;  /**< as y; may be y */
  void* y;
  void* stream; /**< CUDA */
} dualgemm_combine_buffers;

DUALGEMM_API dualgemm_status dualgemm_combine_problem_init(dualgemm_combine_problem* problem,
                                                           uint64_t struct_size) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_combine_buffers_init(dualgemm_combine_buffers* buffers,
                                                           uint64_t struct_size) DUALGEMM_NOEXCEPT;

/**
 * y[t] = sum over j of weights[t][j] * rows[places[t][j]], in FP32, in that order; the bits are the
 * same on every device. options may be null. CUDA: enqueues one launch and returns.
 */
DUALGEMM_API dualgemm_status dualgemm_combine_tokens(
    const dualgemm_combine_problem* problem, const dualgemm_combine_buffers* buffers,
    const dualgemm_execution_options* options) DUALGEMM_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DUALGEMM_EXPERTS_H */
