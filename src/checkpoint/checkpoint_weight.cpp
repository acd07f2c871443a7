#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/expert_slice.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/mxfp4_weight.hpp"
#include "dualgemm/formats.hpp"

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

Expected<TensorView> required(const TensorFile& file, const std::string& name,
                              const WeightOptions& options) {
  const TensorView* tensor = file.find(name);
  if (tensor != nullptr) return *tensor;
  if (options.near_names) return file.get(name);
  return Status::error(
      StatusCode::kNotFound, name,
      fmt::format("not among the {} tensors of {}", file.tensors().size(), file.origin()),
      "must be there");
}

// The scales of one tensor that are asked for: all of them, or those of one expert.
struct Scalars {
  const TensorView& tensor;
  int64_t first, count;

  float stored(int64_t i) const { return load_element<float>(tensor.data, i); }
};

// The values that metadata keep for the stored ones: those of which the stored are reciprocals.
// Entries that do not fit what is stored (a tool changed the tensor and kept the metadata) do not
// count.
std::vector<float> kept_reciprocals(const TensorFile& file, const std::string& key,
                                    const Scalars& scalars) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return {};
  const int64_t all = scalars.tensor.elements(), end_of_wanted = scalars.first + scalars.count;
  std::vector<float> kept;
  std::string_view text = found->second;
  int64_t index = 0;
  for (; !text.empty() && index < all; ++index) {
    const size_t comma = std::min(text.find(','), text.size());
    uint32_t bits = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + comma, bits, 16);
    const auto value = std::bit_cast<float>(bits);
    if (error != std::errc() || end != text.data() + comma || !(value > 0.0f) ||
        1.0f / value != scalars.stored(index)) {
      return {};
    }
    if (index >= scalars.first && index < end_of_wanted) kept.push_back(value);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return text.empty() && index == all ? kept : std::vector<float>();
}

struct GlobalScales {
  std::vector<float> multipliers, divisors;  // divisors: empty unless they are known
};

Status check_global_scale(const TensorFile& file, const std::string& name, float value,
                          bool is_divisor, bool allow_nan) {
  const bool is_finite = std::isfinite(value) && (!is_divisor || std::isfinite(1.0f / value));
  const bool is_positive = std::isnan(value) ? allow_nan : value > 0.0f;
  if (is_positive && (is_finite || allow_nan)) return {};
  const std::string rule = is_divisor ? "a global scale, and its reciprocal, must be finite and > 0"
                                      : "a global scale must be finite and > 0";
  const bool would_do = std::isnan(value) || (value > 0.0f && !is_finite);
  return wrong(file, name, fmt::format("value {}", value),
               would_do ? rule + "; " + kAllowNanTakesIt : rule);
}

// Positive FP32 values. `experts` = 0: one or two. `expert`: only those of this one.
Expected<GlobalScales> read_global_scales(const TensorFile& file, const std::string& name,
                                          bool are_divisors, int64_t experts,
                                          const std::optional<int64_t>& expert,
                                          const WeightOptions& options) {
  const Expected<TensorView> tensor = required(file, name, options);
  if (!tensor) return tensor.status();
  const int64_t count = tensor->elements();
  const bool fits =
      experts == 0 ? count == 1 || (count == 2 && tensor->shape.size() == 1)
                   : count == 1 || count == experts || (count % 2 == 0 && count / 2 == experts);
  if (tensor->dtype != ElementType::kF32 || !fits) {
    return wrong(file, name, describe(*tensor),
                 experts == 0
                     ? "a global scale must be F32 [], [1] or [2]"
                     : fmt::format("global scales must be F32 and 1, {0} or 2 * {0}", experts));
  }
  Scalars scalars{*tensor, 0, count};
  if (expert && experts > 0 && count > 1) {
    scalars.count = count / experts;
    scalars.first = *expert * scalars.count;
  }
  std::vector<float> stored;
  for (int64_t i = scalars.first; i < scalars.first + scalars.count; ++i) {
    const float value = scalars.stored(i);
    DUALGEMM_TRY(check_global_scale(file, name, value, are_divisors, options.allow_nan));
    stored.push_back(value);
  }
  GlobalScales scales;
  if (!are_divisors) {
    scales.divisors = kept_reciprocals(file, kDivisorKey + name, scalars);
    scales.multipliers = std::move(stored);
    return scales;
  }
  scales.multipliers = kept_reciprocals(file, kMultiplierKey + name, scalars);
  if (scales.multipliers.empty()) {
    for (const float divisor : stored) scales.multipliers.push_back(1.0f / divisor);
  }
  scales.divisors = std::move(stored);
  return scales;
}

Expected<Convention> find_convention(const TensorFile& file, const std::string& module,
                                     const std::optional<WeightNames>& names, bool ggml,
                                     const WeightOptions& options) {
  if (!names) return required(file, module + ".weight", options).status();
  const TensorView& data = *file.find(names->data);
  const ConventionRow& row = row_of(names->convention);
  if (row.stands_alone) {
    const std::string plain = weight_names(Convention::kPlain, module).data;
    if (file.contains(plain))
      return wrong(file, data.name, "present beside " + plain, "only one of them must exist");
  }
  if (has_own_data(row)) return row.id;
  switch (data.dtype) {
    case ElementType::kF16:
    case ElementType::kBF16:
    case ElementType::kF32:
      return Convention::kPlain;
    case ElementType::kU8:
    case ElementType::kF4: {
      const Expected<TensorView> scales = required(file, names->scales, options);
      if (scales) return row.id;
      if (ggml && data.dtype == ElementType::kU8) return Convention::kGgml;
      return scales.status();
    }
    default:
      return wrong(file, data.name, describe(data),
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
      return wrong(file, tensor.name, describe(tensor),
                   "rows of ggml NVFP4 must be whole ggml blocks of 36 bytes");
    }
    weight.k = extent / kGgmlBlockBytes * kGgmlBlockValues;
  } else if (stored == Stored::kCodes && tensor.dtype == ElementType::kU8 &&
             __builtin_mul_overflow(extent, int64_t{2}, &weight.k)) {
    return wrong(file, tensor.name, describe(tensor), "the number of columns must fit in 63 bits");
  }
  if (weight.k % kSfVec == 0) return {};
  return wrong(file, tensor.name, fmt::format("{} (k = {})", describe(tensor), weight.k),
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
    return wrong(file, tensor.name, describe(tensor),
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
    return wrong(file, tensor.name, describe(tensor), "NVFP4 codes must be U8 or F4",
                 StatusCode::kUnsupported);
  }
  const TensorView* scales = file.find(weight.names.scales);
  weight.k_outer = scales != nullptr && is_k_outer(tensor, *scales);
  if (weight.k_outer) weight.n = tensor.shape[2];
  return set_k(file, tensor, tensor.shape[weight.k_outer ? 1 : rank - 1], weight);
}

Status read_block_scales(const TensorFile& file, std::optional<ScaleLayout> wanted,
                         const WeightOptions& options, Weight& weight) {
  const Expected<TensorView> scales = required(file, weight.names.scales, options);
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
    return wrong(file, scales->name, describe(*scales),
                 fmt::format("{} scales of an NVFP4 weight with n = {}, k = {} must be F8_E4M3 or "
                             "U8 {}",
                             dualgemm::name_of(wanted.value_or(ScaleLayout::kLinear)), weight.n,
                             weight.k, format_shape(expected)));
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
  if (!file.contains(names.input_scale)) return {};
  Expected<GlobalScales> scales =
      read_global_scales(file, names.input_scale, are_divisors, weight.experts, expert, options);
  if (!scales) return scales.status();
  weight.dequant_input_scales = std::move(scales->multipliers);
  weight.input_divisors = std::move(scales->divisors);
  return {};
}

// Stores `divisors`, or where they are not known the multipliers' reciprocals, or the multipliers.
// What division would not give back is kept in the metadata.
Status add_scalars(TensorFile& out, const std::string& name, const std::vector<float>& multipliers,
                   const std::vector<float>& divisors, const ConventionRow& row) {
  const bool as_divisors = row.scalars == ScalarRule::kDivisor;
  // A caller may have changed the multipliers and left the divisors.
  const bool belong =
      std::equal(multipliers.begin(), multipliers.end(), divisors.begin(), divisors.end(),
                 [](float m, float d) { return 1.0f / d == m || 1.0f / m == d; });
  std::vector<float> stored = multipliers, other = belong ? divisors : std::vector<float>();
  if (as_divisors) {
    if (!belong) {
      for (float& value : stored) value = 1.0f / value;
    } else {
      stored = divisors;
    }
    other = multipliers;
  }
  for (const float value : stored) {
    if (value > 0.0f && std::isfinite(value)) continue;
    return Status::invalid(name, fmt::format("value {}", value),
                           "a global scale must be finite and > 0");
  }
  bool given_back = true;
  std::string bits;
  for (size_t i = 0; i < other.size(); ++i) {
    given_back = given_back && 1.0f / stored[i] == other[i];
    bits += fmt::format("{}{:08x}", i == 0 ? "" : ",", std::bit_cast<uint32_t>(other[i]));
  }
  out.metadata().erase(kMultiplierKey + name);
  out.metadata().erase(kDivisorKey + name);
  if (!given_back) out.metadata()[(as_divisors ? kMultiplierKey : kDivisorKey) + name] = bits;
  std::vector<int64_t> shape;
  if (row.scalar_is_vector || stored.size() != 1)
    shape.push_back(static_cast<int64_t>(stored.size()));
  return out.add_copy(name, ElementType::kF32, shape, stored.data(), stored.size() * sizeof(float));
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
    return load_mxfp4(file, *mxfp4, options, expert);
  const Expected<GgmlBlocks> ggml = ggml_blocks_of(file, options);
  if (!ggml) return ggml.status();
  const std::optional<WeightNames> names = find_names(file, module);
  const Expected<Convention> convention =
      find_convention(file, module, names, *ggml != GgmlBlocks::kNone, options);
  if (!convention) return convention.status();
  if (options.convention && *options.convention != *convention) {
    return wrong(file, module, std::string("its tensors are ") + name_of(*convention),
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
  return guarded(file.origin(), [&] { return load_weight_part(file, module, options, {}); });
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
    DUALGEMM_TRY(add_scalars(out, names.global_scale, weight.dequant_global_scales,
                             weight.global_divisors, row));
    if (weight.dequant_input_scales.empty()) return {};
    return add_scalars(out, names.input_scale, weight.dequant_input_scales, weight.input_divisors,
                       row);
  });
}

}  // namespace dualgemm::checkpoint
