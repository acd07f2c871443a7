#include "checkpoint/weight_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "checkpoint/checkpoint_tensors.hpp"

namespace dualgemm::checkpoint {
namespace {

// The scales of one tensor that are asked for: all of them, or those of one expert.
struct Scalars {
  TensorView tensor;
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

Status check_global_scale(const TensorFile& file, const std::string& name, float value,
                          bool is_divisor, bool allow_nan) {
  const bool is_finite = std::isfinite(value) && (!is_divisor || std::isfinite(1.0f / value));
  const bool is_positive = std::isnan(value) ? allow_nan : value > 0.0f;
  if (is_positive && (is_finite || allow_nan)) return {};
  const std::string rule = is_divisor ? "a global scale, and its reciprocal, must be finite and > 0"
                                      : "a global scale must be finite and > 0";
  const bool would_do = std::isnan(value) || (value > 0.0f && !is_finite);
  return wrong_tensor(file, name, fmt::format("value {}", value),
                      would_do ? rule + "; " + kAllowNanTakesIt : rule);
}

Expected<Scalars> find_scalars(const TensorFile& file, const std::string& name, int64_t experts,
                               const std::optional<int64_t>& expert, const WeightOptions& options) {
  const Expected<TensorView> tensor = required_tensor(file, name, options);
  if (!tensor) return tensor.status();
  const int64_t count = tensor->elements();
  const bool fits =
      experts == 0 ? count == 1 || (count == 2 && tensor->shape.size() == 1)
                   : count == 1 || count == experts || (count % 2 == 0 && count / 2 == experts);
  if (tensor->dtype != ElementType::kF32 || !fits) {
    return wrong_tensor(
        file, name, describe(*tensor),
        experts == 0 ? "a global scale must be F32 [], [1] or [2]"
                     : fmt::format("global scales must be F32 and 1, {0} or 2 * {0}", experts));
  }
  Scalars scalars{*tensor, 0, count};
  if (expert && experts > 0 && count > 1) {
    scalars.count = count / experts;
    scalars.first = *expert * scalars.count;
  }
  return scalars;
}

}  // namespace

Status wrong_tensor(const TensorFile& file, const std::string& tensor, std::string observed,
                    std::string rule, StatusCode code) {
  return Status::error(code, fmt::format("{}, tensor '{}'", file.origin(), tensor),
                       std::move(observed), std::move(rule));
}

std::string describe(const TensorView& tensor) {
  return fmt::format("{} {}", name_of(tensor.dtype), format_shape(tensor.shape));
}

Expected<TensorView> required_tensor(const TensorFile& file, const std::string& name,
                                     const WeightOptions& options) {
  const TensorView* tensor = file.find(name);
  if (tensor != nullptr) return *tensor;
  if (options.near_names) return file.get(name);
  return Status::error(
      StatusCode::kNotFound, name,
      fmt::format("not among the {} tensors of {}", file.tensors().size(), file.origin()),
      "must be there");
}

Status check_alone(const TensorFile& file, const std::string& module, const WeightNames& names) {
  if (!row_of(names.convention).stands_alone) return {};
  const std::string plain = weight_names(Convention::kPlain, module).data;
  if (!file.contains(plain)) return {};
  return wrong_tensor(file, names.data, "present beside " + plain, "only one of them must exist");
}

Expected<GlobalScales> read_global_scales(const TensorFile& file, const std::string& name,
                                          bool are_divisors, int64_t experts,
                                          const std::optional<int64_t>& expert,
                                          const WeightOptions& options) {
  const Expected<Scalars> scalars = find_scalars(file, name, experts, expert, options);
  if (!scalars) return scalars.status();
  std::vector<float> stored;
  for (int64_t i = scalars->first; i < scalars->first + scalars->count; ++i) {
    const float value = scalars->stored(i);
    DUALGEMM_TRY(check_global_scale(file, name, value, are_divisors, options.allow_nan));
    stored.push_back(value);
  }
  GlobalScales scales;
  if (!are_divisors) {
    scales.divisors = kept_reciprocals(file, kDivisorKey + name, *scalars);
    scales.multipliers = std::move(stored);
    return scales;
  }
  scales.multipliers = kept_reciprocals(file, kMultiplierKey + name, *scalars);
  if (scales.multipliers.empty()) {
    for (const float divisor : stored) scales.multipliers.push_back(1.0f / divisor);
  }
  scales.divisors = std::move(stored);
  return scales;
}

Status read_input_scales(const TensorFile& file, const std::optional<int64_t>& expert,
                         const WeightOptions& options, Weight& weight) {
  const std::string& name = weight.names.input_scale;
  if (name.empty() || !file.contains(name)) return {};
  if (options.skip_unwritten && !options.allow_nan) {
    const Expected<Scalars> scalars = find_scalars(file, name, weight.experts, expert, options);
    if (!scalars) return scalars.status();
    for (int64_t i = scalars->first; i < scalars->first + scalars->count; ++i) {
      const float value = scalars->stored(i);
      if (value == 0.0f || std::isnan(value)) weight.unwritten_input_scale = true;
    }
    if (weight.unwritten_input_scale) return {};
  }
  const bool are_divisors = row_of(weight.convention).scalars == ScalarRule::kDivisor;
  Expected<GlobalScales> scales =
      read_global_scales(file, name, are_divisors, weight.experts, expert, options);
  if (!scales) return scales.status();
  weight.dequant_input_scales = std::move(scales->multipliers);
  weight.input_divisors = std::move(scales->divisors);
  return {};
}

Status add_global_scales(TensorFile& out, const std::string& name,
                         const std::vector<float>& multipliers, const std::vector<float>& divisors,
                         const ConventionRow& row) {
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

}  // namespace dualgemm::checkpoint
