/**
 * @file dualgemm.h
 * C interface of nvfp4_dual_gemm, compiled as C99 and later.
 *
 *   D[l] = act(alpha_gate * A[l] * Gate[l]^T + bias_gate[l])
 *          (*) (alpha_up * A[l] * Up[l]^T + bias_up[l])
 *   A: m x k    Gate, Up: n x k    D: m x n    all row-major; k (for D: n) is contiguous
 *   bias_gate, bias_up: n, the same for each row; optional
 *
 * Sizes, strides and leading dimensions count elements unless the name ends in _bytes; scale
 * strides count scales, one byte each. docs/formats.md has the pictures of NVFP4 and of the scale
 * layouts.
 *
 * Structs. The first field of each is struct_size. A caller sets it with the init function (or by
 * hand to sizeof); the library uses it to serve callers built against an older or newer header.
 * - Smaller than this library's struct: the missing fields have their defaults.
 * - Larger, and all bytes beyond this library's struct are 0: accepted.
 * - Larger, and any of these bytes is not 0: DUALGEMM_INVALID_ARGUMENT; a wish would be ignored.
 * - Below the struct's documented minimum, above 4096, or no multiple of 8:
 *   DUALGEMM_INVALID_ARGUMENT.
 * - A struct that the library fills in is written up to the smaller of the two sizes; struct_size
 *   and the bytes beyond stay as they are.
 *
 * Errors. Functions that can fail return a dualgemm_status. The text of the last such call of the
 * calling thread is held by that thread: dualgemm_last_error_message() and its three parts. On
 * failure outputs are not written, except where a function says so. Nothing here prints, aborts,
 * exits or throws. A null pointer where none is allowed is DUALGEMM_INVALID_ARGUMENT.
 *
 * Threads. Every function may be called from any thread at any time. Plans and prepared weights are
 * immutable and may be shared between threads; a workspace and the outputs of a run may not. On a
 * CPU a calling thread needs DUALGEMM_MIN_STACK bytes of stack; on a GPU, what CUDA's driver needs.
 * Where memory ends, a call returns DUALGEMM_OUT_OF_MEMORY, perhaps without a text.
 */
#ifndef DUALGEMM_DUALGEMM_H
#define DUALGEMM_DUALGEMM_H

#include <stddef.h>
#include <stdint.h>

#include "dualgemm/constants.h"
#include "dualgemm/formats.h"
#include "dualgemm/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Stable part; its constants: constants.h, NVFP4 data: formats.h ==== */

/** Stack of a thread that calls, bytes: pthread_attr_setstacksize() with at least so many. */
#define DUALGEMM_MIN_STACK 65536

/* ---- version and errors ---- */

/** Version of the library that runs, e.g. "0.1.0"; static storage. */
DUALGEMM_API const char* dualgemm_version(void) DUALGEMM_NOEXCEPT;
/** The same as a number: major * 10000 + minor * 100 + patch. Compare with DUALGEMM_VERSION_* of
 * version.h. */
DUALGEMM_API int32_t dualgemm_version_number(void) DUALGEMM_NOEXCEPT;

/** "ok", "invalid_argument", ...; "unknown" for any other number. Static storage, never null. */
DUALGEMM_API const char* dualgemm_status_name(dualgemm_status status) DUALGEMM_NOEXCEPT;

/**
 * What the last function that returned a dualgemm_status on this thread reported. Message pattern:
 * "argument: observed; rule", e.g. "k: 4090; must be a multiple of 16"; "ok" after success, and the
 * three parts are "" then. Never null; the text is valid until the next such call on this thread.
 */
DUALGEMM_API dualgemm_status dualgemm_last_status(void) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_last_error_message(void) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_last_error_argument(void) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_last_error_observed(void) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_last_error_rule(void) DUALGEMM_NOEXCEPT;

/* ---- names ---- */

/** As the command line spells them ("e2m1", "swizzled_128x4"); "unknown" for any other number. */
DUALGEMM_API const char* dualgemm_data_type_name(int32_t data_type) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_scale_layout_name(int32_t scale_layout) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_activation_name(int32_t activation_kind) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_combine_name(int32_t combine) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_grouping_name(int32_t grouping) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_bias_name(int32_t bias) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_strategy_name(int32_t strategy) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_device_name(int32_t device) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_isa_name(int32_t isa) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_regime_name(int32_t regime) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_preparation_name(int32_t preparation) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_prepared_format_name(int32_t prepared_format) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_global_scaling_name(int32_t scaling) DUALGEMM_NOEXCEPT;

/** The inverse. DUALGEMM_INVALID_ARGUMENT lists the legal names. */
DUALGEMM_API dualgemm_status dualgemm_parse_data_type(const char* name,
                                                      int32_t* data_type) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_scale_layout(const char* name,
                                                         int32_t* scale_layout) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_activation(const char* name,
                                                       int32_t* activation_kind) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_combine(const char* name,
                                                    int32_t* combine) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_grouping(const char* name,
                                                     int32_t* grouping) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_bias(const char* name, int32_t* bias) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_strategy(const char* name,
                                                     int32_t* strategy) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_device(const char* name,
                                                   int32_t* device) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_isa(const char* name, int32_t* isa) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_global_scaling(const char* name,
                                                           int32_t* scaling) DUALGEMM_NOEXCEPT;

/* ---- problem and buffers ---- */

/** How one operand lies in memory; 0 in any stride means "tight". Never grows. */
typedef struct dualgemm_matrix {
  int32_t type;         /**< element type */
  int32_t scale_layout; /**< E2M1 only */
  int64_t ld;           /**< elements between rows; tight = columns. E2M1: even */
  int64_t batch_stride; /**< elements between batches; tight = rows * ld. E2M1: even */
  int64_t scale_ld; /**< linear: scales between rows; tight = columns / 16. Swizzled: must be 0 */
  int64_t scale_batch_stride; /**< scales between batches; tight = dualgemm_scale_span() */
} dualgemm_matrix;

/**
 * The two SwiGLU kinds have parameters; NaN, as dualgemm_problem_init() sets them, means not given,
 * and then the kind's default counts:
 *
 *                             alpha    beta    limit
 *   DUALGEMM_CLAMPED_SWIGLU   1        0       must be given
 *   DUALGEMM_SWIGLU_OAI       1.702    1       7
 *
 * Given: alpha finite and not 0, beta finite, limit > 0 (+infinity: no clamping). Fields that an
 * initialiser in C left out are 0. So 0 in alpha or limit, where it is no legal value, means not
 * given, too, and {.kind = DUALGEMM_SWIGLU_OAI} has all defaults. A beta of 0 is legal: it counts
 * for DUALGEMM_CLAMPED_SWIGLU; beside an alpha or a limit DUALGEMM_SWIGLU_OAI refuses it, as it may
 * have been forgotten (clamped_swiglu with beta 0 is the same formula). Any other kind takes no
 * parameters: not given, or 1, 0 and +infinity, which change nothing. Never grows.
 */
typedef struct dualgemm_activation {
  int32_t kind;
  float alpha;
  float beta;
  float limit;
} dualgemm_activation;

/** What to compute. Minimum struct_size: 32 (up to and including k). */
typedef struct dualgemm_problem {
  uint64_t struct_size;
  int64_t m;            /**< rows of A and D, >= 1 (contiguous groups: in total) */
  int64_t n;            /**< rows of Gate and of Up, columns of D, >= 1 */
  int64_t k;            /**< columns of A, Gate and Up; a positive multiple of 16 */
  int64_t l;            /**< batches or experts, >= 1; default 1 */
  dualgemm_matrix a;    /**< m x k; default E2M1, tight, linear scales */
  dualgemm_matrix gate; /**< n x k, always E2M1; default tight, linear scales */
  dualgemm_matrix up;   /**< n x k, always E2M1; default tight, linear scales */
  dualgemm_matrix d;    /**< m x n; default F16. E2M1: quantised on the way out, n % 16 == 0 */
  dualgemm_activation act;
  int32_t grouping;
  int32_t batch_invariant; /**< 0 or 1; 1: bits of row i depend on neither m nor the ISA */
  int32_t bias;     /**< DUALGEMM_BIAS_*: the type of bias_gate and bias_up, both; default none */
  int32_t reserved; /**< must be 0 */
  int64_t bias_stride; /**< elements from one batch's bias to the next; tight = n */
  /**
   * DUALGEMM_COMBINE_SIDE_BY_SIDE: two products that share A, without an activation; act must be
   * the default. D has up_column + n columns: the first up_column of alpha_gate * A * Gate^T +
   * bias_gate, then those of alpha_up * A * Up^T + bias_up. 0 <= up_column <= n, and a multiple of
   * 16 where D is E2M1. linear.h makes such problems of one product.
   * DUALGEMM_COMBINE_ACTIVATED_SIDE_BY_SIDE: act of both, before the residual; act is not one of
   * the two SwiGLU kinds. Glu: up_column must be 0.
   */
  int64_t up_column;
  int32_t combine;  /**< default DUALGEMM_COMBINE_GLU */
  int32_t residual; /**< 0 or 1; 1: side by side; buffers.residual is added last; D is not E2M1 */
  /**
   * Contiguous groups: A has so many rows, and row i of the products is row buffers.a_row_index[i]
   * of them, as a token's is of several experts. Scales of A, swizzled ones, too, are those of one
   * matrix. 0, the default: A has m rows, in order.
   */
  int64_t a_rows;
} dualgemm_problem;

/** Weights that dualgemm_prepare() brought into a strategy's own order. */
typedef struct dualgemm_prepared dualgemm_prepared;

/**
 * What prepared weights are as bytes: l parts of the same size, one for each expert (or batch), one
 * after the other. A part is a header of DUALGEMM_PREPARED_HEADER_BYTES, which says what follows,
 * and the expert's gate and up. There is no address in it and nothing that depends on the machine,
 * on threads or on the other parts: bytes may be copied, saved, cut into parts and put together
 * from parts. Expert e's part begins at e * expert_bytes. docs/formats.md, "Prepared weights", has
 * every byte. Never grows.
 */
typedef struct dualgemm_prepared_descriptor {
  int32_t format;  /**< DUALGEMM_PREPARED_*: decides the plans that they fit */
  int32_t version; /**< of the format */
  int64_t n;
  int64_t k;
  int64_t l;            /**< parts */
  int64_t expert_bytes; /**< of a part, header included */
  int64_t bytes;        /**< of all: l * expert_bytes */
  int64_t alignment;    /**< of the address: 64 for a CPU's formats, 256 for a GPU's */
  int64_t columns;      /**< of D, where gate and up were cut from one matrix (linear.h); else 0 */
} dualgemm_prepared_descriptor;

/** Such bytes in memory of the caller's. Never grows. */
typedef struct dualgemm_prepared_view {
  dualgemm_prepared_descriptor descriptor;
  const void* memory; /**< of the host, or for a GPU's formats of the GPU */
  int64_t bytes;      /**< that lie there; at least descriptor.bytes */
} dualgemm_prepared_view;

/**
 * Where the operands lie. dualgemm_operand_sizes() says how many bytes each must have. No byte of
 * padding is read for its value and nothing but D (and d_scales) is written. Minimum struct_size:
 * 112 (up to and including d).
 */
typedef struct dualgemm_buffers {
  uint64_t struct_size;
  const void* a;
  const uint8_t* a_scales;  /**< E4M3; required when A is E2M1, else null */
  const float* a_row_scale; /**< optional, one factor per row of A: [l*m], contiguous groups [m] */
  const void* gate; /**< null is legal when prepared weights are given; so for the next three */
  const uint8_t* gate_scales;
  const void* up;
  const uint8_t* up_scales;
  float alpha_gate; /**< dequantising global scale of A times that of Gate; default 1 */
  float alpha_up;   /**< dequantising global scale of A times that of Up; default 1 */
  const float* alpha_gate_per_batch; /**< optional [l]; replaces alpha_gate */
  const float* alpha_up_per_batch;   /**< optional [l]; replaces alpha_up */
  /** contiguous groups: [l+1], first 0, last at most m (rows from there on are of no expert),
   *  non-decreasing; cuda: read and cut on the device */
  const int32_t* expert_offsets;
  const int32_t* expert_rows; /**< masked groups: [l], each 0 .. m; cuda: likewise */
  void* d;
  uint8_t* d_scales;    /**< required when D is E2M1, else null; swizzled padding becomes 0 */
  float d_global_scale; /**< D = e2m1 * e4m3 * d_global_scale; finite, > 0; default 1 */
  int32_t reserved;     /**< must be 0 */
  /**
   * Prepared weights, for a plan that was made for them, by a handle or by a view (below):
   * what dualgemm_plan_prepared_descriptor() says of the plan, and CUDA: of its GPU.
   */
  const dualgemm_prepared* prepared;
  void* stream; /**< CUDA: the cudaStream_t; null: the default stream. All pointers are device
                   memory then */
  const dualgemm_prepared_view* prepared_view; /**< its bytes are read until the run has passed */
  /**
   * Required when the problem has a bias, else null: [l][n] numbers of that type, one after the
   * other, at a multiple of their size. Added in one FP32 addition to alpha * row scale * product,
   * before the activation. NaN and infinity go into D as that addition and the activation make
   * them.
   */
  const void* bias_gate;
  const void* bias_up;
  /**
   * Required when the problem has a residual, else null: laid out as D is, of its type. It may be
   * D itself; else it must not overlap it.
   */
  const void* residual;
  /**
   * Contiguous groups, instead of expert_offsets: [m], the expert of each row. A row with -1, or
   * any other number outside 0 .. l-1, belongs to no expert and is skipped: what it holds does not
   * matter, and nothing of it is written. Swizzled scales of A and D are then those of one matrix
   * of m rows. Rows of one expert should follow each other.
   */
  const int32_t* row_experts;
  /** Required when the problem has a_rows, else null: [m], each 0 .. a_rows - 1; CUDA: cut to
   *  that range */
  const int32_t* a_row_index;
} dualgemm_buffers;

/** Wishes for the plan. Minimum struct_size: 16. All defaults are 0. */
typedef struct dualgemm_plan_options {
  uint64_t struct_size;
  int32_t strategy;
  int32_t device;
  int32_t isa;
  int32_t
      threads; /**< 0 = as many as pay, within affinity, cgroup quota and DUALGEMM_NUM_THREADS */
  int32_t prepared; /**< 0 or 1; 1: the caller will pass prepared weights to every run */
  int32_t reserved; /**< must be 0 */
  /**
   * CUDA: what to run instead of the library's own choice; null or "": nothing. Either the text of
   * dualgemm_plan_config(), or some of strategy, isa, kernel, tile_m, tile_n, tile_k, stages,
   * k_warpgroups, ctas, for example "tile_m=64,k_warpgroups=2". Read by the call, not kept.
   */
  const char* config;
  /**
   * CUDA, 0 or 1; 1: operands may start at any address, so that there is workspace for copies of
   * all of them. 0: those that are read in place must start at a multiple of 16 bytes; up to 8 rows
   * of A on Hopper: codes of A at 8, halves and weights at 16, scales of the weights at 4.
   */
  int32_t unaligned;
  /**
   * CUDA, 0 or 1; 1: dualgemm_run() does not ask the driver where its pointers and its stream
   * belong; the caller answers for them.
   */
  int32_t trusted_pointers;
} dualgemm_plan_options;

/** Set every default; struct_size: sizeof of the caller's struct. Bytes unknown here become 0. */
DUALGEMM_API dualgemm_status dualgemm_problem_init(dualgemm_problem* problem,
                                                   uint64_t struct_size) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_buffers_init(dualgemm_buffers* buffers,
                                                   uint64_t struct_size) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_plan_options_init(dualgemm_plan_options* options,
                                                        uint64_t struct_size) DUALGEMM_NOEXCEPT;

/** The first broken rule among all that need no run to check; buffers may be null. Reads expert
 *  offsets and rows: host memory. */
DUALGEMM_API dualgemm_status dualgemm_validate(const dualgemm_problem* problem,
                                               const dualgemm_buffers* buffers) DUALGEMM_NOEXCEPT;

/** Bytes that each buffer must have; 0 = not used by this problem. Minimum struct_size: 72. */
typedef struct dualgemm_operand_bytes {
  uint64_t struct_size;
  int64_t a;
  int64_t a_scales;
  int64_t gate;
  int64_t gate_scales;
  int64_t up;
  int64_t up_scales;
  int64_t d;
  int64_t d_scales;
  int64_t a_row_scale; /**< if one is passed */
  int64_t bias_gate;
  int64_t bias_up;
} dualgemm_operand_bytes;

/**
 * Sizes to allocate for a problem. Contiguous groups with swizzled scales of A or D depend on how
 * the rows fall to the experts: the size given suffices for every distribution.
 */
DUALGEMM_API dualgemm_status dualgemm_operand_sizes(
    const dualgemm_problem* problem, dualgemm_operand_bytes* sizes) DUALGEMM_NOEXCEPT;

/* ---- plan, prepare, run ---- */

/** How a problem will run on this machine. Immutable. */
typedef struct dualgemm_plan dualgemm_plan;

/**
 * Chooses how to run `problem` here; options may be null. On success *plan must be freed with
 * dualgemm_plan_destroy(); on failure it is null. DUALGEMM_UNSUPPORTED: the options ask for what
 * this machine, build or strategy cannot do.
 */
DUALGEMM_API dualgemm_status dualgemm_plan_create(const dualgemm_problem* problem,
                                                  const dualgemm_plan_options* options,
                                                  dualgemm_plan** plan) DUALGEMM_NOEXCEPT;
/** Frees; null is legal. */
DUALGEMM_API void dualgemm_plan_destroy(dualgemm_plan* plan) DUALGEMM_NOEXCEPT;

/** Bytes of workspace that dualgemm_run() demands, 64-byte aligned; may be 0. */
DUALGEMM_API dualgemm_status dualgemm_plan_workspace_size(const dualgemm_plan* plan,
                                                          int64_t* bytes) DUALGEMM_NOEXCEPT;

/** Facts of a plan. Minimum struct_size: 16. */
typedef struct dualgemm_plan_info {
  uint64_t struct_size;
  int32_t strategy;
  int32_t device;
  int32_t isa;
  int32_t regime;
  int32_t threads;
  int32_t prepared; /**< 1: dualgemm_run() demands prepared weights; 0: it refuses them */
  int64_t tile_m;   /**< rows of A per tile */
  int64_t tile_n;   /**< columns of D per tile: so many of Gate and of Up */
  int64_t tile_k;   /**< elements along k that are decoded, or staged, at a time */
  int64_t workspace_bytes;
  int64_t prepared_bytes; /**< what dualgemm_prepare() will hold; 0 = nothing to prepare */
  int64_t stages;         /**< CUDA: tiles along k in flight between memory and tensor core */
  int64_t k_warpgroups;   /**< CUDA: what k is divided between: warpgroups, warps or CTAs; 0:
                               nothing, or CTAs with equal shares of tiles */
  int64_t ctas;           /**< CUDA: of a grid that shares the tiles; 0: it follows from them */
  int32_t preparation;    /**< DUALGEMM_PREPARATION_*: what dualgemm_prepare() is to the strategy */
  int32_t reserved;
  char kernel[24]; /**< "tcgen05", "wgmma", "skinny", "w4a16", "mma" ...; CPU: regime, "oracle" */
} dualgemm_plan_info;

DUALGEMM_API dualgemm_status dualgemm_plan_get_info(const dualgemm_plan* plan,
                                                    dualgemm_plan_info* info) DUALGEMM_NOEXCEPT;

/**
 * Copy a text and its closing 0 into buffer[capacity]. *required (may be null) receives the bytes
 * needed, also when capacity is too small: DUALGEMM_INVALID_ARGUMENT then, buffer untouched. A null
 * buffer with capacity 0 asks for *required alone.
 * - config: one word that names the choice, e.g. "cpu_avx512_vnni_fused_tile_t4x16_k512_p2".
 * - explain: some lines; what will run and why, what was rejected and why.
 */
DUALGEMM_API dualgemm_status dualgemm_plan_config(const dualgemm_plan* plan, char* buffer,
                                                  size_t capacity,
                                                  size_t* required) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_plan_explain(const dualgemm_plan* plan, char* buffer,
                                                   size_t capacity,
                                                   size_t* required) DUALGEMM_NOEXCEPT;

/**
 * Does once per weight what the plan's strategy can do once: reads gate, gate_scales, up and
 * up_scales, which may be freed afterwards. On success *prepared must be freed with
 * dualgemm_prepared_destroy(), after the last run that uses it; on failure it is null. CUDA: works
 * on the stream of `buffers` and returns when that is done.
 * DUALGEMM_UNSUPPORTED: prepared_bytes of the plan is 0.
 */
DUALGEMM_API dualgemm_status dualgemm_prepare(const dualgemm_plan* plan,
                                              const dualgemm_buffers* buffers,
                                              dualgemm_prepared** prepared) DUALGEMM_NOEXCEPT;
/** Bytes held. */
DUALGEMM_API dualgemm_status dualgemm_prepared_size(const dualgemm_prepared* prepared,
                                                    int64_t* bytes) DUALGEMM_NOEXCEPT;
/** Frees; null is legal. */
DUALGEMM_API void dualgemm_prepared_destroy(dualgemm_prepared* prepared) DUALGEMM_NOEXCEPT;

/**
 * Prepared weights as bytes of the caller's: in a file that is mapped, in an arena, in a tensor.
 *
 *   // prologue: plan_and_buffers
 *   dualgemm_prepared_descriptor made;
 *   dualgemm_prepared_view view;
 *   if (dualgemm_plan_prepared_descriptor(plan, &made) != DUALGEMM_OK) return report();
 *   if (posix_memalign(&memory, made.alignment, made.bytes) != 0) return 1;
 *   if (dualgemm_prepare_into(plan, &buffers, memory, made.bytes) != DUALGEMM_OK) return report();
 *   // ... written to a file, read again at another place:
 *   if (dualgemm_prepared_open(memory, made.bytes, &view) != DUALGEMM_OK) return report();
 *   buffers.prepared_view = &view;
 *   if (dualgemm_run(plan, &buffers, workspace, bytes, NULL) != DUALGEMM_OK) return report();
 */

/** What prepare makes for a plan. DUALGEMM_UNSUPPORTED: prepared_bytes of the plan is 0. */
DUALGEMM_API dualgemm_status dualgemm_plan_prepared_descriptor(
    const dualgemm_plan* plan, dualgemm_prepared_descriptor* descriptor) DUALGEMM_NOEXCEPT;

/**
 * As dualgemm_prepare(), into descriptor.bytes of the caller's memory at a multiple of
 * descriptor.alignment, apart from the weights; CUDA: device memory. Every byte is written, and
 * depends on the weights' values and the format alone. One expert's part is what a plan with l = 1
 * and the same format makes of that expert.
 */
DUALGEMM_API dualgemm_status dualgemm_prepare_into(const dualgemm_plan* plan,
                                                   const dualgemm_buffers* buffers, void* memory,
                                                   int64_t bytes) DUALGEMM_NOEXCEPT;

/**
 * What prepared bytes are, by their first header. header: DUALGEMM_PREPARED_HEADER_BYTES in memory
 * of the host, at any alignment; bytes: how many there are in all.
 */
DUALGEMM_API dualgemm_status dualgemm_prepared_read_header(
    const void* header, int64_t bytes, dualgemm_prepared_descriptor* descriptor) DUALGEMM_NOEXCEPT;

/**
 * The same for all of the bytes in memory of the host: looks at the header of every part. To run on
 * a GPU copy them to device memory, wait until they are there, and set view->memory to it.
 */
DUALGEMM_API dualgemm_status dualgemm_prepared_open(const void* memory, int64_t bytes,
                                                    dualgemm_prepared_view* view) DUALGEMM_NOEXCEPT;

/** `count` experts from `first` on, for a plan whose l is `count`; some may be all. */
DUALGEMM_API dualgemm_status
dualgemm_prepared_experts(const dualgemm_prepared_view* all, int64_t first, int64_t count,
                          dualgemm_prepared_view* some) DUALGEMM_NOEXCEPT;

/** The bytes of a handle, valid as long as it lives. */
DUALGEMM_API dualgemm_status dualgemm_prepared_get_view(
    const dualgemm_prepared* prepared, dualgemm_prepared_view* view) DUALGEMM_NOEXCEPT;

/**
 * A handle over bytes of the caller's, which must outlive it. For DUALGEMM_STRATEGY_GRAPH on CUDA,
 * which keeps what it has recorded in a handle; for the others a view is as good. As from
 * dualgemm_prepare() otherwise.
 */
DUALGEMM_API dualgemm_status dualgemm_prepared_borrow(
    const dualgemm_prepared_view* view, dualgemm_prepared** prepared) DUALGEMM_NOEXCEPT;

/** Facts about one finished run. Minimum struct_size: 16. */
typedef struct dualgemm_run_info {
  uint64_t struct_size;
  int32_t isa; /**< reported by the kernel that ran, not by the plan */
  int32_t regime;
  int32_t threads; /**< that took part */
  int32_t reserved;
  int64_t intermediate_bytes; /**< written to and read from intermediates */
} dualgemm_run_info;

/**
 * Runs the plan. Validates first; on any error nothing is written. workspace: workspace_bytes bytes
 * at 64-byte alignment, at least dualgemm_plan_workspace_size(); null is legal for 0. info may be
 * null. CUDA: our kernels may be launched so that they overlap the end of the one before them on
 * the stream; they read nothing but prepared weights before it has ended, so that prepared bytes
 * must be there when this is called, not only enqueued before it. A kernel of the caller's that is
 * itself launched with programmatic stream serialization after ours must wait
 * (griddepcontrol.wait) before it writes anything that ours read or reads what ours wrote.
 */
DUALGEMM_API dualgemm_status dualgemm_run(const dualgemm_plan* plan,
                                          const dualgemm_buffers* buffers, void* workspace,
                                          int64_t workspace_bytes,
                                          dualgemm_run_info* info) DUALGEMM_NOEXCEPT;

/** Memory for run(): the plan's bytes, aligned to 64, on the plan's device (CUDA: the current GPU).
 */
typedef struct dualgemm_workspace dualgemm_workspace;

/**
 * Allocates what dualgemm_plan_workspace_size() says. On success *workspace must be freed with
 * dualgemm_workspace_destroy(), CUDA: once the stream has passed the last run that uses it; on
 * failure it is null.
 */
DUALGEMM_API dualgemm_status dualgemm_workspace_create(
    const dualgemm_plan* plan, dualgemm_workspace** workspace) DUALGEMM_NOEXCEPT;
/** For dualgemm_run(): address, null for 0 bytes, and bytes. A null workspace has neither. */
DUALGEMM_API void* dualgemm_workspace_data(const dualgemm_workspace* workspace) DUALGEMM_NOEXCEPT;
DUALGEMM_API int64_t dualgemm_workspace_size(const dualgemm_workspace* workspace) DUALGEMM_NOEXCEPT;
/** Frees; null is legal. */
DUALGEMM_API void dualgemm_workspace_destroy(dualgemm_workspace* workspace) DUALGEMM_NOEXCEPT;

/**
 * Everything in one call: makes the plan, prepares the weights if the options or the strategy
 * demand it and the buffers have none, allocates the workspace, runs, frees. options and info may
 * be null. If the buffers have prepared weights the plan is made with `prepared`. CUDA: returns
 * when the result is there.
 */
DUALGEMM_API dualgemm_status dualgemm_run_once(const dualgemm_problem* problem,
                                               const dualgemm_buffers* buffers,
                                               const dualgemm_plan_options* options,
                                               dualgemm_run_info* info) DUALGEMM_NOEXCEPT;

/* ---- device ---- */

/** What this machine offers. Minimum struct_size: 16. */
typedef struct dualgemm_device_info {
  uint64_t struct_size;
  int32_t kind;
  int32_t cores; /**< available to this process */
  int64_t l1d_bytes;
  int64_t l2_bytes; /**< per core */
  int64_t l3_bytes; /**< shared; 0 = unknown or none */
  int32_t num_isas;
  int32_t isas[15]; /**< supported here, best first; the rest is 0 */
  char name[128];   /**< as the operating system calls it; cut to fit, always closed by 0 */
} dualgemm_device_info;

DUALGEMM_API dualgemm_status dualgemm_get_device_info(dualgemm_device_info* info) DUALGEMM_NOEXCEPT;

/* ==== Experimental part: may change or vanish in any release ==== */

/** The strategies this build knows, in the documentation's order: strategies[capacity], *count =
 * how many. */
DUALGEMM_API dualgemm_status dualgemm_experimental_strategies(int32_t* strategies, size_t capacity,
                                                              size_t* count) DUALGEMM_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DUALGEMM_DUALGEMM_H */
