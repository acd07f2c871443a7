#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "dualgemm/formats.hpp"
#include "tools/checkpoint/checkpoint.hpp"
#include "tools/checkpoint/checkpoint_tensors.hpp"
#include "tools/checkpoint/guard.hpp"

namespace dualgemm::checkpoint {
namespace {

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

bool has_weight(const TensorFile& file, const std::string& module) {
  return file.contains(module + ".weight") || file.contains(module + ".weight_packed");
}

Status no_such_layer(const TensorFile& file, const std::string& prefix,
                     const LayerOptions& options) {
  const std::vector<std::string> layers = list_mlp_layers(file, options);
  if (layers.empty()) {  // the names of the file's own tensors tell most
    return file.get(join(prefix, options.gate_name) + ".weight").status();
  }
  const std::vector<std::string_view> views(layers.begin(), layers.end());
  return Status::error(StatusCode::kNotFound, fmt::format("layer '{}'", prefix),
                       fmt::format("no {} and {}, and no {} under it in {}", options.gate_name,
                                   options.up_name, options.stacked_name, file.origin()),
                       fmt::format("nearest of {} layers: {}", layers.size(),
                                   fmt::join(nearest_names(prefix, views), ", ")));
}

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
  return Status::error(
      StatusCode::kCorruptFile, fmt::format("input scales of '{}'", prefix),
      fmt::format("{} for gate, {} for up", shown(gate), shown(up)),
      "gate and up share one input: their scales must agree, or ask for the larger one");
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

Status load_separate(const TensorFile& file, const std::string& prefix, const LayerOptions& options,
                     MlpLayer& layer) {
  Expected<Weight> gate = load_weight(file, join(prefix, options.gate_name), options.weight);
  if (!gate) return gate.status();
  Expected<Weight> up = load_weight(file, join(prefix, options.up_name), options.weight);
  if (!up) return up.status();
  const auto key = [](const Weight& w) { return std::tuple(w.convention, w.type, w.n, w.k); };
  if (key(*gate) != key(*up)) {
    const auto shown = [](const Weight& w) {
      return fmt::format("{} {} [{}, {}]", name_of(w.convention), dualgemm::name_of(w.type), w.n,
                         w.k);
    };
    return Status::error(StatusCode::kCorruptFile, fmt::format("layer '{}'", prefix),
                         fmt::format("gate is {}, up is {}", shown(*gate), shown(*up)),
                         "gate and up must agree in convention, type and shape");
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

Status load_stacked(const TensorFile& file, const std::string& prefix, const LayerOptions& options,
                    MlpLayer& layer) {
  Expected<Weight> weight = load_weight(file, join(prefix, options.stacked_name), options.weight);
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

size_t alignment_of(DataType type) {
  return type == DataType::kF32 ? 4 : type == DataType::kE2M1 ? 1 : 2;
}

}  // namespace

Expected<MlpLayer> load_mlp_layer(const TensorFile& file, const std::string& prefix,
                                  const LayerOptions& options) {
  return guarded(file.origin(), [&]() -> Expected<MlpLayer> {
    const bool separate = has_weight(file, join(prefix, options.gate_name)) ||
                          has_weight(file, join(prefix, options.up_name));
    const bool stacked = has_weight(file, join(prefix, options.stacked_name));
    if (!separate && !stacked) return no_such_layer(file, prefix, options);
    if (separate && stacked) {
      return Status::error(StatusCode::kCorruptFile, fmt::format("layer '{}'", prefix),
                           fmt::format("has {} and {}", options.gate_name, options.stacked_name),
                           "must be either separate or stacked");
    }
    MlpLayer layer;
    layer.memory.share_memory_of(file);
    DUALGEMM_TRY(separate ? load_separate(file, prefix, options, layer)
                          : load_stacked(file, prefix, options, layer));
    return layer;
  });
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

std::vector<std::string> list_mlp_layers(const TensorFile& file, const LayerOptions& options) {
  std::set<std::string> layers;
  for (const auto& [name, tensor] : file.tensors()) {
    for (const std::string& part : {options.gate_name, options.stacked_name}) {
      for (const char* suffix : {".weight", ".weight_packed"}) {
        const std::string tail = part + suffix;
        if (name == tail) layers.insert("");
        if (name.ends_with("." + tail))
          layers.insert(name.substr(0, name.size() - tail.size() - 1));
      }
    }
  }
  return {layers.begin(), layers.end()};
}

}  // namespace dualgemm::checkpoint
