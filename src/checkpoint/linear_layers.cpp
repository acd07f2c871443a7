#include "checkpoint/linear_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "checkpoint/checkpoint_tensors.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr std::array kKindNames = {"mlp", "experts", "attention", "other"};

bool holds_any(const std::string& name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != name.npos; });
}

LayerKind kind_of(const std::string& module) {
  if (holds_any(module, {"experts", "_exps"})) return LayerKind::kExperts;
  if (holds_any(module, {"attn", "attention"})) return LayerKind::kAttention;
  if (holds_any(module, {"mlp.gate.", "router"}) || module.ends_with("mlp.gate"))
    return LayerKind::kOther;
  if (holds_any(module, {"mlp", "ffn", "feed_forward", "gate_proj", "up_proj", "down_proj"}))
    return LayerKind::kMlp;
  return LayerKind::kOther;
}

bool is_float(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kF16 || type == ElementType::kBF16;
}
bool is_byte_scale(ElementType type) {
  return type == ElementType::kU8 || type == ElementType::kF8E8M0;
}

LinearScheme scheme(LinearFormat format, Granularity granularity, int64_t rows = 0,
                    int64_t cols = 0) {
  LinearScheme found;
  found.format = format;
  found.granularity = granularity;
  found.rows = rows;
  found.cols = cols;
  return found;
}
LinearScheme other(std::string description) {
  LinearScheme found = scheme(LinearFormat::kOther, Granularity::kNone);
  found.description = std::move(description);
  return found;
}

// Tensors that stand beside data, whose names could be a module's own where experts are parameters.
bool is_beside_data(const std::string& name) {
  constexpr std::array kEndings = {"_scale",     "_scales",     "_scale_2",
                                   "_scale_inv", "_zero_point", "_bias"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](const char* ending) { return name.ends_with(ending); });
}

// The side of a block of which `parts` cover `extent`; nothing: no power of two does.
std::optional<int64_t> side_of_block(int64_t extent, int64_t parts) {
  for (int64_t side = 8; parts > 0 && side <= 4096; side *= 2) {
    if ((extent + side - 1) / side == parts) return side;
  }
  return std::nullopt;
}

// The blocks that scales [.., rows, cols] stand for.
LinearScheme fp8_blocks(const LinearLayer& layer, const TensorView& scales) {
  const size_t rank = scales.shape.size();
  // 128 x 128 is what all of them have; where it fits, smaller extents fit other blocks, too.
  const int64_t rows = scales.shape[rank - 2], cols = scales.shape[rank - 1];
  constexpr int64_t kUsual = 128;
  const auto covers = [](int64_t extent, int64_t parts) {
    return (extent + kUsual - 1) / kUsual == parts;
  };
  if (covers(layer.n, rows) && covers(layer.k, cols))
    return scheme(LinearFormat::kFp8, Granularity::kBlock, kUsual, kUsual);
  const auto block_rows = side_of_block(layer.n, rows), block_cols = side_of_block(layer.k, cols);
  if (block_rows && block_cols)
    return scheme(LinearFormat::kFp8, Granularity::kBlock, *block_rows, *block_cols);
  return other(fmt::format("FP8 with scales {}", format_shape(scales.shape)));
}

LinearScheme fp8_scheme(const LinearLayer& layer, const TensorView* scales) {
  if (scales == nullptr) return other("FP8 without scales");
  const int64_t count = scales->elements(), matrices = std::max<int64_t>(1, layer.experts);
  if (is_byte_scale(scales->dtype)) {
    return count * 32 == matrices * layer.n * layer.k
               ? scheme(LinearFormat::kMxfp8, Granularity::kGroup, 0, 32)
               : other(fmt::format("FP8 with U8 scales {}", format_shape(scales->shape)));
  }
  if (count == 1 || count == matrices) return scheme(LinearFormat::kFp8, Granularity::kTensor);
  if (count == matrices * layer.n) return scheme(LinearFormat::kFp8, Granularity::kChannel);
  if (scales->shape.size() >= 2) return fp8_blocks(layer, *scales);
  return other(fmt::format("FP8 with scales {}", format_shape(scales->shape)));
}

class LayerLister {
 public:
  LayerLister(const TensorFile& file, const ModelQuantization& quantization)
      : file_(file), quantization_(quantization) {}

  Expected<std::vector<LinearLayer>> list() {
    std::vector<LinearLayer> layers;
    for (const auto& [name, tensor] : file_.tensors()) {
      std::optional<LinearLayer> layer = layer_of(name, tensor);
      if (!layer || holds_any(layer->module, {"embed", "embd", "wte", "wpe", "norm", "conv"}))
        continue;
      if (quantization_.is_rotation(layer->module)) continue;
      layer->kind = kind_of(layer->module);
      compare(*layer);
      const Expected<int64_t> hadamard = rotation_of(quantization_, layer->module, layer->k);
      if (!hadamard) return hadamard.status();
      layer->hadamard = *hadamard;
      layers.push_back(*std::move(layer));
    }
    std::sort(layers.begin(), layers.end(),
              [](const LinearLayer& a, const LinearLayer& b) { return a.module < b.module; });
    return layers;
  }

 private:
  // The layer whose data the tensor holds.
  std::optional<LinearLayer> layer_of(const std::string& name, const TensorView& tensor) const {
    const size_t rank = tensor.shape.size();
    if (rank < 2 || rank > 4 || tensor.elements() == 0 || is_beside_data(name)) return std::nullopt;
    LinearLayer layer;
    layer.bytes = static_cast<int64_t>(tensor.data.size());
    if (const auto blocks = module_before(name, "_blocks", false);
        blocks && rank >= 3) {  // gpt-oss
      layer.module = *blocks;
      set_extents(tensor.shape[rank - 3], tensor.shape[rank - 2] * tensor.shape[rank - 1] * 2,
                  rank == 4 ? tensor.shape[0] : 0, layer);
      layer.scheme = scheme(LinearFormat::kMxfp4, Granularity::kGroup, 0, 32);
      add_bytes(file_.find(*blocks + "_scales"), layer);
      return layer;
    }
    const std::optional<std::string> module = module_of_data(file_, name);
    if (!module || rank > 3) return std::nullopt;
    layer.module = *module;
    set_extents(tensor.shape[rank - 2], tensor.shape[rank - 1], rank == 3 ? tensor.shape[0] : 0,
                layer);
    const std::optional<WeightNames> names = find_names(file_, *module);
    if (!names) {
      layer.scheme = scheme_of(tensor, nullptr, layer);
      return layer;
    }
    if (names->data != name) return std::nullopt;  // another tensor is the layer's
    const TensorView* scales = names->scales.empty() ? nullptr : file_.find(names->scales);
    if (scales == nullptr) scales = file_.find(*module + ".weight_scale_inv");
    layer.scheme = scheme_of(tensor, scales, layer);
    add_bytes(scales, layer);
    const bool has_input_scale = !names->input_scale.empty() && file_.contains(names->input_scale);
    if (has_input_scale) layer.scheme.activations = ActivationScheme::kStatic;
    return layer;
  }

  static void set_extents(int64_t n, int64_t k, int64_t experts, LinearLayer& layer) {
    layer.n = n;
    layer.k = k;
    layer.experts = experts;
  }
  static void add_bytes(const TensorView* tensor, LinearLayer& layer) {
    if (tensor != nullptr) layer.bytes += static_cast<int64_t>(tensor->data.size());
  }

  // Format and granularity, and the columns that the data stand for.
  LinearScheme scheme_of(const TensorView& data, const TensorView* scales,
                         LinearLayer& layer) const {
    if (is_float(data.dtype)) return {};
    if (data.dtype == ElementType::kF8E4M3) return fp8_scheme(layer, scales);
    if (data.dtype != ElementType::kU8 && data.dtype != ElementType::kF4)
      return other(name_of(data.dtype));
    if (scales == nullptr) {
      const bool is_ggml = data.dtype == ElementType::kU8 && layer.k % kGgmlBlockBytes == 0;
      layer.k = is_ggml ? layer.k / kGgmlBlockBytes * kGgmlBlockValues : layer.k;
      return is_ggml ? scheme(LinearFormat::kNvfp4, Granularity::kGroup, 0, 16)
                     : other("U8 without scales");
    }
    const bool k_outer = scales->shape.size() == 3 && data.shape.size() == 3 &&
                         scales->shape[2] == data.shape[2] && data.shape[1] == scales->shape[1] * 8;
    if (k_outer) std::swap(layer.n, layer.k);
    if (data.dtype == ElementType::kU8 && layer.k < INT64_MAX / 2) layer.k *= 2;
    if (has_mx_scales(data, *scales))
      return scheme(LinearFormat::kMxfp4, Granularity::kGroup, 0, 32);
    return scheme(LinearFormat::kNvfp4, Granularity::kGroup, 0, 16);
  }

  // What the config says, beside what the tensors are.
  void compare(LinearLayer& layer) const {
    if (quantization_.groups().empty()) return;
    const std::vector<const LinearScheme*> said = quantization_.schemes_of(layer.module);
    for (const LinearScheme* one : said) {
      if (!agree(*one, layer.scheme)) continue;
      layer.scheme.activations = one->activations;
      layer.scheme.source = one->source;
      return;
    }
    const bool is_quantized = layer.scheme.format != LinearFormat::kFloat;
    if (said.empty()) {
      if (!is_quantized) return;
      layer.contradiction = quantization_.is_ignored(layer.module)
                                ? "the config leaves it alone (ignore)"
                                : "no group of the config claims it";
      return;
    }
    layer.contradiction = fmt::format("{} says {}", said.front()->source, text_of(*said.front()));
  }

  const TensorFile& file_;
  const ModelQuantization& quantization_;
};

}  // namespace

const char* name_of(LayerKind kind) noexcept { return kKindNames[static_cast<size_t>(kind)]; }

Expected<std::vector<LinearLayer>> list_linear_layers(const TensorFile& file,
                                                      const ModelQuantization& quantization) {
  return LayerLister(file, quantization).list();
}

Expected<ModelQuantization> quantization_beside(const TensorFile& file) {
  const std::string folder = folder_of_model(file);
  if (folder.empty()) return ModelQuantization();
  Expected<ModelQuantization> said = ModelQuantization::read(folder);
  if (said || said.status().code() == StatusCode::kUnsupported) return said;
  return ModelQuantization();
}

std::string folder_of_model(const TensorFile& file) {
  if (file.paths().empty()) return {};
  const std::string& path = file.paths().front();
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace dualgemm::checkpoint
