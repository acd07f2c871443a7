// Weights of linear layers and gated MLPs in the conventions that checkpoints use:
//
//   plain               weight               F32, F16 or BF16 [N, K]
//   modelopt            weight               U8 [N, K/2] (or F4 [N, K]): codes
//                       weight_scale         F8_E4M3: block scales
//                       weight_scale_2       F32, multiplier: global scale
//                       input_scale          F32, multiplier: global scale of A, optional
//   compressed_tensors  weight_packed        U8 [N, K/2]: codes
//                       weight_scale         F8_E4M3: block scales
//                       weight_global_scale  F32, divisor: global scale
//                       input_global_scale   F32, divisor: global scale of A, optional
//   ggml                weight               U8 [N, K/64*36]: blocks of codes and scales
//                       weight_scale_2       F32, multiplier: global scale, optional
//                       input_scale          F32, multiplier: global scale of A, optional
//
// Block scales are [N, K/16], or swizzled [round_up(N, 128), round_up(K/16, 4)]. Global scales have
// shape [] or [1], in a stacked tensor also [2]. Metadata keys say where a file deviates from
// linear scales and low nibble = even k, and mark ggml blocks: names and shapes alone cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"
#include "tools/checkpoint/tensor.hpp"

namespace dualgemm::checkpoint {

enum class Convention : int32_t { kPlain = 0, kModelOpt = 1, kCompressedTensors = 2, kGgml = 3 };
enum class NibbleOrder : int32_t { kLowEven = 0, kHighEven = 1 };  // which nibble holds even k
enum class StackedOrder : int32_t { kGateFirst = 0, kUpFirst = 1 };

// "plain", "modelopt", "compressed_tensors", "ggml"; "low_even", "high_even"; "gate_first",
// "up_first".
const char* name_of(Convention convention) noexcept;
const char* name_of(NibbleOrder order) noexcept;
const char* name_of(StackedOrder order) noexcept;
Expected<Convention> parse_convention(const std::string& name);
Expected<NibbleOrder> parse_nibble_order(const std::string& name);
Expected<StackedOrder> parse_stacked_order(const std::string& name);

inline constexpr const char* kScaleLayoutKey = "dualgemm.scale_layout";  // name_of(ScaleLayout)
inline constexpr const char* kNibbleOrderKey = "dualgemm.nibble_order";  // name_of(NibbleOrder)
inline constexpr const char* kConventionKey =
    "dualgemm.convention";  // written and needed for kGgml only

// One weight, as spans into the file. Every size below has been checked against the shapes.
struct Weight {
  Convention convention = Convention::kPlain;
  DataType type = DataType::kF32;  // kE2M1 for all conventions but kPlain
  int64_t n = 0, k = 0;            // rows, columns
  std::span<const std::byte>
      data;  // codes [n, k/2], values [n, k] (maybe unaligned), or kGgml blocks [n, k/64*36]
  std::span<const uint8_t> scales;  // E4M3; empty for kPlain and kGgml
  ScaleLayout scale_layout = ScaleLayout::kLinear;
  NibbleOrder nibble_order = NibbleOrder::kLowEven;
  std::vector<float> dequant_global_scales;  // multipliers: one, or two (stacked); {1} for kPlain
  std::vector<float> dequant_input_scales;   // multipliers: none, one, or two (stacked)
  std::string name;                          // of the tensor that holds `data`
};

// What the file does not say. nullopt: the metadata key, else found from the names / linear /
// low_even.
struct WeightOptions {
  std::optional<Convention>
      convention;  // kGgml: U8 tensors NAME.weight without NAME.weight_scale are ggml blocks
  std::optional<ScaleLayout> scale_layout;
  std::optional<NibbleOrder> nibble_order;
};

// `module` is the tensor names' common part, e.g. "model.layers.0.mlp.gate_proj". The convention is
// found from the names and dtypes. kNotFound lists near names; a wrong shape, wrong scale dtype, or
// a global scale that is not finite and > 0: kCorruptFile; a weight dtype of another quantisation:
// kUnsupported.
Expected<Weight> load_weight(const TensorFile& file, const std::string& module,
                             const WeightOptions& options = {});

struct LayerOptions {
  WeightOptions weight;
  StackedOrder stacked_order = StackedOrder::kGateFirst;
  // A has one scale. Checkpoints that carry a different input scale for gate and for up are refused
  // unless this is set; then the larger multiplier is taken, as vLLM does.
  bool max_input_scale = false;
  std::string gate_name = "gate_proj";
  std::string up_name = "up_proj";
  std::string stacked_name = "gate_up_proj";
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
  int64_t n = 0, k = 0;  // of gate and of up
  ScaleLayout scale_layout = ScaleLayout::kLinear;
  NibbleOrder nibble_order = NibbleOrder::kLowEven;
  LayerOperand gate, up;
  std::optional<float> dequant_input_scale;  // of A
  TensorFile memory;                         // keeps alive what the spans point into
};

// Reads PREFIX.gate_proj and PREFIX.up_proj, or PREFIX.gate_up_proj. kGgml blocks are unpacked into
// memory the layer owns; everything else stays where it lies in the file.
Expected<MlpLayer> load_mlp_layer(const TensorFile& file, const std::string& prefix,
                                  const LayerOptions& options = {});

// Makes the layer fit for run(): low nibble = even k, values of kPlain aligned to their size.
// Copies only what needs it.
Status make_runnable(MlpLayer& layer);

// Prefixes in `file` that load_mlp_layer could be asked for, sorted; for messages and for
// `info`-like listings.
std::vector<std::string> list_mlp_layers(const TensorFile& file, const LayerOptions& options = {});

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
// Codes and block scales are permuted, never re-quantised. Multiplier <-> divisor costs one FP32
// rounding each way.
Expected<TensorFile> convert_checkpoint(const TensorFile& in, const ConvertOptions& options,
                                        ConvertReport* report = nullptr);

}  // namespace dualgemm::checkpoint
