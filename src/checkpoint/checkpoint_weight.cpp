#include <fmt/format.h>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/expert_slice.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/mxfp4_weight.hpp"
#include "checkpoint/weight_tensors.hpp"
#include "dualgemm/formats.hpp"

namespace dualgemm::checkpoint {
namespace {

Expected<Convention> find_convention(const TensorFile& file, const std::string& module,
                                     const std::optional<WeightNames>& names, bool ggml,
                                     const WeightOptions& options) {
  if (!names) return required_tensor(file, module + ".weight", options).status();
  DUALGEMM_TRY(check_alone(file, module, *names));
  const TensorView& data = *file.find(names->data);
  const ConventionRow& row = row_of(names->convention);
  if (has_own_data(row)) return row.id;
  switch (data.dtype) {
    case ElementType::kF16:
    case ElementType::kBF16:
    case ElementType::kF32:
      return Convention::kPlain;
    case ElementType::kU8:
    case ElementType::kF4: {
      const Expected<TensorView> scales = required_tensor(file, names->scales, options);
      if (scales) return row.id;
      if (ggml && data.dtype == ElementType::kU8) return Convention::kGgml;
      return scales.status();
    }
    default:
      return wrong_tensor(file, data.name, describe(data),
                          "a weight must be F32, F16, BF16, or NVFP4 codes (U8 or F4)",
                          StatusCode::kUnsupported);
  }
}

// The columns that the last (k_outer: the middle) extent of `tensor` stands for.
Status set_k(const TensorFile& file, const TensorView& tensor, int64_t extent, Weight& weight) {
  weight.k = extent;
  const Stored stored = row_of(weight.convention).stored;
  if (stored == Stored::kGgmlBlocks) {
    if (extent % kGgmlBlockBytes != 0) {
      return wrong_tensor(file, tensor.name, describe(tensor),
                          "rows of ggml NVFP4 must be whole ggml blocks of 36 bytes");
    }
    weight.k = extent / kGgmlBlockBytes * kGgmlBlockValues;
  } else if (stored == Stored::kCodes && tensor.dtype == ElementType::kU8 &&
             __builtin_mul_overflow(extent, int64_t{2}, &weight.k)) {
    return wrong_tensor(file, tensor.name, describe(tensor),
                        "the number of columns must fit in 63 bits");
  }
  if (weight.k % kSfVec == 0) return {};
  return wrong_tensor(file, tensor.name, fmt::format("{} (k = {})", describe(tensor), weight.k),
                      "k must be a multiple of 16");
}

// [E, K/2, N] with scales [E, K/16, N], as ModelOpt writes experts that their model holds as
// [E, K, N]. Only U8 codes can be so: two codes of one byte are neighbours along K.
bool is_k_outer(const TensorView& data, const TensorView& scales) {
  return data.shape.size() == 3 && scales.shape.size() == 3 && data.dtype == ElementType::kU8 &&
         scales.shape[2] == data.shape[2] && data.shape[1] % 8 == 0 &&
         scales.shape[1] == data.shape[1] / 8;
}

// Sets data, type, experts, n and k from the tensor's dtype and shape.
Status read_data(const TensorFile& file, const TensorView& tensor, Weight& weight) {
  weight.name = tensor.name;
  weight.data = tensor.data;
  const size_t rank = tensor.shape.size();
  if ((rank != 2 && rank != 3) || tensor.elements() == 0) {
    return wrong_tensor(file, tensor.name, describe(tensor),
                        "a weight must be a matrix with elements, or several");
  }
  weight.experts = rank == 3 ? tensor.shape[0] : 0;
  weight.n = tensor.shape[rank - 2];
  weight.type = DataType::kE2M1;
  if (!is_nvfp4(row_of(weight.convention))) {
    weight.type = tensor.dtype == ElementType::kF32   ? DataType::kF32
                  : tensor.dtype == ElementType::kF16 ? DataType::kF16
                                                      : DataType::kBF16;
  } else if (tensor.dtype != ElementType::kU8 && tensor.dtype != ElementType::kF4) {
    return wrong_tensor(file, tensor.name, describe(tensor), "NVFP4 codes must be U8 or F4",
                        StatusCode::kUnsupported);
  }
  const TensorView* scales = file.find(weight.names.scales);
  weight.k_outer = scales != nullptr && is_k_outer(tensor, *scales);
  if (weight.k_outer) weight.n = tensor.shape[2];
  return set_k(file, tensor, tensor.shape[weight.k_outer ? 1 : rank - 1], weight);
}

Status read_block_scales(const TensorFile& file, std::optional<ScaleLayout> wanted,
                         const WeightOptions& options, Weight& weight) {
  const Expected<TensorView> scales = required_tensor(file, weight.names.scales, options);
  if (!scales) return scales.status();
  const bool typed = scales->dtype == ElementType::kF8E4M3 || scales->dtype == ElementType::kU8;
  std::span<const int64_t> shape = scales->shape;
  std::optional<ScaleLayout> layout;
  if (weight.k_outer) {
    const bool linear =
        typed && wanted != ScaleLayout::kSwizzled128x4 && shape[0] == weight.experts;
    if (linear) layout = ScaleLayout::kLinear;
  } else if (typed && weight.experts == 0) {
    layout = layout_of_shape(shape, weight.n, weight.k, wanted);
  } else if (typed && !shape.empty() && shape[0] == weight.experts) {
    layout = layout_of_shape(shape.subspan(1), weight.n, weight.k, wanted);
  }
  if (!layout) {
    std::vector<int64_t> expected =
        scale_shape(wanted.value_or(ScaleLayout::kLinear), weight.n, weight.k);
    if (weight.k_outer) std::swap(expected[0], expected[1]);
    if (weight.experts > 0) expected.insert(expected.begin(), weight.experts);
    return wrong_tensor(
        file, scales->name, describe(*scales),
        fmt::format("{} scales of an NVFP4 weight with n = {}, k = {} must be F8_E4M3 or "
                    "U8 {}",
                    dualgemm::name_of(wanted.value_or(ScaleLayout::kLinear)), weight.n, weight.k,
                    format_shape(expected)));
  }
  weight.scale_layout = *layout;
  weight.scales = scales->bytes();
  return {};
}

Status read_nvfp4(const TensorFile& file, const std::string& module, const WeightOptions& options,
                  const std::optional<int64_t>& expert, Weight& weight) {
  const WeightNames& names = weight.names;
  const ConventionRow& row = row_of(weight.convention);
  if (row.stored == Stored::kCodes) {
    const Expected<std::optional<ScaleLayout>> layout = scale_layout_of(file, module, options);
    if (!layout) return layout.status();
    const Expected<NibbleOrder> order = nibble_order_of(file, options);
    if (!order) return order.status();
    weight.nibble_order = *order;
    DUALGEMM_TRY(read_block_scales(file, *layout, options, weight));
  }
  weight.dequant_global_scales = {1.0f};
  const bool are_divisors = row.scalars == ScalarRule::kDivisor;
  if (row.needs_global_scale || file.contains(names.global_scale)) {
    Expected<GlobalScales> scales =
        read_global_scales(file, names.global_scale, are_divisors, weight.experts, expert, options);
    if (!scales) return scales.status();
    weight.dequant_global_scales = std::move(scales->multipliers);
    weight.global_divisors = std::move(scales->divisors);
  }
  return read_input_scales(file, expert, options, weight);
}

ElementType plain_type(DataType type) {
  return type == DataType::kF32   ? ElementType::kF32
         : type == DataType::kF16 ? ElementType::kF16
                                  : ElementType::kBF16;
}

}  // namespace

Expected<Weight> load_weight_part(const TensorFile& file, const std::string& module,
                                  const WeightOptions& options,
                                  const std::optional<int64_t>& expert) {
  if (const std::optional<WeightNames> mxfp4 = find_mxfp4(file, module))
    return load_mxfp4(file, module, *mxfp4, options, expert);
  const Expected<GgmlBlocks> ggml = ggml_blocks_of(file, options);
  if (!ggml) return ggml.status();
  const std::optional<WeightNames> names = find_names(file, module);
  const Expected<Convention> convention =
      find_convention(file, module, names, *ggml != GgmlBlocks::kNone, options);
  if (!convention) return convention.status();
  if (options.convention && *options.convention != *convention) {
    return wrong_tensor(file, module, std::string("its tensors are ") + name_of(*convention),
                        std::string("was asked to be ") + name_of(*options.convention),
                        StatusCode::kInvalidArgument);
  }
  Weight weight;
  weight.convention = *convention;
  weight.names = *names;
  const TensorView& data = *file.find(names->data);
  DUALGEMM_TRY(read_data(file, data, weight));
  const bool is_slice = expert && weight.experts > 0;
  if (is_slice) DUALGEMM_TRY(check_expert_of(weight, *expert));
  const bool nvfp4 = is_nvfp4(row_of(*convention));
  if (nvfp4) {
    DUALGEMM_TRY(read_nvfp4(file, module, options, expert, weight));
  } else {
    weight.dequant_global_scales = {1.0f};
  }
  return is_slice && nvfp4 ? slice_matrix(weight, *expert) : Expected<Weight>(std::move(weight));
}

Expected<Weight> load_weight(const TensorFile& file, const std::string& module,
                             const WeightOptions& options) {
  return guarded(file.origin(), [&]() -> Expected<Weight> {
    Expected<Weight> weight = load_weight_part(file, module, options, {});
    if (!weight || !weight->from_mxfp4) return weight;
    if (weight->experts > 0) {
      weight->scales = {};
      return weight;
    }
    DUALGEMM_TRY(convert_mxfp4(*weight, options.allow_nan, place_of_scales(file, *weight, {})));
    return weight;
  });
}

Status add_weight(TensorFile& out, const std::string& module, const Weight& weight) {
  return guarded(module, [&]() -> Status {
    const ConventionRow& row = row_of(weight.convention);
    const WeightNames names = weight_names(weight.convention, module);
    if (weight.experts != 0 || !row.can_write) {
      return Status::unsupported(
          module,
          weight.experts != 0 ? fmt::format("{} experts", weight.experts) : std::string(row.name),
          "one matrix in another convention can be written");
    }
    if (row.stored == Stored::kValues) {
      return out.add({names.data, plain_type(weight.type), {weight.n, weight.k}, weight.data});
    }
    if (weight.n < 1 || weight.k < kSfVec || weight.k % kSfVec != 0) {
      return Status::invalid(module, fmt::format("n = {}, k = {}", weight.n, weight.k),
                             "n must be >= 1 and k a positive multiple of 16");
    }
    const bool ggml = row.stored == Stored::kGgmlBlocks;
    const int64_t row_bytes = ggml ? weight.k / kGgmlBlockValues * kGgmlBlockBytes : weight.k / 2;
    DUALGEMM_TRY(record_layout(out, weight));
    DUALGEMM_TRY(out.add({names.data, ElementType::kU8, {weight.n, row_bytes}, weight.data}));
    if (!ggml) {
      DUALGEMM_TRY(out.add({names.scales, ElementType::kF8E4M3,
                            scale_shape(weight.scale_layout, weight.n, weight.k),
                            std::as_bytes(weight.scales)}));
    }
    DUALGEMM_TRY(add_global_scales(out, names.global_scale, weight.dequant_global_scales,
                                   weight.global_divisors, row));
    if (weight.dequant_input_scales.empty()) return {};
    return add_global_scales(out, names.input_scale, weight.dequant_input_scales,
                             weight.input_divisors, row);
  });
}

}  // namespace dualgemm::checkpoint
