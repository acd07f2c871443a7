// Weights of gated MLP layers from checkpoints, ready for run(). In a library of its own
// (CMake: dualgemm::checkpoint, pkg-config: dualgemm_checkpoint), so that the core library knows no
// file formats.
//
//   // prologue: checkpoint
//   auto checkpoint = dualgemm::Checkpoint::open("model/");
//   auto layer = checkpoint->load("model.layers.0.mlp");
//   dualgemm::Problem problem{.m = rows};
//   dualgemm::Buffers buffers{.a = codes, .a_scales = scales, .d = d};
//   layer->describe(problem);                        // n, k and the scale layouts of Gate and Up
//   layer->attach_to(buffers, a_global_scale);       // weights, alpha_gate, alpha_up
//   dualgemm::Status status = dualgemm::run(problem, buffers);
//
// Read are safetensors files, sharded ones by their index, folders that hold either, and GGUF; the
// conventions of ModelOpt, compressed-tensors, torchao and ggml (docs/checkpoints.md). Files are
// mapped, not copied; a file must not be cut short while it is open.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm {

struct CheckpointOptions {
  // Which expert of a layer that has several; -1: the layer itself.
  int64_t expert = -1;
  // A tensor that stacks both holds up before gate (TensorRT-LLM, FlashInfer), not gate before up.
  bool up_first = false;
  // Gate and Up carry different input scales: take the larger one instead of refusing.
  bool max_input_scale = false;
  // Scales that are NaN or infinite, which make NaN of every output they touch, are taken as they
  // are instead of refused. Padding of swizzled scales may always be anything.
  bool allow_nan = false;
  // The caller multiplies the columns of the input by pre_quant_scale() before it quantises or
  // multiplies. Without it a layer that has such factors (AWQ) is kUnsupported.
  bool pre_quant_scale = false;
  // The caller rotates the columns of the input by hadamard() (RowTransform of quantize.hpp),
  // behind those factors. Without it a layer whose input the model's config.json rotates is
  // kUnsupported.
  bool hadamard = false;
};

// One layer's Gate and Up. Owns, or keeps mapped, what its pointers point to. Copies share it.
class CheckpointLayer {
 public:
  int64_t n() const noexcept;
  int64_t k() const noexcept;
  // Dequantising multipliers: w = e2m1 * e4m3 * global scale.
  float gate_global_scale() const noexcept;
  float up_global_scale() const noexcept;
  // That of A for which the checkpoint was calibrated, if it was.
  std::optional<float> input_scale() const noexcept;
  // [k] factors of A's columns, or null: none. See CheckpointOptions::pre_quant_scale.
  const float* pre_quant_scale() const noexcept;
  // The size of its Hadamard transform, or 0: none. See CheckpointOptions::hadamard.
  int64_t hadamard() const noexcept;
  // Its name in docs/checkpoints.md, as "modelopt".
  const char* convention() const noexcept;

  // Sets n, k, how Gate and Up lie, and whether they have a bias; leaves everything else as it is.
  void describe(Problem& problem) const noexcept;
  // Sets gate, up, their scales and biases, alpha_gate and alpha_up for activations with this
  // global scale (1 for activations that are not NVFP4). The pointers are valid as long as this
  // layer, a copy of it, or the weights that prepare() makes of them are needed.
  void attach_to(Buffers& buffers, float a_global_scale) const noexcept;

  struct Impl;  // of the library
  explicit CheckpointLayer(std::shared_ptr<const Impl> impl) noexcept;

 private:
  std::shared_ptr<const Impl> impl_;
};

// One linear layer: Down, or any other by its name. Owns, or keeps mapped, what its pointers point
// to. Copies share it.
class CheckpointMatrix {
 public:
  int64_t n() const noexcept;  // rows: outputs
  int64_t k() const noexcept;  // columns: inputs
  // kE2M1, or what the checkpoint left unquantised: kF32, kF16, kBF16.
  DataType type() const noexcept;
  ScaleLayout scale_layout() const noexcept;
  // Dequantising multiplier; 1 for plain values.
  float global_scale() const noexcept;
  // That of the layer's input for which the checkpoint was calibrated, if it was.
  std::optional<float> input_scale() const noexcept;
  // [k] factors of the input's columns, or null: none. See CheckpointOptions::pre_quant_scale.
  const float* pre_quant_scale() const noexcept;
  // The size of its Hadamard transform, or 0: none. See CheckpointOptions::hadamard.
  int64_t hadamard() const noexcept;
  // As CheckpointLayer's, or "plain".
  const char* convention() const noexcept;

  const void* data() const noexcept;       // codes [n, k/2], or values [n, k]
  const uint8_t* scales() const noexcept;  // null for plain values
  const float* bias() const noexcept;      // [n], or null: none

  struct Impl;  // of the library
  explicit CheckpointMatrix(std::shared_ptr<const Impl> impl) noexcept;

 private:
  std::shared_ptr<const Impl> impl_;
};

struct CheckpointEntry {
  std::string prefix;   // what load() takes
  int64_t experts = 0;  // > 0: so many in one tensor; load() needs CheckpointOptions::expert
};

// A linear layer of any format: what its tensors are, and what the model's configs say of it.
struct CheckpointLinear {
  std::string module;  // what load_matrix() takes
  int64_t n = 0, k = 0;
  int64_t experts = 0;      // > 0: its tensors hold so many matrices
  int64_t bytes = 0;        // of its data and scales in the files
  std::string format;       // "float", "nvfp4", "mxfp4", "fp8", "mxfp8" or "other"
  std::string granularity;  // of its scales: "tensor", "channel", "block", "group"; "": none
  int64_t block_rows = 0, block_cols = 0;  // of a block; of a group its columns
  // The input's: "none" (16 bits), "static", "dynamic" or "local", by the config, else by whether
  // the file has an input scale.
  std::string activations;
  std::string description;    // of "other", for people: "I8", "int of 4 bits, group of 128"
  std::string contradiction;  // what the config says instead; the tensors count
  int64_t hadamard = 0;       // as CheckpointLayer::hadamard(), of its input
};

// An open checkpoint. Immutable; copies share it.
class Checkpoint {
 public:
  static Expected<Checkpoint> open(const std::string& path);

  // Every gated MLP layer, sorted by prefix. Experts that are modules of their own are entries of
  // their own. Not all need be fit to run: load() says.
  const std::vector<CheckpointEntry>& layers() const noexcept;

  // kNotFound lists near names; kUnsupported: the layer is sound, but run() cannot use it (weights
  // that are neither NVFP4 nor MXFP4 that is exact as NVFP4); kCorruptFile: tensors that contradict
  // each other, or a scale that is NaN or infinite.
  Expected<CheckpointLayer> load(const std::string& prefix,
                                 const CheckpointOptions& options = {}) const;

  // Down of the same layer, NVFP4 or plain. The options that count are `expert`, `allow_nan`,
  // `pre_quant_scale` and `hadamard`.
  Expected<CheckpointMatrix> load_down(const std::string& prefix,
                                       const CheckpointOptions& options = {}) const;
  // A linear layer by the name of its module: "model.layers.0.self_attn.q_proj".
  Expected<CheckpointMatrix> load_matrix(const std::string& module,
                                         const CheckpointOptions& options = {}) const;

  // Every linear layer, sorted by module; embeddings, norms and convolutions are none. Formats are
  // those of the tensors; config.json and hf_quant_config.json beside them (compressed-tensors'
  // config_groups, ModelOpt's quantized_layers, quant_method mxfp4 and fp8) say the activations.
  // kCorruptFile: a config that contradicts its format; kUnsupported: one that asks for what is not
  // computed, as transforms of activations.
  Expected<std::vector<CheckpointLinear>> linear_layers() const;

  // How many experts load() finds below `prefix`: slices of one tensor, or modules of their own at
  // PREFIX or PREFIX.experts. kNotFound says where experts are.
  Expected<int64_t> count_experts(const std::string& prefix) const;

  struct Impl;  // of the library
  explicit Checkpoint(std::shared_ptr<const Impl> impl) noexcept;

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace dualgemm
