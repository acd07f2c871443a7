/**
 * @file dualgemm.h
 * C interface of nvfp4_dual_gemm, compiled as C99 and later.
 *
 *   d[l] = act(alpha_gate * a[l] * gate[l]^T) (*) (alpha_up * a[l] * up[l]^T)
 *   a: m x k    gate, up: n x k    d: m x n    all row-major; k (for d: n) is contiguous
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
 * immutable and may be shared between threads; a workspace and the outputs of a run may not.
 */
#ifndef DUALGEMM_DUALGEMM_H
#define DUALGEMM_DUALGEMM_H

#include <stddef.h>
#include <stdint.h>

#include "dualgemm/export.h"
#include "dualgemm/version.h"

#ifdef __cplusplus
#define DUALGEMM_NOEXCEPT noexcept
extern "C" {
#else
#define DUALGEMM_NOEXCEPT
#endif

/* ==== Stable part ==== */

/* ---- constants: the numbers never change, new ones may be added ---- */

#define DUALGEMM_SF_VEC 16 /**< neighbours along k that share one E4M3 block scale */

/** One of the DUALGEMM_* codes below. */
typedef int32_t dualgemm_status;

enum {
  DUALGEMM_OK = 0,
  DUALGEMM_INVALID_ARGUMENT = 1,    /**< an argument breaks a documented rule */
  DUALGEMM_UNSUPPORTED = 2,         /**< legal, but this strategy, device or build cannot do it */
  DUALGEMM_OVERFLOW = 3,            /**< a size does not fit in 64 bits */
  DUALGEMM_OUT_OF_MEMORY = 4,       /**< an allocation failed */
  DUALGEMM_WORKSPACE_TOO_SMALL = 5, /**< fewer bytes than dualgemm_plan_workspace_size() */
  DUALGEMM_NOT_FOUND = 6,           /**< a file, tensor or name does not exist */
  DUALGEMM_IO_ERROR = 7,            /**< the operating system refused a read or a write */
  DUALGEMM_CORRUPT_FILE = 8,        /**< a file's content contradicts its format */
  DUALGEMM_INTERNAL = 9             /**< a bug in this library */
};

/** Element types. */
enum {
  /** NVFP4: two codes a byte, low nibble = even k, one E4M3 scale per 16 codes */
  DUALGEMM_E2M1 = 0,
  DUALGEMM_F16 = 1,
  DUALGEMM_BF16 = 2,
  DUALGEMM_F32 = 3
};

/** Where the block scale of (row r, block s) lies; S = k / 16 blocks a row. */
enum {
  DUALGEMM_SCALES_LINEAR = 0, /**< row-major, r * scale_ld + s */
  /** ((r/128)*ceil(S/4) + s/4)*512 + (r%32)*16 + ((r%128)/32)*4 + s%4, as cuBLASLt has it */
  DUALGEMM_SCALES_SWIZZLED_128X4 = 1
};

/** Activations; g is the gate product, u the up product. */
enum {
  DUALGEMM_SILU = 0, /**< g*sigmoid(g) * u */
  /** g = min(g, limit), u = clamp(u, -limit, limit); g*sigmoid(alpha*g) * (u + beta) */
  DUALGEMM_CLAMPED_SWIGLU = 1,
  DUALGEMM_SWIGLU_OAI = 2, /**< the same formula; usual parameters: alpha 1.702, beta 1, limit 7 */
  DUALGEMM_GELU_ERF = 3,   /**< 0.5*g*(1 + erf(g/sqrt(2))) * u */
  DUALGEMM_GELU_TANH = 4,  /**< 0.5*g*(1 + tanh(sqrt(2/pi)*(g + 0.044715*g^3))) * u */
  DUALGEMM_RELU2 = 5,      /**< max(g,0)^2 * u */
  DUALGEMM_SIGMOID = 6,    /**< sigmoid(g) * u */
  DUALGEMM_IDENTITY = 7    /**< g * u */
};

/** How the l problems share a and d. */
enum {
  DUALGEMM_GROUPING_NONE = 0, /**< l independent problems of m rows each (batch) */
  /** l experts; expert e owns rows expert_offsets[e] .. expert_offsets[e+1]-1 of the m */
  DUALGEMM_GROUPING_CONTIGUOUS = 1,
  DUALGEMM_GROUPING_MASKED = 2 /**< l batches of m rows, of which the first expert_rows[e] exist */
};

/** Ways of computing the same result; docs/architecture.md compares them. */
enum {
  DUALGEMM_STRATEGY_AUTO = 0,
  DUALGEMM_STRATEGY_REFERENCE = 1,
  DUALGEMM_STRATEGY_TWO_PASS = 2,
  DUALGEMM_STRATEGY_CACHED = 3, /**< demands prepared weights */
  DUALGEMM_STRATEGY_GRAPH = 4,  /**< demands prepared weights */
  DUALGEMM_STRATEGY_STREAMS = 5,
  DUALGEMM_STRATEGY_FUSED_EPILOGUE = 6,
  DUALGEMM_STRATEGY_FUSED_SEQUENTIAL = 7,
  DUALGEMM_STRATEGY_FUSED = 8,
  DUALGEMM_STRATEGY_FP8 = 9
};

enum { DUALGEMM_DEVICE_AUTO = 0, DUALGEMM_DEVICE_CPU = 1, DUALGEMM_DEVICE_CUDA = 2 };

/** Instruction sets. */
enum {
  DUALGEMM_ISA_AUTO = 0, /**< the environment's DUALGEMM_FORCE_ISA if set, else the best one here */
  DUALGEMM_ISA_SCALAR = 1,
  DUALGEMM_ISA_AVX2 = 2,
  DUALGEMM_ISA_AVX512_VNNI = 3,
  DUALGEMM_ISA_AMX_BF16 = 4,
  DUALGEMM_ISA_SM100A = 5, /**< CUDA: B200, B300 */
  DUALGEMM_ISA_SM90A = 6,  /**< CUDA: H100, H200 */
  DUALGEMM_ISA_SM80 = 7    /**< CUDA: any GPU of compute capability 8.0 or later; cuBLASLt */
};

/** Loop nest of the CPU backend, chosen from m. */
enum { DUALGEMM_REGIME_GEMV = 0, DUALGEMM_REGIME_MULTI_ROW = 1, DUALGEMM_REGIME_TILE = 2 };

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
DUALGEMM_API const char* dualgemm_grouping_name(int32_t grouping) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_strategy_name(int32_t strategy) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_device_name(int32_t device) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_isa_name(int32_t isa) DUALGEMM_NOEXCEPT;
DUALGEMM_API const char* dualgemm_regime_name(int32_t regime) DUALGEMM_NOEXCEPT;

/** The inverse. DUALGEMM_INVALID_ARGUMENT lists the legal names. */
DUALGEMM_API dualgemm_status dualgemm_parse_data_type(const char* name,
                                                      int32_t* data_type) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_scale_layout(const char* name,
                                                         int32_t* scale_layout) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_activation(const char* name,
                                                       int32_t* activation_kind) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_grouping(const char* name,
                                                     int32_t* grouping) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_strategy(const char* name,
                                                     int32_t* strategy) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_device(const char* name,
                                                   int32_t* device) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_parse_isa(const char* name, int32_t* isa) DUALGEMM_NOEXCEPT;

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
 * alpha, beta and limit act in the two SwiGLU kinds; any other kind demands 1, 0 and +infinity,
 * because a parameter that is silently ignored is a wrong result. Never grows.
 */
typedef struct dualgemm_activation {
  int32_t kind;
  float alpha;
  float beta;
  float limit; /**< +infinity = no clamping */
} dualgemm_activation;

/** What to compute. Minimum struct_size: 32 (up to and including k). */
typedef struct dualgemm_problem {
  uint64_t struct_size;
  int64_t m;            /**< rows of a and d, >= 1 (contiguous groups: in total) */
  int64_t n;            /**< rows of gate and of up, columns of d, >= 1 */
  int64_t k;            /**< columns of a, gate and up; a positive multiple of 16 */
  int64_t l;            /**< batches or experts, >= 1; default 1 */
  dualgemm_matrix a;    /**< m x k; default E2M1, tight, linear scales */
  dualgemm_matrix gate; /**< n x k, always E2M1; default tight, linear scales */
  dualgemm_matrix up;   /**< n x k, always E2M1; default tight, linear scales */
  dualgemm_matrix d;    /**< m x n; default F16. E2M1: quantised on the way out, n % 16 == 0 */
  dualgemm_activation act;
  int32_t grouping;
  int32_t batch_invariant; /**< 0 or 1; 1: bits of row i depend on neither m nor the ISA */
} dualgemm_problem;

/** Weights that dualgemm_prepare() brought into a strategy's own order. */
typedef struct dualgemm_prepared dualgemm_prepared;

/**
 * Where the operands lie. dualgemm_operand_sizes() says how many bytes each must have. No byte of
 * padding is read for its value and nothing but d (and d_scales) is written. Minimum struct_size:
 * 112 (up to and including d).
 */
typedef struct dualgemm_buffers {
  uint64_t struct_size;
  const void* a;
  const uint8_t* a_scales;  /**< E4M3; required when a is E2M1, else null */
  const float* a_row_scale; /**< optional, one factor per row of a: [l*m], contiguous groups [m] */
  const void* gate; /**< null is legal when `prepared` holds the weights; so for the next three */
  const uint8_t* gate_scales;
  const void* up;
  const uint8_t* up_scales;
  float alpha_gate; /**< dequantising global scale of a times that of gate; default 1 */
  float alpha_up;   /**< dequantising global scale of a times that of up; default 1 */
  const float* alpha_gate_per_batch; /**< optional [l]; replaces alpha_gate */
  const float* alpha_up_per_batch;   /**< optional [l]; replaces alpha_up */
  const int32_t* expert_offsets; /**< contiguous groups: [l+1], first 0, last m, non-decreasing */
  const int32_t* expert_rows;    /**< masked groups: [l], each 0 .. m */
  void* d;
  uint8_t* d_scales;    /**< required when d is E2M1, else null; swizzled padding becomes 0 */
  float d_global_scale; /**< d = e2m1 * e4m3 * d_global_scale; finite, > 0; default 1 */
  int32_t reserved;     /**< must be 0 */
  const dualgemm_prepared* prepared; /**< optional; same n, k, l and strategy as the plan. CUDA:
                                        also its GPU and isa, and a bf16 for both or for neither */
  void* stream; /**< CUDA: the cudaStream_t; null: the default stream. All pointers are device
                   memory then */
} dualgemm_buffers;

/** Wishes for the plan. Minimum struct_size: 16. All defaults are 0. */
typedef struct dualgemm_plan_options {
  uint64_t struct_size;
  int32_t strategy;
  int32_t device;
  int32_t isa;
  int32_t threads;  /**< 0 = all cores that this process may use */
  int32_t prepared; /**< 0 or 1; 1: the caller will pass prepared weights to every run */
  int32_t reserved; /**< must be 0 */
  /**
   * CUDA: what to run instead of the library's own choice; null or "": nothing. Either the text of
   * dualgemm_plan_config(), or some of strategy, isa, tile_m, tile_n, tile_k, stages, k_warpgroups,
   * ctas, for example "tile_m=64,k_warpgroups=2". Read by the call, not kept.
   */
  const char* config;
  /**
   * CUDA, 0 or 1; 1: operands may start at any address, so that there is workspace for copies of
   * all of them. 0: those that are read in place must start at a multiple of 16 bytes; up to 8 rows
   * of a on Hopper: codes of a at 8, halves and weights at 16, scales of the weights at 4.
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

/** The first broken rule among all that need no run to check; buffers may be null. */
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
} dualgemm_operand_bytes;

/**
 * Sizes to allocate for a problem. Contiguous groups with swizzled scales of a or d depend on how
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
  int64_t tile_m;   /**< rows per micro-tile */
  int64_t tile_n;   /**< columns per vector: a tile holds tile_n of gate and tile_n of up */
  int64_t tile_k;   /**< k elements decoded per panel */
  int64_t workspace_bytes;
  int64_t prepared_bytes; /**< what dualgemm_prepare() will hold; 0 = nothing to prepare */
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
 * the stream; they read nothing but prepared weights before it has ended. A kernel of the caller's
 * that is itself launched with programmatic stream serialization after ours must wait
 * (griddepcontrol.wait) before it writes anything that ours read or reads what ours wrote.
 */
DUALGEMM_API dualgemm_status dualgemm_run(const dualgemm_plan* plan,
                                          const dualgemm_buffers* buffers, void* workspace,
                                          int64_t workspace_bytes,
                                          dualgemm_run_info* info) DUALGEMM_NOEXCEPT;

/** Plan, prepared weights if demanded, workspace and run; options and info may be null. */
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

/* ---- NVFP4 data ---- */

/** Minimum struct_size: 16. */
typedef struct dualgemm_quantize_options {
  uint64_t struct_size;
  float global_scale; /**< dequantising multiplier; 0 (default) = amax / (6*448) of this tensor */
  int32_t four_over_six; /**< 0 or 1; per block also try amax/4, keep the lower mean |error| */
  int32_t scale_layout;
  int32_t threads;  /**< 0 = all cores; the result does not depend on it */
  int64_t scale_ld; /**< linear layout; 0 = cols / 16 */
} dualgemm_quantize_options;

DUALGEMM_API dualgemm_status dualgemm_quantize_options_init(dualgemm_quantize_options* options,
                                                            uint64_t struct_size) DUALGEMM_NOEXCEPT;

/**
 * Quantises x[rows][cols] (F16, BF16 or F32; cols a multiple of 16) to E2M1 codes[rows][cols/2] and
 * one E4M3 scale per 16 neighbours. ldx: elements between rows of x, 0 = cols. ldc_bytes: bytes
 * between rows of codes, 0 = cols/2. scales: dualgemm_scale_span() bytes; swizzled padding becomes
 * 0.
 *
 *   G = 2688 / amax(x),  s = e4m3(min(G * amax_of_block / 6, 448)),  code = e2m1(x * G / s)
 *
 * with code 0 where s = 0. options may be null. *global_scale (may be null) receives the
 * dequantising factor, w = e2m1 * e4m3 * global_scale; 1 for an all-zero tensor. A NaN or an
 * infinity in x is DUALGEMM_INVALID_ARGUMENT and names the element.
 */
DUALGEMM_API dualgemm_status dualgemm_quantize(const void* x, int32_t x_type, int64_t rows,
                                               int64_t cols, int64_t ldx, uint8_t* codes,
                                               int64_t ldc_bytes, uint8_t* scales,
                                               const dualgemm_quantize_options* options,
                                               float* global_scale) DUALGEMM_NOEXCEPT;

/** out[rows][cols] = e2m1 * e4m3 * global_scale in FP32; ld_out: elements, 0 = cols. */
DUALGEMM_API dualgemm_status dualgemm_dequantize(const uint8_t* codes, int64_t ldc_bytes,
                                                 const uint8_t* scales, int32_t scale_layout,
                                                 int64_t scale_ld, float global_scale, int64_t rows,
                                                 int64_t cols, float* out,
                                                 int64_t ld_out) DUALGEMM_NOEXCEPT;

/** Bytes of the scales of rows x sf_cols blocks, sf_cols = k / 16; ld: linear only, 0 = sf_cols. */
DUALGEMM_API dualgemm_status dualgemm_scale_span(int32_t scale_layout, int64_t rows,
                                                 int64_t sf_cols, int64_t ld,
                                                 int64_t* bytes) DUALGEMM_NOEXCEPT;

/**
 * Rewrites the scales of `batches` batches from one layout to another. Batches are tight in both; a
 * linear side may carry ld (0 = sf_cols), a swizzled one must give 0. Padding of dst is written as
 * 0. dst must not overlap src.
 */
DUALGEMM_API dualgemm_status dualgemm_convert_scales(const uint8_t* src, int32_t src_layout,
                                                     int64_t src_ld, uint8_t* dst,
                                                     int32_t dst_layout, int64_t dst_ld,
                                                     int64_t rows, int64_t sf_cols,
                                                     int64_t batches) DUALGEMM_NOEXCEPT;

/** Exchanges the nibbles of every byte, for data with high nibble = even k. dst may be src. */
DUALGEMM_API dualgemm_status dualgemm_swap_nibbles(const uint8_t* src, uint8_t* dst,
                                                   int64_t bytes) DUALGEMM_NOEXCEPT;

/** Counts over the block scales, padding excluded. Minimum struct_size: 16. */
typedef struct dualgemm_scale_report {
  uint64_t struct_size;
  int64_t negative; /**< sign bit set; ignored in computing, as the hardware does */
  int64_t nan;      /**< 0x7F, 0xFF: every output they touch is NaN */
  int64_t zero;
  int64_t subnormal;     /**< 0x01 .. 0x07 */
  int64_t first_bad_row; /**< first negative or NaN scale; -1 = none */
  int64_t first_bad_col;
} dualgemm_scale_report;

DUALGEMM_API dualgemm_status
dualgemm_inspect_scales(const uint8_t* scales, int32_t scale_layout, int64_t rows, int64_t sf_cols,
                        int64_t ld, dualgemm_scale_report* report) DUALGEMM_NOEXCEPT;

/* ==== Experimental part: may change or vanish in any release ==== */

/** The strategies this build knows, in the documentation's order: strategies[capacity], *count =
 * how many. */
DUALGEMM_API dualgemm_status dualgemm_experimental_strategies(int32_t* strategies, size_t capacity,
                                                              size_t* count) DUALGEMM_NOEXCEPT;

/**
 * ggml's NVFP4 rows, blocks of 64 values = 4 scale bytes + 32 code bytes, cols a multiple of 64. A
 * permutation of bytes both ways; codes [rows][cols/2], scales linear [rows][cols/16]. ggml reads
 * the scale 0x7F as 0, so "from" maps it to 0 and "to" refuses it.
 */
DUALGEMM_API dualgemm_status dualgemm_experimental_from_ggml(const uint8_t* blocks, int64_t rows,
                                                             int64_t cols, uint8_t* codes,
                                                             uint8_t* scales) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_experimental_to_ggml(const uint8_t* codes,
                                                           const uint8_t* scales, int64_t rows,
                                                           int64_t cols,
                                                           uint8_t* blocks) DUALGEMM_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DUALGEMM_DUALGEMM_H */
