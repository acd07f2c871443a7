#include <fmt/format.h>

#include <cmath>

#include "dualgemm/formats.hpp"
#include "tools/checkpoint/checkpoint.hpp"
#include "tools/checkpoint/checkpoint_tensors.hpp"
#include "tools/checkpoint/guard.hpp"

namespace dualgemm::checkpoint {
namespace {

Status wrong(const TensorFile& file, const std::string& tensor, std::string observed,
             std::string rule, StatusCode code = StatusCode::kCorruptFile) {
  return Status::error(code, fmt::format("{}, tensor '{}'", file.origin(), tensor),
                       std::move(observed), std::move(rule));
}

std::string describe(const TensorView& tensor) {
  return fmt::format("{} {}", name_of(tensor.dtype), format_shape(tensor.shape));
}

// One or two positive finite FP32 values, as multipliers.
Expected<std::vector<float>> read_global_scales(const TensorFile& file, const std::string& name,
                                                bool is_divisor) {
  const Expected<TensorView> tensor = file.get(name);
  if (!tensor) return tensor.status();
  const bool fits = tensor->shape.size() <= 1 && tensor->elements() >= 1 && tensor->elements() <= 2;
  if (tensor->dtype != ElementType::kF32 || !fits) {
    return wrong(file, name, describe(*tensor), "a global scale must be F32 [], [1] or [2]");
  }
  std::vector<float> multipliers;
  for (int64_t i = 0; i < tensor->elements(); ++i) {
    const auto stored = load_element<float>(tensor->data, i);
    const float multiplier = is_divisor ? 1.0f / stored : stored;
    if (!(stored > 0.0f) || !std::isfinite(stored) || !std::isfinite(multiplier)) {
      return wrong(file, name, fmt::format("value {}", stored),
                   is_divisor ? "a global scale, and its reciprocal, must be finite and > 0"
                              : "a global scale must be finite and > 0");
    }
    multipliers.push_back(multiplier);
  }
  return multipliers;
}

Expected<Convention> find_convention(const TensorFile& file, const std::string& module, bool ggml) {
  const TensorView* packed = file.find(module + ".weight_packed");
  const TensorView* data = file.find(module + ".weight");
  if (packed != nullptr && data != nullptr) {
    return wrong(file, packed->name, "present beside " + data->name, "only one of them must exist");
  }
  if (packed != nullptr) return Convention::kCompressedTensors;
  if (data == nullptr) return file.get(module + ".weight").status();
  switch (data->dtype) {
    case ElementType::kF16:
    case ElementType::kBF16:
    case ElementType::kF32:
      return Convention::kPlain;
    case ElementType::kU8:
    case ElementType::kF4: {
      const Expected<TensorView> scales = file.get(module + ".weight_scale");
      if (scales) return Convention::kModelOpt;
      if (ggml && data->dtype == ElementType::kU8) return Convention::kGgml;
      return scales.status();
    }
    default:
      return wrong(file, data->name, describe(*data),
                   "a weight must be F32, F16, BF16, or NVFP4 codes (U8 or F4)",
                   StatusCode::kUnsupported);
  }
}

// Sets data, type, n and k from the tensor's dtype and shape.
Status read_data(const TensorFile& file, const TensorView& tensor, Weight& weight) {
  weight.name = tensor.name;
  weight.data = tensor.data;
  if (tensor.shape.size() != 2 || tensor.elements() == 0) {
    return wrong(file, tensor.name, describe(tensor), "a weight must be a matrix with elements");
  }
  weight.n = tensor.shape[0];
  weight.k = tensor.shape[1];
  if (weight.convention == Convention::kPlain) {
    weight.type = tensor.dtype == ElementType::kF32   ? DataType::kF32
                  : tensor.dtype == ElementType::kF16 ? DataType::kF16
                                                      : DataType::kBF16;
  } else {
    weight.type = DataType::kE2M1;
    if (tensor.dtype != ElementType::kU8 && tensor.dtype != ElementType::kF4) {
      return wrong(file, tensor.name, describe(tensor), "NVFP4 codes must be U8 or F4",
                   StatusCode::kUnsupported);
    }
    if (weight.convention == Convention::kGgml) {
      if (weight.k % kGgmlBlockBytes != 0) {
        return wrong(file, tensor.name, describe(tensor),
                     "rows of ggml NVFP4 must be whole blocks of 36 bytes");
      }
      weight.k = weight.k / kGgmlBlockBytes * kGgmlBlockValues;
    } else if (tensor.dtype == ElementType::kU8 &&
               __builtin_mul_overflow(weight.k, int64_t{2}, &weight.k)) {
      return wrong(file, tensor.name, describe(tensor),
                   "the number of columns must fit in 63 bits");
    }
  }
  if (weight.k % kSfVec == 0) return {};
  return wrong(file, tensor.name, fmt::format("{} (k = {})", describe(tensor), weight.k),
               "k must be a multiple of 16");
}

Status read_block_scales(const TensorFile& file, const std::string& name, Weight& weight) {
  const Expected<TensorView> scales = file.get(name);
  if (!scales) return scales.status();
  const std::vector<int64_t> shape = scale_shape(weight.scale_layout, weight.n, weight.k);
  if (scales->dtype != ElementType::kF8E4M3 || scales->shape != shape) {
    return wrong(file, name, describe(*scales),
                 fmt::format("{} scales of an NVFP4 weight with n = {}, k = {} must be F8_E4M3 {}",
                             dualgemm::name_of(weight.scale_layout), weight.n, weight.k,
                             format_shape(shape)));
  }
  weight.scales = scales->bytes();
  return {};
}

Status read_nvfp4(const TensorFile& file, const WeightNames& names, const WeightOptions& options,
                  Weight& weight) {
  if (!names.scales.empty()) {
    const Expected<ScaleLayout> layout = scale_layout_of(file, options);
    if (!layout) return layout.status();
    const Expected<NibbleOrder> order = nibble_order_of(file, options);
    if (!order) return order.status();
    weight.scale_layout = *layout;
    weight.nibble_order = *order;
    DUALGEMM_TRY(read_block_scales(file, names.scales, weight));
  }
  weight.dequant_global_scales = {1.0f};
  if (weight.convention != Convention::kGgml || file.contains(names.global_scale)) {
    Expected<std::vector<float>> scales =
        read_global_scales(file, names.global_scale, names.scalars_are_divisors);
    if (!scales) return scales.status();
    weight.dequant_global_scales = *std::move(scales);
  }
  if (!file.contains(names.input_scale)) return {};
  Expected<std::vector<float>> scales =
      read_global_scales(file, names.input_scale, names.scalars_are_divisors);
  if (!scales) return scales.status();
  weight.dequant_input_scales = *std::move(scales);
  return {};
}

Status add_scalars(TensorFile& out, const std::string& name, const std::vector<float>& multipliers,
                   bool as_divisors) {
  std::vector<float> stored = multipliers;
  for (float& value : stored) {
    if (as_divisors) value = 1.0f / value;
    if (!(value > 0.0f) || !std::isfinite(value)) {
      return Status::invalid(name, fmt::format("value {}", value),
                             "a global scale must be finite and > 0");
    }
  }
  // ModelOpt writes scalars, compressed-tensors vectors of one.
  std::vector<int64_t> shape;
  if (as_divisors || stored.size() != 1) shape.push_back(static_cast<int64_t>(stored.size()));
  return out.add_copy(name, ElementType::kF32, shape, stored.data(), stored.size() * sizeof(float));
}

ElementType plain_type(DataType type) {
  return type == DataType::kF32   ? ElementType::kF32
         : type == DataType::kF16 ? ElementType::kF16
                                  : ElementType::kBF16;
}

}  // namespace

Expected<Weight> load_weight(const TensorFile& file, const std::string& module,
                             const WeightOptions& options) {
  return guarded(file.origin(), [&]() -> Expected<Weight> {
    const Expected<GgmlBlocks> ggml = ggml_blocks_of(file, options);
    if (!ggml) return ggml.status();
    const Expected<Convention> convention =
        find_convention(file, module, *ggml != GgmlBlocks::kNone);
    if (!convention) return convention.status();
    if (options.convention && *options.convention != *convention) {
      return wrong(file, module, std::string("its tensors are ") + name_of(*convention),
                   std::string("was asked to be ") + name_of(*options.convention),
                   StatusCode::kInvalidArgument);
    }
    Weight weight;
    weight.convention = *convention;
    const WeightNames names = weight_names(*convention, module);
    const Expected<TensorView> data = file.get(names.data);
    if (!data) return data.status();
    DUALGEMM_TRY(read_data(file, *data, weight));
    if (*convention != Convention::kPlain) {
      DUALGEMM_TRY(read_nvfp4(file, names, options, weight));
    } else {
      weight.dequant_global_scales = {1.0f};
    }
    return weight;
  });
}

Status add_weight(TensorFile& out, const std::string& module, const Weight& weight) {
  return guarded(module, [&]() -> Status {
    const WeightNames names = weight_names(weight.convention, module);
    if (weight.convention == Convention::kPlain) {
      return out.add({names.data, plain_type(weight.type), {weight.n, weight.k}, weight.data});
    }
    if (weight.n < 1 || weight.k < kSfVec || weight.k % kSfVec != 0) {
      return Status::invalid(module, fmt::format("n = {}, k = {}", weight.n, weight.k),
                             "n must be >= 1 and k a positive multiple of 16");
    }
    const bool ggml = weight.convention == Convention::kGgml;
    const int64_t row_bytes = ggml ? weight.k / kGgmlBlockValues * kGgmlBlockBytes : weight.k / 2;
    DUALGEMM_TRY(record_layout(out, weight));
    DUALGEMM_TRY(out.add({names.data, ElementType::kU8, {weight.n, row_bytes}, weight.data}));
    if (!ggml) {
      DUALGEMM_TRY(out.add({names.scales, ElementType::kF8E4M3,
                            scale_shape(weight.scale_layout, weight.n, weight.k),
                            std::as_bytes(weight.scales)}));
    }
    DUALGEMM_TRY(add_scalars(out, names.global_scale, weight.dequant_global_scales,
                             names.scalars_are_divisors));
    if (weight.dequant_input_scales.empty()) return {};
    return add_scalars(out, names.input_scale, weight.dequant_input_scales,
                       names.scalars_are_divisors);
  });
}

}  // namespace dualgemm::checkpoint
