/**
 * @file checkpoint.h
 * Weights of gated MLP layers from checkpoints, for C. In a library of its own, dualgemm_checkpoint
 * (CMake: dualgemm::checkpoint), which needs dualgemm. checkpoint.hpp says what is read.
 *
 *   // prologue: checkpoint      (problem and buffers, initialised; m, A and D are set)
 *   dualgemm_checkpoint* checkpoint;
 *   dualgemm_checkpoint_layer* layer;
 *   dualgemm_checkpoint_open("model/", &checkpoint);
 *   dualgemm_checkpoint_load(checkpoint, "model.layers.0.mlp", -1, 0, &layer);
 *   dualgemm_checkpoint_layer_apply(layer, a_global_scale, &problem, &buffers);
 *   dualgemm_run_once(&problem, &buffers, NULL, NULL);
 *   dualgemm_checkpoint_layer_free(layer);
 *   dualgemm_checkpoint_close(checkpoint);
 *
 * Errors as in dualgemm.h: a dualgemm_status, its text in dualgemm_last_error_message(). All kinds
 * of objects are immutable and may be used by several threads at a time.
 */
#ifndef DUALGEMM_CHECKPOINT_H
#define DUALGEMM_CHECKPOINT_H

#include "dualgemm/dualgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dualgemm_checkpoint dualgemm_checkpoint;
typedef struct dualgemm_checkpoint_layer dualgemm_checkpoint_layer;
typedef struct dualgemm_checkpoint_matrix dualgemm_checkpoint_matrix;
typedef struct dualgemm_checkpoint_linears dualgemm_checkpoint_linears;

/** Flags of dualgemm_checkpoint_load(). dualgemm_checkpoint_load_down_flags() and
 *  dualgemm_checkpoint_load_matrix_flags() take the last three. */
enum {
  DUALGEMM_CHECKPOINT_UP_FIRST = 1,        /**< a stacked tensor holds up before gate */
  DUALGEMM_CHECKPOINT_MAX_INPUT_SCALE = 2, /**< input scales differ: take the larger one */
  DUALGEMM_CHECKPOINT_ALLOW_NAN = 4,       /**< NaN and infinite scales are no error */
  /** The caller multiplies its input by pre_quant_scale; without it a layer that has one (AWQ) is
      DUALGEMM_UNSUPPORTED. */
  DUALGEMM_CHECKPOINT_PRE_QUANT_SCALE = 8,
  /** The caller transforms its input by Hadamard matrices of this size (quantize.h); without it a
      layer whose input the model's config rotates is DUALGEMM_UNSUPPORTED. */
  DUALGEMM_CHECKPOINT_HADAMARD = 16
};

/**
 * A .safetensors or .gguf file, a *.safetensors.index.json, or a folder that holds one. Here and in
 * the load functions the pointer is null after a failure.
 */
DUALGEMM_API dualgemm_status
dualgemm_checkpoint_open(const char* path, dualgemm_checkpoint** checkpoint) DUALGEMM_NOEXCEPT;
/** Null is legal. Layers that were loaded stay. */
DUALGEMM_API void dualgemm_checkpoint_close(dualgemm_checkpoint* checkpoint) DUALGEMM_NOEXCEPT;

/** Number of gated MLP layers; 0 for null. */
DUALGEMM_API int64_t dualgemm_checkpoint_layer_count(const dualgemm_checkpoint* checkpoint)
    DUALGEMM_NOEXCEPT;
/** What load() takes, valid until close(); null when there is no such index. */
DUALGEMM_API const char* dualgemm_checkpoint_layer_name(const dualgemm_checkpoint* checkpoint,
                                                        int64_t index) DUALGEMM_NOEXCEPT;
/** How many experts its tensors hold; 0: it is one layer, or there is no such index. */
DUALGEMM_API int64_t dualgemm_checkpoint_layer_experts(const dualgemm_checkpoint* checkpoint,
                                                       int64_t index) DUALGEMM_NOEXCEPT;

/** expert: -1 for a layer that is one. flags: DUALGEMM_CHECKPOINT_* or 0. */
DUALGEMM_API dualgemm_status
dualgemm_checkpoint_load(const dualgemm_checkpoint* checkpoint, const char* prefix, int64_t expert,
                         int32_t flags, dualgemm_checkpoint_layer** layer) DUALGEMM_NOEXCEPT;
/** Null is legal. Pointers that apply() gave end here. */
DUALGEMM_API void dualgemm_checkpoint_layer_free(dualgemm_checkpoint_layer* layer)
    DUALGEMM_NOEXCEPT;

/** What a layer is. Minimum struct_size: 40. */
typedef struct dualgemm_checkpoint_layer_info {
  uint64_t struct_size;
  int64_t n;
  int64_t k;
  float gate_global_scale; /**< multiplier: w = e2m1 * e4m3 * gate_global_scale */
  float up_global_scale;
  float input_scale; /**< of A, a multiplier; 0: the checkpoint has none */
  int32_t scale_layout;
  const float* pre_quant_scale; /**< [k] factors of A's columns; null: none */
  int64_t hadamard;             /**< size of A's Hadamard transform; 0: none */
} dualgemm_checkpoint_layer_info;
DUALGEMM_API dualgemm_status dualgemm_checkpoint_layer_get_info(
    const dualgemm_checkpoint_layer* layer, dualgemm_checkpoint_layer_info* info) DUALGEMM_NOEXCEPT;

/**
 * Sets problem's n, k, gate, up and bias, and buffers' gate, up, their scales and biases,
 * alpha_gate and alpha_up for activations with this global scale; leaves the rest as it is. Either
 * may be null. Both structs must have been initialised by their init functions, and for a layer
 * with a bias they must know one.
 */
DUALGEMM_API dualgemm_status dualgemm_checkpoint_layer_apply(
    const dualgemm_checkpoint_layer* layer, float a_global_scale, dualgemm_problem* problem,
    dualgemm_buffers* buffers) DUALGEMM_NOEXCEPT;

/**
 * How many experts load() finds below `prefix`: slices of one tensor, or modules of their own at
 * PREFIX or PREFIX.experts.
 */
DUALGEMM_API dualgemm_status dualgemm_checkpoint_count_experts(
    const dualgemm_checkpoint* checkpoint, const char* prefix, int64_t* experts) DUALGEMM_NOEXCEPT;

/** Down of the layer `prefix`, NVFP4 or plain; expert: -1 for a layer that is one. */
DUALGEMM_API dualgemm_status dualgemm_checkpoint_load_down(
    const dualgemm_checkpoint* checkpoint, const char* prefix, int64_t expert,
    dualgemm_checkpoint_matrix** matrix) DUALGEMM_NOEXCEPT;
/** A linear layer by the name of its module: "model.layers.0.self_attn.q_proj". */
DUALGEMM_API dualgemm_status dualgemm_checkpoint_load_matrix(
    const dualgemm_checkpoint* checkpoint, const char* module, int64_t expert,
    dualgemm_checkpoint_matrix** matrix) DUALGEMM_NOEXCEPT;
/** Both with flags: DUALGEMM_CHECKPOINT_ALLOW_NAN, _PRE_QUANT_SCALE, _HADAMARD, or 0. */
DUALGEMM_API dualgemm_status dualgemm_checkpoint_load_down_flags(
    const dualgemm_checkpoint* checkpoint, const char* prefix, int64_t expert, int32_t flags,
    dualgemm_checkpoint_matrix** matrix) DUALGEMM_NOEXCEPT;
DUALGEMM_API dualgemm_status dualgemm_checkpoint_load_matrix_flags(
    const dualgemm_checkpoint* checkpoint, const char* module, int64_t expert, int32_t flags,
    dualgemm_checkpoint_matrix** matrix) DUALGEMM_NOEXCEPT;
/** Null is legal. Pointers that get_info() gave end here. */
DUALGEMM_API void dualgemm_checkpoint_matrix_free(dualgemm_checkpoint_matrix* matrix)
    DUALGEMM_NOEXCEPT;

/** What a matrix is and where it lies, tight. Minimum struct_size: 64. */
typedef struct dualgemm_checkpoint_matrix_info {
  uint64_t struct_size;
  int64_t n;             /**< rows: outputs */
  int64_t k;             /**< columns: inputs */
  const void* data;      /**< codes [n][k/2], or values [n][k] */
  const uint8_t* scales; /**< null for plain values */
  const float* bias;     /**< [n]; null: none */
  float global_scale;    /**< multiplier; 1 for plain values */
  float input_scale;     /**< of the layer's input, a multiplier; 0: the checkpoint has none */
  int32_t type;          /**< DUALGEMM_E2M1, or left unquantised: DUALGEMM_F32, _F16, _BF16 */
  int32_t scale_layout;
  const float* pre_quant_scale; /**< [k] factors of the input's columns; null: none */
  int64_t hadamard;             /**< size of the input's Hadamard transform; 0: none */
} dualgemm_checkpoint_matrix_info;
DUALGEMM_API dualgemm_status
dualgemm_checkpoint_matrix_get_info(const dualgemm_checkpoint_matrix* matrix,
                                    dualgemm_checkpoint_matrix_info* info) DUALGEMM_NOEXCEPT;

/**
 * Every linear layer, sorted by module, as Checkpoint::linear_layers() of checkpoint.hpp: formats
 * from the tensors, activations from the configs beside them.
 */
DUALGEMM_API dualgemm_status dualgemm_checkpoint_list_linears(
    const dualgemm_checkpoint* checkpoint, dualgemm_checkpoint_linears** linears) DUALGEMM_NOEXCEPT;
/** Null is legal. Texts that get_info() gave end here. */
DUALGEMM_API void dualgemm_checkpoint_linears_free(dualgemm_checkpoint_linears* linears)
    DUALGEMM_NOEXCEPT;
/** 0 for null. */
DUALGEMM_API int64_t dualgemm_checkpoint_linears_count(const dualgemm_checkpoint_linears* linears)
    DUALGEMM_NOEXCEPT;

/** Minimum struct_size: 104. Texts are never null. */
typedef struct dualgemm_checkpoint_linear_info {
  uint64_t struct_size;
  int64_t n;                 /**< rows: outputs */
  int64_t k;                 /**< columns: inputs */
  int64_t experts;           /**< > 0: its tensors hold so many matrices */
  int64_t bytes;             /**< of its data and scales in the files */
  int64_t block_rows;        /**< of a block of scales; 0: it has none */
  int64_t block_cols;        /**< of a block or a group; 0: it has none */
  const char* module;        /**< what load_matrix() takes */
  const char* format;        /**< "float", "nvfp4", "mxfp4", "fp8", "mxfp8", "other" */
  const char* granularity;   /**< "tensor", "channel", "block", "group", "" */
  const char* activations;   /**< "none", "static", "dynamic", "local" */
  const char* description;   /**< of "other", for people */
  const char* contradiction; /**< what the config says instead, "": nothing; the tensors count */
  int64_t hadamard;          /**< size of the input's Hadamard transform; 0: none */
} dualgemm_checkpoint_linear_info;
/** index: from 0 to count - 1, else DUALGEMM_INVALID_ARGUMENT. */
DUALGEMM_API dualgemm_status
dualgemm_checkpoint_linears_get_info(const dualgemm_checkpoint_linears* linears, int64_t index,
                                     dualgemm_checkpoint_linear_info* info) DUALGEMM_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
