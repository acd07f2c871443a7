#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/layer_names.hpp"
#include "checkpoint/layer_operand.hpp"
#include "checkpoint/mxfp4_weight.hpp"

namespace dualgemm::checkpoint {
namespace {

// The one scale of A that the scales stored beside the weights amount to.
Expected<std::optional<float>> one_input_scale(const std::string& prefix,
                                               const std::vector<float>& gate,
                                               const std::vector<float>& up, bool take_max) {
  if (gate.empty() && up.empty()) return std::optional<float>();
  std::vector<float> all = gate;
  all.insert(all.end(), up.begin(), up.end());
  const auto is_nan = [](float scale) { return std::isnan(scale); };
  const auto nans = std::count_if(all.begin(), all.end(), is_nan);  // allow_nan
  if (nans > 0 && (take_max || static_cast<size_t>(nans) == all.size()))
    return std::optional(std::numeric_limits<float>::quiet_NaN());
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  if (take_max || (nans == 0 && *low == *high && !gate.empty() && !up.empty()))
    return std::optional(*high);
  const auto shown = [](const std::vector<float>& scales) {
    return scales.empty() ? std::string("none") : fmt::format("{}", fmt::join(scales, " and "));
  };
  return Status::error(StatusCode::kCorruptFile, fmt::format("input scales of '{}'", prefix),
                       fmt::format("{} for gate, {} for up", shown(gate), shown(up)),
                       "gate and up share one input: their scales must agree; --max-input-scale "
                       "(LayerOptions::max_input_scale) takes the larger");
}

void describe_layer(MlpLayer& layer, const Weight& weight, int64_t n) {
  layer.convention = weight.convention;
  layer.type = weight.type;
  layer.n = n;
  layer.k = weight.k;
  layer.scale_layout = weight.scale_layout;
  layer.nibble_order = weight.nibble_order;
  layer.from_mxfp4 = weight.from_mxfp4;
}

Status load_separate(const TensorFile& file, const std::string& prefix, const LayerModules& modules,
                     const LayerOptions& options, MlpLayer& layer) {
  Expected<Weight> gate = load_matrix(file, modules.gate, modules.experts, options, layer.memory);
  if (!gate) return gate.status();
  Expected<Weight> up = load_matrix(file, modules.up, modules.experts, options, layer.memory);
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
  layer.unwritten_input_scale = gate->unwritten_input_scale || up->unwritten_input_scale;
  if (!layer.unwritten_input_scale) {
    Expected<std::optional<float>> input_scale = one_input_scale(
        prefix, gate->dequant_input_scales, up->dequant_input_scales, options.max_input_scale);
    if (!input_scale) return input_scale.status();
    layer.dequant_input_scale = *input_scale;
  }
  if (holds_blocks(gate->convention)) {
    DUALGEMM_TRY(unpack_ggml(*gate, layer.memory));
    DUALGEMM_TRY(unpack_ggml(*up, layer.memory));
  }
  for (Weight* weight : {&*gate, &*up})
    DUALGEMM_TRY(make_nvfp4(file, options, "", *weight, layer.memory));
  describe_layer(layer, *gate, gate->n);
  layer.gate = operand_of(*gate, gate->dequant_global_scales[0]);
  layer.up = operand_of(*up, up->dequant_global_scales[0]);
  return {};
}

// The bias of a module, or where the module is a parameter its own; empty: there is none.
std::string bias_of(const TensorFile& file, const std::string& module) {
  if (module.empty()) return {};
  return file.contains(module + "_bias") ? module + "_bias" : module + ".bias";
}

// gpt-oss's marks: rows of its Gate and Up alternate.
bool rows_alternate(const TensorFile& file, const LayerModules& modules) {
  return !modules.stacked.empty() &&
         (file.contains(modules.stacked + kMxBlocks) || file.contains(modules.stacked + "_bias"));
}

// Every other row of `rows` rows, from `first` on.
std::vector<std::byte> every_other(std::span<const std::byte> from, int64_t rows, int64_t first) {
  const size_t bytes = from.size() / static_cast<size_t>(rows);
  std::vector<std::byte> out;
  out.reserve(from.size() / 2);
  for (auto row = static_cast<size_t>(first); row < static_cast<size_t>(rows); row += 2) {
    const auto part = from.subspan(row * bytes, bytes);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

// One of the two matrices that rows of a stacked weight are: the first or the second half of them,
// or every other from the first or the second on, in memory of the layer's.
Weight half_of(const Weight& both, bool second, bool alternate, TensorFile& memory) {
  Weight half = both;
  half.n = both.n / 2;
  half.dequant_global_scales = {second ? both.dequant_global_scales.back()
                                       : both.dequant_global_scales.front()};
  const auto part = [&](std::span<const std::byte> of_both) -> std::span<const std::byte> {
    const size_t bytes = of_both.size() / 2;
    if (!alternate) return second ? of_both.last(bytes) : of_both.first(bytes);
    auto owner = std::make_shared<const std::vector<std::byte>>(
        every_other(of_both, both.n, second ? 1 : 0));
    const std::span<const std::byte> view = *owner;
    memory.keep_alive(std::move(owner));
    return view;
  };
  half.data = part(both.data);
  const std::span<const std::byte> scales = part(std::as_bytes(both.scales));
  half.scales = {reinterpret_cast<const uint8_t*>(scales.data()), scales.size()};
  return half;
}

Status load_stacked(const TensorFile& file, const std::string& prefix, const LayerModules& modules,
                    const LayerOptions& options, MlpLayer& layer) {
  Expected<Weight> weight =
      load_matrix(file, modules.stacked, modules.experts, options, layer.memory);
  if (!weight) return weight.status();
  const int64_t half = weight->n / 2;
  if (weight->n % 2 != 0) {
    return Status::error(StatusCode::kCorruptFile, weight->name, fmt::format("{} rows", weight->n),
                         "gate and up stacked must have an even number of rows");
  }
  const bool alternate = rows_alternate(file, modules);
  if (weight->scale_layout == ScaleLayout::kSwizzled128x4 && (alternate || half % 128 != 0)) {
    return Status::unsupported(weight->name, fmt::format("swizzled scales, {} rows each", half),
                               "rows are cut inside a 128-row tile: convert the scales to linear");
  }
  const std::vector<float>& input = weight->dequant_input_scales;
  Expected<std::optional<float>> input_scale =
      one_input_scale(prefix, input, input, options.max_input_scale);
  if (!input_scale) return input_scale.status();
  layer.dequant_input_scale = *input_scale;
  layer.unwritten_input_scale = weight->unwritten_input_scale;
  if (holds_blocks(weight->convention)) DUALGEMM_TRY(unpack_ggml(*weight, layer.memory));
  describe_layer(layer, *weight, half);
  layer.stacked = true;
  const bool gate_first = alternate || options.stacked_order == StackedOrder::kGateFirst;
  for (const bool second : {false, true}) {
    Weight half = half_of(*weight, second, alternate, layer.memory);
    const bool is_gate = second != gate_first;
    DUALGEMM_TRY(make_nvfp4(file, options, is_gate ? ", gate" : ", up", half, layer.memory));
    (is_gate ? layer.gate : layer.up) = operand_of(half, half.dequant_global_scales.front());
  }
  return {};
}

// Gate's and Up's biases; one that is missing beside the other is zeros, and two of zeros are none.
Status load_biases(const TensorFile& file, const LayerModules& modules, const LayerOptions& options,
                   MlpLayer& layer) {
  Expected<std::vector<float>> gate =
      load_bias(file, bias_of(file, modules.gate), layer.n, modules.experts, options.expert);
  if (!gate) return gate.status();
  Expected<std::vector<float>> up =
      load_bias(file, bias_of(file, modules.up), layer.n, modules.experts, options.expert);
  if (!up) return up.status();
  Expected<std::vector<float>> both =
      load_bias(file, bias_of(file, modules.stacked), 2 * layer.n, modules.experts, options.expert);
  if (!both) return both.status();
  if (!both->empty() && rows_alternate(file, modules)) {
    for (size_t i = 0; i < both->size(); ++i) (i % 2 == 0 ? *gate : *up).push_back((*both)[i]);
  } else if (!both->empty()) {
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

// Gate and Up share their input, and so its factors.
Status load_factors(const TensorFile& file, const std::string& prefix, const LayerModules& modules,
                    const LayerOptions& options, MlpLayer& layer) {
  if (modules.gate.empty()) {
    const Expected<int64_t> rotation = rotation_wanted(file, modules.stacked, layer.k, options);
    if (!rotation) return rotation.status();
    layer.hadamard = *rotation;
    Expected<std::vector<float>> both =
        load_pre_quant_scale(file, modules.stacked, layer.k, modules.experts, options);
    if (!both) return both.status();
    layer.pre_quant_scale = *std::move(both);
    return {};
  }
  const Expected<int64_t> of_gate = rotation_wanted(file, modules.gate, layer.k, options);
  const Expected<int64_t> of_up = rotation_wanted(file, modules.up, layer.k, options);
  if (!of_gate || !of_up) return !of_gate ? of_gate.status() : of_up.status();
  if (*of_gate != *of_up) {
    return Status::unsupported(
        fmt::format("layer '{}'", prefix),
        fmt::format("gate's input is rotated by {} columns, up's by {}", *of_gate, *of_up),
        "gate and up share one input");
  }
  layer.hadamard = *of_gate;
  Expected<std::vector<float>> gate =
      load_pre_quant_scale(file, modules.gate, layer.k, modules.experts, options);
  if (!gate) return gate.status();
  const Expected<std::vector<float>> up =
      load_pre_quant_scale(file, modules.up, layer.k, modules.experts, options);
  if (!up) return up.status();
  if (*gate != *up) {
    return Status::error(StatusCode::kCorruptFile, fmt::format("layer '{}'", prefix),
                         "pre_quant_scale of gate and of up differ",
                         "gate and up share one input: its factors must agree");
  }
  layer.pre_quant_scale = *std::move(gate);
  return {};
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
      if (!found) return no_such_layer(file, prefix, options.weight.near_names);
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
    DUALGEMM_TRY(load_factors(file, prefix, modules, options, layer));
    return layer;
  });
}

const char* stored_as(const MlpLayer& layer) noexcept {
  return layer.from_mxfp4 ? "mxfp4" : name_of(layer.convention);
}

Status check_runnable(const MlpLayer& layer) {
  if (layer.type != DataType::kE2M1) {
    return Status::unsupported(layer.gate.tensor_name,
                               std::string("weights in ") + dualgemm::name_of(layer.type),
                               "must be NVFP4; `dualgemm quantize` makes it");
  }
  return {};
}

Status make_runnable(MlpLayer& layer) {
  return guarded("layer", [&]() -> Status {
    for (LayerOperand* operand : {&layer.gate, &layer.up})
      DUALGEMM_TRY(make_runnable(*operand, layer.type, layer.nibble_order, layer.memory));
    layer.nibble_order = NibbleOrder::kLowEven;
    return {};
  });
}

}  // namespace dualgemm::checkpoint
