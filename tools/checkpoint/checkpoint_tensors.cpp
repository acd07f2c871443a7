#include "tools/checkpoint/checkpoint_tensors.hpp"

#include <fmt/format.h>

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

}  // namespace

WeightNames weight_names(Convention convention, const std::string& module) {
  switch (convention) {
    case Convention::kCompressedTensors:
      return {module + ".weight_packed", module + ".weight_scale", module + ".weight_global_scale",
              module + ".input_global_scale", true};
    case Convention::kModelOpt:
      return {module + ".weight", module + ".weight_scale", module + ".weight_scale_2",
              module + ".input_scale", false};
    case Convention::kGgml:
      return {module + ".weight", "", module + ".weight_scale_2", module + ".input_scale", false};
    case Convention::kPlain:
      break;
  }
  return {module + ".weight", "", "", "", false};
}

std::vector<int64_t> scale_shape(ScaleLayout layout, int64_t n, int64_t k) {
  const int64_t sf_cols = k / kSfVec;
  if (layout == ScaleLayout::kLinear) return {n, sf_cols};
  return {(n + 127) / 128 * 128, (sf_cols + 3) / 4 * 4};
}

Expected<ScaleLayout> scale_layout_of(const TensorFile& file, const WeightOptions& options) {
  if (options.scale_layout) return *options.scale_layout;
  return from_metadata(file, kScaleLayoutKey, ScaleLayout::kLinear, parse_scale_layout);
}

Expected<NibbleOrder> nibble_order_of(const TensorFile& file, const WeightOptions& options) {
  if (options.nibble_order) return *options.nibble_order;
  return from_metadata(file, kNibbleOrderKey, NibbleOrder::kLowEven, parse_nibble_order);
}

Expected<GgmlBlocks> ggml_blocks_of(const TensorFile& file, const WeightOptions& options) {
  if (options.convention) {
    return *options.convention == Convention::kGgml ? GgmlBlocks::kAll : GgmlBlocks::kNone;
  }
  const Expected<Convention> convention =
      from_metadata(file, kConventionKey, Convention::kModelOpt, parse_convention);
  if (!convention) return convention.status();
  return *convention == Convention::kGgml ? GgmlBlocks::kMarked : GgmlBlocks::kNone;
}

bool is_nvfp4_weight(const TensorFile& file, const std::string& module, GgmlBlocks ggml) {
  const TensorView* packed = file.find(module + ".weight_packed");
  const TensorView* data = packed != nullptr ? packed : file.find(module + ".weight");
  if (data == nullptr) return false;
  if (data->dtype != ElementType::kU8 && data->dtype != ElementType::kF4) return false;
  const TensorView* scales = file.find(module + ".weight_scale");
  if (scales != nullptr) return scales->dtype == ElementType::kF8E4M3;
  if (packed != nullptr || data->dtype != ElementType::kU8) return false;
  return ggml == GgmlBlocks::kAll ||
         (ggml == GgmlBlocks::kMarked && file.contains(module + ".weight_scale_2"));
}

Status record_layout(TensorFile& out, const Weight& weight) {
  if (weight.convention == Convention::kPlain) return {};
  if (weight.convention == Convention::kGgml) {
    return record(out, kConventionKey, name_of(Convention::kGgml));
  }
  DUALGEMM_TRY(record(out, kScaleLayoutKey, dualgemm::name_of(weight.scale_layout)));
  return record(out, kNibbleOrderKey, name_of(weight.nibble_order));
}

}  // namespace dualgemm::checkpoint
