#include "checkpoint/checkpoint_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/corrupt.hpp"
#include "checkpoint/json_events.hpp"
#include "checkpoint/json_text.hpp"

namespace dualgemm::checkpoint {
namespace {

// `parse` of the metadata under `key`; a bad value is the file's fault.
template <class T, class Parse>
Expected<T> from_metadata(const TensorFile& file, const char* key, T otherwise, Parse parse) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return otherwise;
  const Expected<T> value = parse(found->second);
  if (value) return *value;
  return Status::error(StatusCode::kCorruptFile, fmt::format("{}, metadata {}", file.origin(), key),
                       value.status().observed(), value.status().rule());
}

Status record(TensorFile& out, const char* key, const std::string& value) {
  const std::string& held = out.metadata().emplace(key, value).first->second;
  if (held == value) return {};
  return Status::invalid(key, fmt::format("'{}' beside '{}'", value, held),
                         "all NVFP4 weights of a file must be laid out alike");
}

std::string parent_of(const std::string& module, std::string& last) {
  const size_t dot = module.rfind('.');
  last = dot == module.npos ? module : module.substr(dot + 1);
  return dot == module.npos ? std::string() : module.substr(0, dot + 1);
}

// The names that `suffixes` give to the tensors of `module`.
WeightNames names_below(const ConventionRow& row, const Suffixes& suffixes,
                        const std::string& module) {
  std::string stem = module;
  if (suffixes.underscore) {
    std::string last;
    const std::string parent = parent_of(module, last);
    stem = parent + "_" + last;
  }
  const auto name = [&](const char* suffix) {
    return suffix == nullptr ? std::string() : stem + suffix;
  };
  return {name(suffixes.data), name(suffixes.scales), name(suffixes.global_scale),
          name(suffixes.input_scale), row.id};
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() > end.size() && text.ends_with(end);
}

// What torchao's metadata say about the scales of one parameter: JSON under its name, where others
// may write anything.
Expected<std::optional<ScaleLayout>> torchao_layout(const TensorFile& file,
                                                    const std::string& parameter) {
  using Layout = std::optional<ScaleLayout>;
  constexpr size_t kLongest = 1 << 16;  // real entries have some hundred bytes
  const auto found = file.metadata().find(parameter);
  if (found == file.metadata().end() || found->second.size() > kLongest) return Layout();
  std::string_view text = found->second;
  const std::string where = fmt::format("{}, metadata '{}'", file.origin(), parameter);
  for (const char* key : {"_data", "is_swizzled_scales"}) {
    const auto members = json_members(text, where);
    const JsonMember* member = members ? find_member(*members, key) : nullptr;
    if (member == nullptr) return Layout();
    text = member->value;
  }
  if (text == "true") return Layout(ScaleLayout::kSwizzled128x4);
  if (text == "false") return Layout(ScaleLayout::kLinear);
  return corrupt(where + ", is_swizzled_scales", printable(text), "must be true or false");
}

}  // namespace

WeightNames weight_names(Convention convention, const std::string& module) {
  const ConventionRow& row = row_of(convention);
  return names_below(row, row.module, module);
}

// Names that one convention alone has come first, the module's own name last: it may be anything's.
std::optional<WeightNames> find_names(const TensorFile& file, const std::string& module) {
  const std::span<const ConventionRow> rows = conventions();
  std::optional<WeightNames> shared;  // data whose block scales, if they have any, are missing
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (row->module.scales == nullptr) continue;  // the names of its data are another row's, too
    WeightNames names = weight_names(row->id, module);
    if (!file.contains(names.data)) continue;
    if (has_own_data(*row)) return names;
    if (row->gguf_global_scale != nullptr && !file.contains(names.global_scale) &&
        file.contains(module + row->gguf_global_scale)) {
      names.global_scale = module + row->gguf_global_scale;
    }
    if (file.contains(names.scales)) return names;
    shared = std::move(names);
  }
  if (shared) return shared;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (row->parameter.data == nullptr) continue;
    WeightNames names = names_below(*row, row->parameter, module);
    const TensorView* data = file.find(names.data);
    if (data == nullptr) continue;
    const bool has_mark = names.data != module || data->shape.size() == 3;
    if (has_mark || file.contains(names.scales)) return names;
  }
  return std::nullopt;
}

std::optional<std::string> module_before(const std::string& name, const char* suffix,
                                         bool underscore) {
  if (suffix == nullptr || *suffix == '\0' || !ends_with(name, suffix)) return std::nullopt;
  const std::string stem = name.substr(0, name.size() - std::string_view(suffix).size());
  if (!underscore) return stem;
  std::string last;
  const std::string parent = parent_of(stem, last);
  if (!last.starts_with("_") || last.size() < 2) return std::nullopt;
  return parent + last.substr(1);
}

std::optional<std::string> module_of_data(const TensorFile& file, const std::string& name) {
  for (const ConventionRow& row : conventions()) {
    if (auto module = module_before(name, row.module.data, row.module.underscore)) return module;
  }
  for (const ConventionRow& row : conventions()) {
    if (auto module = module_before(name, row.parameter.data, row.parameter.underscore))
      return module;
  }
  if (const auto names = find_names(file, name); names && names->data == name) return name;
  return std::nullopt;
}

std::vector<int64_t> scale_shape(ScaleLayout layout, int64_t n, int64_t k) {
  const int64_t sf_cols = k / kSfVec;
  if (layout == ScaleLayout::kLinear) return {n, sf_cols};
  return {(n + 127) / 128 * 128, (sf_cols + 3) / 4 * 4};
}

Expected<std::optional<ScaleLayout>> scale_layout_of(const TensorFile& file,
                                                     const std::string& module,
                                                     const WeightOptions& options) {
  if (options.scale_layout) return std::optional(*options.scale_layout);
  if (file.metadata().count(kScaleLayoutKey) != 0) {
    const Expected<ScaleLayout> layout =
        from_metadata(file, kScaleLayoutKey, ScaleLayout::kLinear, parse_scale_layout);
    if (!layout) return layout.status();
    return std::optional(*layout);
  }
  const auto torchao = torchao_layout(file, module + ".weight");
  return !torchao || *torchao ? torchao : torchao_layout(file, module);
}

std::optional<ScaleLayout> layout_of_shape(std::span<const int64_t> shape, int64_t n, int64_t k,
                                           std::optional<ScaleLayout> wanted) {
  const auto is = [shape](std::initializer_list<int64_t> extents) {
    return std::equal(shape.begin(), shape.end(), extents.begin(), extents.end());
  };
  const int64_t sf_cols = k / kSfVec, tiles_n = (n + 127) / 128, tiles_k = (sf_cols + 3) / 4;
  const bool flat_linear = wanted == ScaleLayout::kLinear && is({n * sf_cols});
  const bool linear = is({n, sf_cols}) || flat_linear;
  const bool swizzled = is({tiles_n * 128, tiles_k * 4}) || is({tiles_n * tiles_k * 512}) ||
                        is({tiles_n * 32, tiles_k * 16}) || is({tiles_n, tiles_k, 32, 4, 4});
  if (linear && wanted != ScaleLayout::kSwizzled128x4) return ScaleLayout::kLinear;
  if (swizzled && wanted != ScaleLayout::kLinear) return ScaleLayout::kSwizzled128x4;
  return std::nullopt;
}

Expected<NibbleOrder> nibble_order_of(const TensorFile& file, const WeightOptions& options) {
  if (options.nibble_order) return *options.nibble_order;
  return from_metadata(file, kNibbleOrderKey, NibbleOrder::kLowEven, parse_nibble_order);
}

Expected<GgmlBlocks> ggml_blocks_of(const TensorFile& file, const WeightOptions& options) {
  const auto format = file.metadata().find(kFormatKey);
  if (format != file.metadata().end()) {
    if (format->second == kFormatGguf) return GgmlBlocks::kAll;
    return corrupt(fmt::format("{}, metadata {}", file.origin(), kFormatKey),
                   printable(format->second), fmt::format("must be {}", kFormatGguf));
  }
  if (options.convention) {
    return holds_blocks(*options.convention) ? GgmlBlocks::kAll : GgmlBlocks::kNone;
  }
  const Expected<Convention> convention =
      from_metadata(file, kConventionKey, Convention::kModelOpt, parse_convention);
  if (!convention) return convention.status();
  return holds_blocks(*convention) ? GgmlBlocks::kMarked : GgmlBlocks::kNone;
}

bool has_mx_scales(const TensorView& data, const TensorView& scales) {
  const int64_t values = data.elements() * (data.dtype == ElementType::kU8 ? 2 : 1);
  return scales.dtype != ElementType::kF8E4M3 && values == scales.elements() * 32;
}

bool is_nvfp4_weight(const TensorFile& file, const std::string& module, GgmlBlocks ggml) {
  const std::optional<WeightNames> names = find_names(file, module);
  if (!names) return false;
  const TensorView& data = *file.find(names->data);
  if (data.dtype != ElementType::kU8 && data.dtype != ElementType::kF4) return false;
  if (const TensorView* scales = file.find(names->scales)) {
    return scales->dtype == ElementType::kF8E4M3 ||
           (scales->dtype == ElementType::kU8 && !has_mx_scales(data, *scales));
  }
  const bool may_be_blocks = names->data == weight_names(Convention::kGgml, module).data;
  if (!may_be_blocks || data.dtype != ElementType::kU8) return false;
  return ggml == GgmlBlocks::kAll ||
         (ggml == GgmlBlocks::kMarked && file.contains(names->global_scale));
}

Expected<std::vector<std::string>> list_nvfp4_weights(const TensorFile& file,
                                                      const WeightOptions& options) {
  const Expected<GgmlBlocks> ggml = ggml_blocks_of(file, options);
  if (!ggml) return ggml.status();
  std::vector<std::string> modules;
  for (const auto& [name, tensor] : file.tensors()) {
    const std::optional<std::string> module = module_of_data(file, name);
    if (module && is_nvfp4_weight(file, *module, *ggml)) modules.push_back(*module);
  }
  std::sort(modules.begin(), modules.end());
  modules.erase(std::unique(modules.begin(), modules.end()), modules.end());
  return modules;
}

Status record_layout(TensorFile& out, const Weight& weight) {
  const ConventionRow& row = row_of(weight.convention);
  if (row.stored == Stored::kValues) return {};
  if (row.stored == Stored::kGgmlBlocks) return record(out, kConventionKey, row.name);
  DUALGEMM_TRY(record(out, kScaleLayoutKey, dualgemm::name_of(weight.scale_layout)));
  return record(out, kNibbleOrderKey, name_of(weight.nibble_order));
}

}  // namespace dualgemm::checkpoint
