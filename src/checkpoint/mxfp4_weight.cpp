#include "checkpoint/mxfp4_weight.hpp"

#include <fmt/format.h>

#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/expert_slice.hpp"
#include "checkpoint/mxfp4.hpp"
#include "checkpoint/weight_tensors.hpp"

namespace dualgemm::checkpoint {
namespace {

bool is_gpt_oss(const TensorView& data) { return data.name.ends_with(kMxBlocks); }

// Experts, rows and columns; every product of extents that are not 0 fits, as the data exist.
Status read_shape(const TensorFile& file, const TensorView& data, Weight& weight) {
  const size_t rank = data.shape.size(), own = is_gpt_oss(data) ? 3 : 2;
  if (data.elements() == 0 || (rank != own && rank != own + 1)) {
    return wrong_tensor(file, data.name, describe(data),
                        own == 3 ? "must be blocks of 16 bytes, [N, K/32, 16] or [E, N, K/32, 16]"
                                 : "must be codes of a matrix, or of several");
  }
  weight.experts = experts_in(data);
  weight.n = data.shape[rank - own];
  if (own == 3) {
    if (data.dtype != ElementType::kU8 || data.shape[rank - 1] != kMxBlock / 2)
      return wrong_tensor(file, data.name, describe(data), "must be U8 blocks of 16 bytes");
    weight.k = data.shape[rank - 2] * kMxBlock;
  } else {
    weight.k = data.shape[rank - 1] * (data.dtype == ElementType::kU8 ? 2 : 1);
  }
  if (weight.k % kMxBlock == 0) return {};
  return wrong_tensor(file, data.name, describe(data),
                      fmt::format("k = {} must be a multiple of 32", weight.k));
}

}  // namespace

int64_t experts_in(const TensorView& data) noexcept {
  const size_t several = is_gpt_oss(data) ? 4 : 3;
  return data.shape.size() == several ? data.shape[0] : 0;
}

std::optional<WeightNames> find_mxfp4(const TensorFile& file, const std::string& module) {
  if (file.contains(module + kMxBlocks))
    return WeightNames{module + kMxBlocks, module + kMxScales, {}, {}, Convention::kModelOpt};
  std::optional<WeightNames> names = find_names(file, module);
  if (!names || names->scales.empty()) return std::nullopt;
  const TensorView& data = *file.find(names->data);
  const TensorView* scales = file.find(names->scales);
  const bool has_codes = data.dtype == ElementType::kU8 || data.dtype == ElementType::kF4;
  if (!has_codes || scales == nullptr || !has_mx_scales(data, *scales)) return std::nullopt;
  return names;
}

Expected<Weight> load_mxfp4(const TensorFile& file, const std::string& module,
                            const WeightNames& names, const WeightOptions& options,
                            const std::optional<int64_t>& expert) {
  const TensorView& data = *file.find(names.data);
  if (options.convention) {
    return Status::invalid(fmt::format("{}, tensor '{}'", file.origin(), data.name),
                           "its tensors are MXFP4",
                           std::string("was asked to be ") + name_of(*options.convention));
  }
  DUALGEMM_TRY(check_alone(file, module, names));
  Weight weight;
  weight.convention = names.convention;
  weight.from_mxfp4 = true;
  weight.type = DataType::kE2M1;
  weight.name = data.name;
  weight.names = names;
  weight.data = data.data;
  weight.dequant_global_scales = {1.0f};
  DUALGEMM_TRY(read_shape(file, data, weight));
  const Expected<NibbleOrder> order = nibble_order_of(file, options);
  if (!order) return order.status();
  weight.nibble_order = *order;

  const Expected<TensorView> scales = required_tensor(file, names.scales, options);
  if (!scales) return scales.status();
  std::vector<int64_t> shape{weight.n, weight.k / kMxBlock};
  if (weight.experts > 0) shape.insert(shape.begin(), weight.experts);
  const bool typed = scales->dtype == ElementType::kU8 || scales->dtype == ElementType::kF8E8M0;
  if (!typed || scales->shape != shape) {
    return wrong_tensor(file, scales->name, describe(*scales),
                        fmt::format("scales of MXFP4 with n = {}, k = {} must be U8 or F8_E8M0 {}",
                                    weight.n, weight.k, format_shape(shape)));
  }
  if (!names.global_scale.empty() && file.contains(names.global_scale)) {
    return wrong_tensor(file, names.global_scale, "beside " + names.scales,
                        "MXFP4 has no global scale");
  }
  weight.scales = scales->bytes();
  DUALGEMM_TRY(read_input_scales(file, expert, options, weight));
  return expert && weight.experts > 0 ? slice_matrix(weight, *expert)
                                      : Expected<Weight>(std::move(weight));
}

Status convert_mxfp4(Weight& weight, bool allow_nan, const std::string& tensor) {
  if (!weight.from_mxfp4) return {};
  Expected<MxScales> converted =
      scales_of_mxfp4({reinterpret_cast<const uint8_t*>(weight.data.data()), weight.data.size()},
                      weight.scales, weight.n, weight.k, allow_nan, tensor);
  if (!converted) return converted.status();
  auto owner = std::make_shared<const std::vector<uint8_t>>(std::move(converted->scales));
  weight.scales = *owner;
  weight.dequant_global_scales = {converted->global_scale};
  weight.owner = std::move(owner);
  return {};
}

std::string place_of_scales(const TensorFile& file, const Weight& weight,
                            const std::optional<int64_t>& expert) {
  return fmt::format(
      "{}, tensor '{}'{}", file.origin(), weight.names.scales,
      expert && experts_in(*file.find(weight.name)) > 0 ? fmt::format(", expert {}", *expert) : "");
}

}  // namespace dualgemm::checkpoint
