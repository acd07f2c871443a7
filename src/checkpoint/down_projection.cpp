#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/expert_slice.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/layer_names.hpp"
#include "checkpoint/layer_operand.hpp"
#include "checkpoint/mxfp4_weight.hpp"

namespace dualgemm::checkpoint {
namespace {

Expected<LayerModules> modules_of(const TensorFile& file, const std::string& prefix,
                                  const LayerOptions& options) {
  if (options.expert) return find_expert(file, prefix, *options.expert);
  const std::optional<LayerModules> found = find_modules(file, prefix);
  if (!found) return no_such_layer(file, prefix, options.weight.near_names);
  return *found;
}

// `experts`: how many the tensors of `module` hold.
Expected<DownProjection> load_projection(const TensorFile& file, const std::string& module,
                                         int64_t experts, const LayerOptions& options) {
  DownProjection out;
  out.memory.share_memory_of(file);
  Expected<Weight> weight = load_matrix(file, module, experts, options, out.memory);
  if (!weight) return weight.status();
  DUALGEMM_TRY(make_nvfp4(file, options, "", *weight, out.memory));
  for (const std::vector<float>* scales :
       {&weight->dequant_global_scales, &weight->dequant_input_scales}) {
    if (scales->size() <= 1) continue;
    return Status::error(StatusCode::kCorruptFile, weight->name,
                         fmt::format("{} global scales", scales->size()),
                         "only a stacked gate_up weight may have two");
  }
  if (holds_blocks(weight->convention)) DUALGEMM_TRY(unpack_ggml(*weight, out.memory));
  out.convention = weight->convention;
  out.type = weight->type;
  out.n = weight->n;
  out.k = weight->k;
  out.scale_layout = weight->scale_layout;
  out.nibble_order = weight->nibble_order;
  out.down = operand_of(*weight, weight->dequant_global_scales.front());
  out.unwritten_input_scale = weight->unwritten_input_scale;
  if (!weight->dequant_input_scales.empty())
    out.dequant_input_scale = weight->dequant_input_scales.front();
  Expected<std::vector<float>> factors =
      load_pre_quant_scale(file, module, out.k, experts, options);
  if (!factors) return factors.status();
  out.pre_quant_scale = *std::move(factors);
  const Expected<int64_t> rotation = rotation_wanted(file, module, out.k, options);
  if (!rotation) return rotation.status();
  out.hadamard = *rotation;
  // gpt-oss's name for it, too: rows of Down do not alternate.
  for (const char* name : {".bias", "_bias"}) {
    Expected<std::vector<float>> bias =
        load_bias(file, module + name, out.n, experts, options.expert);
    if (!bias) return bias.status();
    const bool adds = std::any_of(bias->begin(), bias->end(), [](float x) { return x != 0.0f; });
    if (adds) out.bias = *std::move(bias);
  }
  return out;
}

}  // namespace

Expected<DownProjection> load_down_projection(const TensorFile& file, const std::string& prefix,
                                              const LayerOptions& options) {
  return guarded(file.origin(), [&]() -> Expected<DownProjection> {
    const Expected<LayerModules> modules = modules_of(file, prefix, options);
    if (!modules) return modules.status();
    return load_projection(file, modules->down, modules->experts, options);
  });
}

bool has_down_projection(const TensorFile& file, const std::string& prefix,
                         const LayerOptions& options) {
  const Expected<LayerModules> modules = modules_of(file, prefix, options);
  if (!modules) return false;
  const auto any_below = [&](const std::string& stem) {
    const auto next = file.tensors().lower_bound(stem);
    return next != file.tensors().end() && next->first.starts_with(stem);
  };
  const std::string& down = modules->down;
  const size_t last = down.rfind('.') + 1;  // npos + 1 = 0
  for (const ConventionRow& row : conventions()) {
    const Suffixes& own = row.parameter;
    if (own.data == nullptr || own.underscore) continue;
    for (const char* end : {own.data, own.scales, own.global_scale, own.input_scale}) {
      if (end != nullptr && file.contains(down + end)) return true;
    }
  }
  for (const char* end : {kMxBlocks, kMxScales, "_bias"}) {
    if (file.contains(down + end)) return true;
  }
  return any_below(down + ".") || any_below(down.substr(0, last) + "_" + down.substr(last) + "_");
}

Expected<DownProjection> load_linear(const TensorFile& file, const std::string& module,
                                     const LayerOptions& options) {
  return guarded(file.origin(), [&]() -> Expected<DownProjection> {
    WeightOptions of_layers = options.weight;
    of_layers.skip_unwritten = true;
    const Expected<Weight> weight = load_weight_part(file, module, of_layers, {});
    if (!weight) return weight.status();
    if (options.expert && weight->experts == 0) {
      return Status::invalid("expert", fmt::format("{}", *options.expert),
                             fmt::format("'{}' is one matrix", module));
    }
    return load_projection(file, module, weight->experts, options);
  });
}

Status make_readable(DownProjection& down) {
  return guarded("layer", [&]() -> Status {
    DUALGEMM_TRY(make_runnable(down.down, down.type, down.nibble_order, down.memory));
    down.nibble_order = NibbleOrder::kLowEven;
    return {};
  });
}

Status make_runnable(DownProjection& down) {
  if (down.type == DataType::kE2M1) return make_readable(down);
  return Status::unsupported(down.down.tensor_name,
                             std::string("weights in ") + dualgemm::name_of(down.type),
                             "must be NVFP4; `dualgemm quantize` makes it");
}

}  // namespace dualgemm::checkpoint
