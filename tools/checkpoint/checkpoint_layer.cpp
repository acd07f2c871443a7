#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "dualgemm/formats.hpp"
#include "tools/checkpoint/checkpoint.hpp"
#include "tools/checkpoint/checkpoint_tensors.hpp"
#include "tools/checkpoint/guard.hpp"
#include "tools/checkpoint/layer_names.hpp"

namespace dualgemm::checkpoint {
namespace {

// The one scale of A that the scales stored beside the weights amount to.
Expected<std::optional<float>> one_input_scale(const std::string& prefix,
                                               const std::vector<float>& gate,
                                               const std::vector<float>& up, bool take_max) {
  if (gate.empty() && up.empty()) return std::optional<float>();
  std::vector<float> all = gate;
  all.insert(all.end(), up.begin(), up.end());
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  if (take_max || (*low == *high && !gate.empty() && !up.empty())) return std::optional(*high);
  const auto shown = [](const std::vector<float>& scales) {
    return scales.empty() ? std::string("none") : fmt::format("{}", fmt::join(scales, " and "));
  };
  return Status::error(StatusCode::kCorruptFile, fmt::format("input scales of '{}'", prefix),
                       fmt::format("{} for gate, {} for up", shown(gate), shown(up)),
                       "gate and up share one input: their scales must agree; --max-input-scale "
                       "(LayerOptions::max_input_scale) takes the larger");
}

void take_memory(MlpLayer& layer, std::vector<std::byte> bytes, std::span<const std::byte>& view) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  view = *owner;
  layer.memory.keep_alive(std::move(owner));
}

Status unpack_ggml(MlpLayer& layer, Weight& weight) {
  std::vector<std::byte> codes(static_cast<size_t>(weight.n * (weight.k / 2)));
  std::vector<std::byte> scales(static_cast<size_t>(weight.n * (weight.k / kSfVec)));
  DUALGEMM_TRY(from_ggml_nvfp4(reinterpret_cast<const uint8_t*>(weight.data.data()), weight.n,
                               weight.k, reinterpret_cast<uint8_t*>(codes.data()),
                               reinterpret_cast<uint8_t*>(scales.data())));
  take_memory(layer, std::move(codes), weight.data);
  std::span<const std::byte> scale_bytes;
  take_memory(layer, std::move(scales), scale_bytes);
  weight.scales = {reinterpret_cast<const uint8_t*>(scale_bytes.data()), scale_bytes.size()};
  return {};
}

LayerOperand operand_of(const Weight& weight, float dequant_global_scale) {
  return {weight.data, weight.scales, dequant_global_scale, weight.name};
}

void describe_layer(MlpLayer& layer, const Weight& weight, int64_t n) {
  layer.convention = weight.convention;
  layer.type = weight.type;
  layer.n = n;
  layer.k = weight.k;
  layer.scale_layout = weight.scale_layout;
  layer.nibble_order = weight.nibble_order;
}

// One matrix: the weight, or the wanted expert of it.
Expected<Weight> load_matrix(const TensorFile& file, const std::string& module,
                             const LayerOptions& options, MlpLayer& layer) {
  Expected<Weight> weight = load_weight(file, module, options.weight);
  if (!weight || weight->experts == 0) return weight;
  if (weight->convention == Convention::kPlain) {
    return Status::unsupported(
        weight->name,
        fmt::format("{} experts in {}", weight->experts, dualgemm::name_of(weight->type)),
        "only NVFP4 is read from tensors of three extents: quantise with "
        "ModelOpt, or split them into experts.E.gate_proj and up_proj");
  }
  if (!options.expert) {
    return Status::invalid(fmt::format("layer '{}'", module),
                           fmt::format("{} experts in one tensor", weight->experts),
                           "take one of them (--expert 0) or all (--experts)");
  }
  Expected<Weight> one = slice_expert(*weight, *options.expert);
  if (one && one->owner) layer.memory.keep_alive(one->owner);
  return one;
}

Status load_separate(const TensorFile& file, const std::string& prefix, const LayerModules& modules,
                     const LayerOptions& options, MlpLayer& layer) {
  Expected<Weight> gate = load_matrix(file, modules.gate, options, layer);
  if (!gate) return gate.status();
  Expected<Weight> up = load_matrix(file, modules.up, options, layer);
  if (!up) return up.status();
  const auto key = [](const Weight& w) {
    return std::tuple(w.convention, w.type, w.n, w.k, w.scale_layout);
  };
  if (key(*gate) != key(*up)) {
    const auto shown = [](const Weight& w) {
      return fmt::format("{} {} [{}, {}], {} scales", name_of(w.convention),
                         dualgemm::name_of(w.type), w.n, w.k, dualgemm::name_of(w.scale_layout));
    };
    return Status::error(StatusCode::kCorruptFile, fmt::format("layer '{}'", prefix),
                         fmt::format("gate is {}, up is {}", shown(*gate), shown(*up)),
                         "gate and up must agree in convention, type, shape and scale layout");
  }
  for (const Weight* weight : {&*gate, &*up}) {
    if (weight->dequant_global_scales.size() == 1) continue;
    return Status::error(StatusCode::kCorruptFile, weight->name, "two global scales",
                         "only a stacked gate_up weight may have two");
  }
  Expected<std::optional<float>> input_scale = one_input_scale(
      prefix, gate->dequant_input_scales, up->dequant_input_scales, options.max_input_scale);
  if (!input_scale) return input_scale.status();
  layer.dequant_input_scale = *input_scale;
  if (gate->convention == Convention::kGgml) {
    DUALGEMM_TRY(unpack_ggml(layer, *gate));
    DUALGEMM_TRY(unpack_ggml(layer, *up));
  }
  describe_layer(layer, *gate, gate->n);
  layer.gate = operand_of(*gate, gate->dequant_global_scales[0]);
  layer.up = operand_of(*up, up->dequant_global_scales[0]);
  return {};
}

Status load_stacked(const TensorFile& file, const std::string& prefix, const LayerModules& modules,
                    const LayerOptions& options, MlpLayer& layer) {
  Expected<Weight> weight = load_matrix(file, modules.stacked, options, layer);
  if (!weight) return weight.status();
  const int64_t half = weight->n / 2;
  if (weight->n % 2 != 0) {
    return Status::error(StatusCode::kCorruptFile, weight->name, fmt::format("{} rows", weight->n),
                         "gate and up stacked must have an even number of rows");
  }
  if (weight->scale_layout == ScaleLayout::kSwizzled128x4 && half % 128 != 0) {
    return Status::unsupported(weight->name, fmt::format("swizzled scales, {} rows each", half),
                               "halves start inside a 128-row tile: convert the scales to linear");
  }
  const std::vector<float>& input = weight->dequant_input_scales;
  Expected<std::optional<float>> input_scale =
      one_input_scale(prefix, input, input, options.max_input_scale);
  if (!input_scale) return input_scale.status();
  layer.dequant_input_scale = *input_scale;
  if (weight->convention == Convention::kGgml) DUALGEMM_TRY(unpack_ggml(layer, *weight));
  describe_layer(layer, *weight, half);
  layer.stacked = true;
  LayerOperand first = operand_of(*weight, weight->dequant_global_scales.front());
  LayerOperand second = operand_of(*weight, weight->dequant_global_scales.back());
  first.data = weight->data.first(weight->data.size() / 2);
  second.data = weight->data.last(weight->data.size() / 2);
  first.scales = weight->scales.first(weight->scales.size() / 2);
  second.scales = weight->scales.last(weight->scales.size() / 2);
  const bool gate_first = options.stacked_order == StackedOrder::kGateFirst;
  layer.gate = gate_first ? first : second;
  layer.up = gate_first ? second : first;
  return {};
}

// The numbers of MODULE.bias, `rows` of them; of a layer that is a slice, those of its expert. None
// if there is no such tensor.
Expected<std::vector<float>> load_bias(const TensorFile& file, const std::string& module,
                                       int64_t rows, const LayerModules& modules,
                                       const LayerOptions& options) {
  const TensorView* tensor = module.empty() ? nullptr : file.find(module + ".bias");
  if (tensor == nullptr) return std::vector<float>();
  std::vector<int64_t> shape{rows};
  if (modules.experts > 0) shape.insert(shape.begin(), modules.experts);
  if (tensor->shape != shape) {
    return Status::error(StatusCode::kCorruptFile,
                         fmt::format("{}, tensor '{}'", file.origin(), tensor->name),
                         format_shape(tensor->shape), "must be " + format_shape(shape));
  }
  Expected<std::vector<float>> values = decode_to_f32(*tensor);
  if (!values || modules.experts == 0) return values;
  const auto first = values->begin() + static_cast<std::ptrdiff_t>(*options.expert * rows);
  return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(rows));
}

// Gate's and Up's biases; one that is missing beside the other is zeros, and two of zeros are none.
// A name that ends in _bias beside a fused tensor is gpt-oss's mark, whatever it holds: rows of its
// Gate and Up alternate.
Status load_biases(const TensorFile& file, const LayerModules& modules, const LayerOptions& options,
                   MlpLayer& layer) {
  for (const std::string& module : {modules.gate, modules.up, modules.stacked}) {
    const TensorView* marked = module.empty() ? nullptr : file.find(module + "_bias");
    if (marked != nullptr) layer.alternating_bias = marked->name;
  }
  Expected<std::vector<float>> gate = load_bias(file, modules.gate, layer.n, modules, options);
  if (!gate) return gate.status();
  Expected<std::vector<float>> up = load_bias(file, modules.up, layer.n, modules, options);
  if (!up) return up.status();
  Expected<std::vector<float>> both =
      load_bias(file, modules.stacked, 2 * layer.n, modules, options);
  if (!both) return both.status();
  if (!both->empty()) {
    const auto middle = both->begin() + static_cast<std::ptrdiff_t>(layer.n);
    gate->assign(both->begin(), middle);
    up->assign(middle, both->end());
    if (options.stacked_order == StackedOrder::kUpFirst) std::swap(*gate, *up);
  }
  const auto adds = [](float value) { return value != 0.0f; };  // NaN does
  if (std::none_of(gate->begin(), gate->end(), adds) && std::none_of(up->begin(), up->end(), adds))
    return {};
  for (std::vector<float>* bias : {&*gate, &*up}) bias->resize(static_cast<size_t>(layer.n));
  layer.gate_bias = *std::move(gate);
  layer.up_bias = *std::move(up);
  return {};
}

size_t alignment_of(DataType type) {
  return type == DataType::kF32 ? 4 : type == DataType::kE2M1 ? 1 : 2;
}

}  // namespace

Expected<MlpLayer> load_mlp_layer(const TensorFile& file, const std::string& prefix,
                                  const LayerOptions& options) {
  return guarded(file.origin(), [&]() -> Expected<MlpLayer> {
    LayerModules modules;
    if (options.expert) {
      Expected<LayerModules> found = find_expert(file, prefix, *options.expert);
      if (!found) return found.status();
      modules = *std::move(found);
    } else {
      std::optional<LayerModules> found = find_modules(file, prefix);
      if (!found) return no_such_layer(file, prefix);
      modules = *std::move(found);
    }
    const bool separate = !modules.gate.empty();
    if (separate && !modules.stacked.empty()) {
      return Status::error(StatusCode::kCorruptFile, fmt::format("layer '{}'", prefix),
                           fmt::format("has {} and {}", modules.gate, modules.stacked),
                           "must be either separate or stacked");
    }
    MlpLayer layer;
    layer.memory.share_memory_of(file);
    DUALGEMM_TRY(separate ? load_separate(file, prefix, modules, options, layer)
                          : load_stacked(file, prefix, modules, options, layer));
    DUALGEMM_TRY(load_biases(file, modules, options, layer));
    return layer;
  });
}

Status check_runnable(const TensorFile& file, const MlpLayer& layer) {
  if (layer.type != DataType::kE2M1) {
    return Status::unsupported(layer.gate.tensor_name,
                               std::string("weights in ") + dualgemm::name_of(layer.type),
                               "must be NVFP4; `dualgemm quantize` makes it");
  }
  if (layer.alternating_bias.empty()) return {};
  return Status::unsupported(fmt::format("{}, tensor '{}'", file.origin(), layer.alternating_bias),
                             "gpt-oss's fused gate and up",
                             "their rows alternate: split them into gate_proj and up_proj, each "
                             "with its .bias");
}

Status make_runnable(MlpLayer& layer) {
  return guarded("layer", [&]() -> Status {
    for (LayerOperand* operand : {&layer.gate, &layer.up}) {
      const auto address = reinterpret_cast<uintptr_t>(operand->data.data());
      if (layer.type == DataType::kE2M1 && layer.nibble_order == NibbleOrder::kHighEven) {
        std::vector<std::byte> swapped(operand->data.size());
        DUALGEMM_TRY(swap_nibbles(operand->codes(), reinterpret_cast<uint8_t*>(swapped.data()),
                                  static_cast<int64_t>(swapped.size())));
        take_memory(layer, std::move(swapped), operand->data);
      } else if (address % alignment_of(layer.type) != 0) {
        take_memory(layer, {operand->data.begin(), operand->data.end()}, operand->data);
      }
    }
    layer.nibble_order = NibbleOrder::kLowEven;
    return {};
  });
}

}  // namespace dualgemm::checkpoint
