/**
 * @file quantize.h
 * NVFP4 and back through the C interface, on the host or on the current GPU: batches, groups and
 * every way to find the global scale. dualgemm.h has the rules about structs, errors and threads,
 * quantize.hpp says what each function promises, and docs/formats.md has the recipe.
 *
 *   // prologue: activations
 *   dualgemm_quantize_problem problem;
 *   dualgemm_quantize_buffers buffers;
 *   dualgemm_quantize_problem_init(&problem, sizeof problem);
 *   dualgemm_quantize_buffers_init(&buffers, sizeof buffers);
 *   problem.rows = m;
 *   problem.cols = k;
 *   problem.x.type = DUALGEMM_BF16;
 *   problem.scaling = DUALGEMM_SCALING_ROW;
 *   buffers.x = x;
 *   buffers.codes = codes;
 *   buffers.scales = scales;
 *   buffers.found_scale = row_scale;
 *   if (dualgemm_quantize_tensor(&problem, &buffers, NULL) != DUALGEMM_OK)
 *     return report(dualgemm_last_error_message());
 */
#ifndef DUALGEMM_QUANTIZE_H
#define DUALGEMM_QUANTIZE_H

#include "dualgemm/dualgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Stable part ==== */

/** x[l][rows][cols] and the same as NVFP4, q. Minimum struct_size: 24 (up to and including cols).
 */
typedef struct dualgemm_quantize_problem {
  uint64_t struct_size;
  int64_t rows;          /**< of a batch or a masked expert; contiguous groups: in total */
  int64_t cols;          /**< a positive multiple of 16 */
  int64_t l;             /**< batches or experts, >= 1; default 1 */
  dualgemm_matrix x;     /**< F16 (default), BF16 or F32 */
  dualgemm_matrix q;     /**< E2M1; what dualgemm_problem.a is for the same m, k, l, grouping */
  int32_t grouping;      /**< default DUALGEMM_GROUPING_NONE */
  int32_t scaling;       /**< DUALGEMM_SCALING_...; default DUALGEMM_SCALING_TENSOR */
  int32_t four_over_six; /**< 0 or 1; per block also try amax/4, keep the lower error */
  int32_t reserved;      /**< must be 0 */
  /** 0, or 16, 32, 64, 128, 256: each so many columns are multiplied by a Hadamard matrix before
   *  they are quantised; quantize.hpp, RowTransform */
  int64_t hadamard;
  /** 0 or 1; 1: x is multiplied by buffers.column_factors before that (AWQ's pre_quant_scale) */
  int32_t has_column_factors;
  int32_t reserved_too; /**< must be 0 */
} dualgemm_quantize_problem;

/**
 * Where x, codes and scales lie, for quantising. Minimum struct_size: 48 (up to and including
 * found_scale). CUDA: device memory, all of it.
 */
typedef struct dualgemm_quantize_buffers {
  uint64_t struct_size;
  const void* x;
  uint8_t* codes;
  uint8_t* scales;
  const float* global_scale;     /**< given: [1], or [l] per batch; else null */
  float* found_scale;            /**< written: tensor [1], row [l][rows]; else null */
  const int32_t* expert_rows;    /**< masked: [l]; CUDA: cut to 0 .. rows */
  const int32_t* expert_offsets; /**< contiguous: [l+1]; CUDA: cut to 0 .. rows */
  const int32_t* row_experts;    /**< contiguous, instead of offsets: [rows], -1 = unwanted row */
  void* workspace;               /**< dualgemm_quantize_bytes.workspace, aligned to 64 */
  int64_t workspace_bytes;
  void* stream;                /**< CUDA: the cudaStream_t; null: the default stream */
  const float* column_factors; /**< has_column_factors: [cols]; else null */
} dualgemm_quantize_buffers;

/** The same for the way back. Minimum struct_size: 40 (up to and including x). */
typedef struct dualgemm_dequantize_buffers {
  uint64_t struct_size;
  const uint8_t* codes;
  const uint8_t* scales;
  const float* global_scale; /**< [1], per batch [l], row [l][rows] */
  void* x;
  const int32_t* expert_rows;
  const int32_t* expert_offsets;
  const int32_t* row_experts;
  void* stream;
} dualgemm_dequantize_buffers;

/** How a call runs. Minimum struct_size: 16. All defaults are 0. */
typedef struct dualgemm_execution_options {
  uint64_t struct_size;
  int32_t device;           /**< DUALGEMM_DEVICE_AUTO: the CPU */
  int32_t threads;          /**< CPU; 0 = all usable cores */
  int32_t trusted_pointers; /**< CUDA, 0 or 1; 1: the driver is not asked where pointers belong */
  int32_t reserved;         /**< must be 0 */
} dualgemm_execution_options;

/** Bytes that each array must have; 0 = not needed. Minimum struct_size: 48. */
typedef struct dualgemm_quantize_bytes {
  uint64_t struct_size;
  int64_t x;
  int64_t codes;
  int64_t scales;
  int64_t global_scale; /**< or found_scale */
  int64_t workspace;
} dualgemm_quantize_bytes;

DUALGEMM_API dualgemm_status dualgemm_quantize_problem_init(dualgemm_quantize_problem* problem,
                                                            uint64_t struct_size) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_quantize_buffers_init(dualgemm_quantize_buffers* buffers,
                                                            uint64_t struct_size) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_dequantize_buffers_init(
    dualgemm_dequantize_buffers* buffers, uint64_t struct_size) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_execution_options_init(
    dualgemm_execution_options* options, uint64_t struct_size) DUALGEMM_NOEXCEPT;

/**
 * Every rule of the problem that needs no address; groups: null, or buffers of which expert_rows,
 * expert_offsets and row_experts are checked and their numbers read: host memory. The CPU's calls
 * do so by themselves; on a GPU calls do not check the numbers, and kernels clamp what is invalid.
 */
DUALGEMM_API dualgemm_status dualgemm_quantize_validate(const dualgemm_quantize_problem* problem,
                                                        const dualgemm_quantize_buffers* groups)
    DUALGEMM_NOEXCEPT;

DUALGEMM_API dualgemm_status dualgemm_quantize_sizes(const dualgemm_quantize_problem* problem,
                                                     int32_t device, dualgemm_quantize_bytes* sizes)
    DUALGEMM_NOEXCEPT;

/**
 * x -> codes, scales and, where it is found, the global scale. options may be null. NaN and
 * infinity in x are no error: their blocks, or with a found scale all that shares it, become NaN;
 * a given scale lets infinity saturate. CUDA: enqueues one launch, two for
 * DUALGEMM_SCALING_TENSOR, and returns.
 */
DUALGEMM_API dualgemm_status dualgemm_quantize_tensor(
    const dualgemm_quantize_problem* problem, const dualgemm_quantize_buffers* buffers,
    const dualgemm_execution_options* options) DUALGEMM_NOEXCEPT;

/** The inverse: e2m1 * e4m3 * global scale, rounded to FP32, then to x.type. */
DUALGEMM_API dualgemm_status dualgemm_dequantize_tensor(
    const dualgemm_quantize_problem* problem, const dualgemm_dequantize_buffers* buffers,
    const dualgemm_execution_options* options) DUALGEMM_NOEXCEPT;

/** Rows of x transformed, not quantised: quantize.hpp, RowTransform. Minimum struct_size: 24. */
typedef struct dualgemm_transform_problem {
  uint64_t struct_size;
  int64_t rows;
  int64_t cols;               /**< a positive multiple of 16 */
  int64_t l;                  /**< batches, >= 1; default 1 */
  dualgemm_matrix x;          /**< F16 (default), BF16 or F32 */
  dualgemm_matrix y;          /**< of the same type; default F16 */
  int64_t hadamard;           /**< as in dualgemm_quantize_problem, and so the next one */
  int32_t has_column_factors; /**< 0 or 1 */
  int32_t reserved;           /**< must be 0 */
} dualgemm_transform_problem;
/** Minimum struct_size: 40, all of it. */
typedef struct dualgemm_transform_buffers {
  uint64_t struct_size;
  const void* x;
  const float* column_factors; /**< has_column_factors: [cols]; else null */
  void* y;                     /**< x itself, where both lie alike; else apart from it */
  void* stream;                /**< CUDA */
} dualgemm_transform_buffers;

DUALGEMM_API dualgemm_status dualgemm_transform_problem_init(
    dualgemm_transform_problem* problem, uint64_t struct_size) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_transform_buffers_init(
    dualgemm_transform_buffers* buffers, uint64_t struct_size) DUALGEMM_NOEXCEPT;

/** y = x transformed. options may be null. CUDA: enqueues one launch and returns. */
DUALGEMM_API dualgemm_status dualgemm_transform_rows(
    const dualgemm_transform_problem* problem, const dualgemm_transform_buffers* buffers,
    const dualgemm_execution_options* options) DUALGEMM_NOEXCEPT;

/** How the scales of l batches lie; 0 in a stride means "tight". Never grows. */
typedef struct dualgemm_scale_placement {
  int32_t layout;
  int32_t reserved; /**< must be 0 */
  int64_t ld;       /**< linear: scales between rows; swizzled: must be 0 */
  int64_t batch_stride;
} dualgemm_scale_placement;

/** Minimum struct_size: 80, all of it. */
typedef struct dualgemm_scale_conversion {
  uint64_t struct_size;
  int64_t rows;
  int64_t sf_cols; /**< k / 16 */
  int64_t l;
  dualgemm_scale_placement from;
  dualgemm_scale_placement to;
} dualgemm_scale_conversion;

/**
 * Rewrites scales; swizzled padding of dst becomes 0, what lies between its rows is not touched.
 * stream: CUDA. options may be null.
 */
DUALGEMM_API dualgemm_status dualgemm_convert_tensor_scales(
    const dualgemm_scale_conversion* conversion, const uint8_t* src, uint8_t* dst, void* stream,
    const dualgemm_execution_options* options) DUALGEMM_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DUALGEMM_QUANTIZE_H */
