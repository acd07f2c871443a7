// Weights of linear layers and gated MLPs as checkpoints keep them: conventions.hpp has the names
// and what the tensors hold.
//
// Metadata keys say where a file deviates from linear scales and low nibble = even k, and mark ggml
// blocks: names and shapes alone cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/conventions.hpp"
#include "checkpoint/model_quantization.hpp"
#include "checkpoint/tensor.hpp"
#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::checkpoint {

enum class NibbleOrder : int32_t { kLowEven = 0, kHighEven = 1 };  // which nibble holds even k
enum class StackedOrder : int32_t { kGateFirst = 0, kUpFirst = 1 };

// "low_even", "high_even"; "gate_first", "up_first".
const char* name_of(NibbleOrder order) noexcept;
const char* name_of(StackedOrder order) noexcept;
Expected<NibbleOrder> parse_nibble_order(const std::string& name);
Expected<StackedOrder> parse_stacked_order(const std::string& name);

inline constexpr const char* kScaleLayoutKey = "dualgemm.scale_layout";  // name_of(ScaleLayout)
inline constexpr const char* kNibbleOrderKey = "dualgemm.nibble_order";  // name_of(NibbleOrder)
inline constexpr const char* kConventionKey =
    "dualgemm.convention";  // written and needed for kGgml only
// From the GGUF reader: every U8 tensor of the file is ggml blocks.
inline constexpr const char* kFormatKey = "dualgemm.format";
inline constexpr const char* kFormatGguf = "gguf";
// kMultiplierKey + NAME (kDivisorKey + NAME): the global scale in tensor NAME was the reciprocal of
// this multiplier (divisor), which FP32 division does not give back; hexadecimal bits, separated by
// commas. With it `convert` there and back is the identity.
inline constexpr const char* kMultiplierKey = "dualgemm.multiplier.";
inline constexpr const char* kDivisorKey = "dualgemm.divisor.";

// The tensors of one weight; an empty name: the convention has none.
struct WeightNames {
  std::string data, scales, global_scale, input_scale;
  // Whose names they are. Conventions that share a name are told apart by dtype and marks.
  Convention convention = Convention::kPlain;
  bool operator==(const WeightNames&) const = default;
};

// One weight, as spans into the file. Every size below has been checked against the shapes.
struct Weight {
  Convention convention = Convention::kPlain;
  DataType type = DataType::kF32;  // kE2M1 for all conventions but kPlain
  int64_t n = 0, k = 0;            // rows, columns
  int64_t experts = 0;             // 0: one matrix; else `data` holds so many
  bool from_mxfp4 = false;         // the file has MXFP4 (mxfp4.hpp), as which it is NVFP4 here
  bool k_outer = false;            // experts only: codes [k/2, n], scales [k/16, n] of each
  std::span<const std::byte>
      data;  // codes [n, k/2], values [n, k] (maybe unaligned), or kGgml blocks [n, k/64*36]
  std::span<const uint8_t> scales;  // E4M3; empty for kPlain and kGgml
  ScaleLayout scale_layout = ScaleLayout::kLinear;
  NibbleOrder nibble_order = NibbleOrder::kLowEven;
  std::vector<float> dequant_global_scales;  // multipliers: one, or two (stacked); {1} for kPlain.
                                             // Experts: one, `experts`, or 2 * `experts`
  std::vector<float> dequant_input_scales;   // multipliers: none, or as many
  bool unwritten_input_scale = false;        // there is one, and it was skipped
  // The divisors that the multipliers are reciprocals of; empty where multipliers were stored.
  std::vector<float> global_divisors, input_divisors;
  std::string name;                   // of the tensor that holds `data`
  WeightNames names;                  // as they are in the file
  std::shared_ptr<const void> owner;  // of spans that do not point into the file; may be null
};

// What the file does not say. nullopt: the metadata key, else found from the names / linear /
// low_even.
struct WeightOptions {
  std::optional<Convention>
      convention;  // kGgml: U8 tensors NAME.weight without NAME.weight_scale are ggml blocks
  std::optional<ScaleLayout> scale_layout;
  std::optional<NibbleOrder> nibble_order;
  // Global and input scales that are NaN or infinite are taken as they are, and where a layer is
  // read its NaN block scales.
  bool allow_nan = false;
  // An input scale that is 0 or NaN, one that no calibration wrote, is as if it were absent, unless
  // allow_nan. Readers of layers do so; others take them for errors.
  bool skip_unwritten = false;
  // kNotFound lists near names, which takes as long as the file has names. Who asks for every layer
  // of a file leaves it out.
  bool near_names = true;
};

// `module` is the tensor names' common part, e.g. "model.layers.0.mlp.gate_proj". The convention is
// found from the names and dtypes. kNotFound lists near names; a wrong shape, wrong scale dtype, or
// a global scale that is not finite and > 0: kCorruptFile; a weight dtype of another quantisation:
// kUnsupported. Block scales are not looked at.
Expected<Weight> load_weight(const TensorFile& file, const std::string& module,
                             const WeightOptions& options = {});

// Expert `expert` of a weight that holds several, as a matrix. Spans point into the file, or where
// the weight is k_outer into memory that the result owns.
Expected<Weight> slice_expert(const Weight& weight, int64_t expert);

// MODULEs of all NVFP4 weights of the file, by names and dtypes; their shapes may still be wrong.
Expected<std::vector<std::string>> list_nvfp4_weights(const TensorFile& file,
                                                      const WeightOptions& options = {});

struct LayerOptions {
  WeightOptions weight;
  StackedOrder stacked_order = StackedOrder::kGateFirst;
  // A has one scale. Checkpoints that carry a different input scale for Gate and for Up are refused
  // unless this is set; then the larger multiplier is taken, as vLLM does.
  bool max_input_scale = false;
  std::optional<int64_t> expert;  // of a layer that has several
  // The caller multiplies the columns of the input by the result's pre_quant_scale. Without it a
  // layer that has one is kUnsupported.
  bool pre_quant_scale = false;
  // Online rotations of the model's config, if it has one; null: nothing is known of any. The
  // caller rotates the input by the result's `hadamard`, if `rotates` says so; without it a layer
  // that has one is kUnsupported.
  const ModelQuantization* quantization = nullptr;
  bool rotates = false;
};

struct LayerOperand {
  std::span<const std::byte> data;  // kE2M1: codes [n, k/2]; else values [n, k]
  std::span<const uint8_t> scales;  // kE2M1 only
  float dequant_global_scale = 1.0f;
  std::string tensor_name;

  const uint8_t* codes() const noexcept { return reinterpret_cast<const uint8_t*>(data.data()); }
};

struct MlpLayer {
  Convention convention = Convention::kPlain;
  bool stacked = false;
  DataType type = DataType::kF32;
  int64_t n = 0, k = 0;  // of Gate and of Up
  ScaleLayout scale_layout = ScaleLayout::kLinear;
  NibbleOrder nibble_order = NibbleOrder::kLowEven;
  LayerOperand gate, up;
  std::optional<float> dequant_input_scale;  // of A
  bool unwritten_input_scale = false;        // of A: it is there, 0 or NaN, and not used
  std::vector<float> gate_bias, up_bias;     // [n] each, or both empty: none
  bool from_mxfp4 = false;                   // either: the file has MXFP4
  std::vector<float> pre_quant_scale;        // [k], factors of A's columns, or empty: none
  int64_t hadamard = 0;                      // RowTransform of A: LayerOptions::quantization
  TensorFile memory;                         // keeps alive what the spans point into
};

// Reads Gate and Up below PREFIX: gate_proj and up_proj, w1 and w3 (Mixtral), ffn_gate and ffn_up
// (GGUF), or one tensor that stacks them, gate_up_proj, w13, ffn_gate_up. With options.expert: that
// one of PREFIX's experts, which are modules PREFIX.E or PREFIX.experts.E (see find_experts), or
// slices of tensors of three extents. Rows of Gate and Up alternate where gpt-oss's names say so,
// NAME_blocks or NAME_bias beside a stacked tensor of experts. MXFP4 is converted, exactly, or
// kUnsupported where its exponents lie too far apart (mxfp4.hpp). kGgml blocks are unpacked into
// memory the layer owns; everything else stays where it lies in the file. A block scale that is NaN
// is kCorruptFile, here and in load_down_projection() and load_linear(), unless
// options.weight.allow_nan; padding may be anything.
Expected<MlpLayer> load_mlp_layer(const TensorFile& file, const std::string& prefix,
                                  const LayerOptions& options = {});

// The name of the layer's convention, or "mxfp4".
const char* stored_as(const MlpLayer& layer) noexcept;

struct DownProjection {
  Convention convention = Convention::kPlain;
  DataType type = DataType::kF32;
  int64_t n = 0, k = 0;  // rows: what X has columns; columns: the rows of Gate and of Up
  ScaleLayout scale_layout = ScaleLayout::kLinear;
  NibbleOrder nibble_order = NibbleOrder::kLowEven;
  LayerOperand down;
  std::optional<float> dequant_input_scale;  // of H
  bool unwritten_input_scale = false;        // as MlpLayer's
  std::vector<float> bias;                   // [n], or empty: none
  std::vector<float> pre_quant_scale;        // [k], factors of the input's columns, or empty
  int64_t hadamard = 0;                      // likewise, of the input
  TensorFile memory;                         // as MlpLayer::memory
};

// Reads Down of the same layer: down_proj, w2 or ffn_down, beside what load_mlp_layer() finds.
Expected<DownProjection> load_down_projection(const TensorFile& file, const std::string& prefix,
                                              const LayerOptions& options = {});

// Is any tensor of Down there, whole or not? False where there is no such layer.
bool has_down_projection(const TensorFile& file, const std::string& prefix,
                         const LayerOptions& options = {});

// The same of any linear layer by its own name, `module` as for load_weight().
Expected<DownProjection> load_linear(const TensorFile& file, const std::string& module,
                                     const LayerOptions& options = {});

// Low nibble = even k, values of kPlain aligned to their size; nothing is refused.
Status make_readable(DownProjection& down);

// The same as for a layer: unsupported unless it is NVFP4; low nibble = even k.
Status make_runnable(DownProjection& down);

// ok, or why run() cannot compute this layer, and what would help: weights that are not NVFP4.
Status check_runnable(const MlpLayer& layer);

// Makes the layer fit for run(): low nibble = even k, values of kPlain aligned to their size.
// Copies only what needs it.
Status make_runnable(MlpLayer& layer);

struct LayerEntry {
  std::string prefix;
  int64_t experts = 0;  // > 0: tensors of three extents hold so many
  bool operator==(const LayerEntry&) const = default;
};

// What load_mlp_layer could be asked for, sorted by prefix; for messages and listings. Experts that
// are modules of their own are entries of their own.
std::vector<LayerEntry> list_mlp_layers(const TensorFile& file);

// "X.experts.7", an expert that is a module of its own, gives "X.experts" and 7.
std::optional<std::pair<std::string, int64_t>> split_expert(const std::string& prefix);

// Number of experts below `prefix`, at least 1: in tensors of three extents, or modules numbered
// from 0 without a gap, at PREFIX, PREFIX.experts, PREFIX.mlp.experts, PREFIX.feed_forward.experts
// or PREFIX.block_sparse_moe.experts. kNotFound says where experts are.
Expected<int64_t> count_experts(const TensorFile& file, const std::string& prefix);

// Prefixes that count_experts would take and that hold experts, sorted.
std::vector<std::string> list_expert_layers(const TensorFile& file);

// Adds the tensors of `weight` to `out` under MODULE.* as weight.convention asks for. Copies
// nothing: the memory must outlive `out` unless out shares it. Scales that are not linear or
// nibbles that are not low_even are recorded in the metadata; a file holds one kind only.
Status add_weight(TensorFile& out, const std::string& module, const Weight& weight);

struct ConvertOptions {
  WeightOptions input;                   // overrides what the input's metadata say
  std::optional<Convention> convention;  // nullopt = unchanged; kPlain is refused (use dequantize)
  std::optional<ScaleLayout> scale_layout;  // nullopt = unchanged (kGgml has none: linear)
  std::optional<NibbleOrder> nibble_order;  // nullopt = unchanged (kGgml has its own: low_even)
};

struct ConvertReport {
  int64_t weights_converted = 0;
  int64_t tensors_copied = 0;
};

// Converts every NVFP4 weight of `in`, passes all other tensors and metadata through untouched.
// Codes and block scales are permuted, never re-quantised. Multiplier <-> divisor is one FP32
// division; where that cannot be undone, metadata keep the value that it came from. torchao's names
// and GGUF's become ModelOpt's where no convention is asked for. Fused experts become modules of
// their own: X.experts.gate_up_proj gives X.experts.0.gate_up_proj and so on.
Expected<TensorFile> convert_checkpoint(const TensorFile& in, const ConvertOptions& options,
                                        ConvertReport* report = nullptr);

}  // namespace dualgemm::checkpoint
