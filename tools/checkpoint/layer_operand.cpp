#include "tools/checkpoint/layer_operand.hpp"

#include <fmt/format.h>

#include "dualgemm/formats.hpp"

namespace dualgemm::checkpoint {
namespace {

size_t alignment_of(DataType type) {
  return type == DataType::kF32 ? 4 : type == DataType::kE2M1 ? 1 : 2;
}

void take_memory(std::vector<std::byte> bytes, TensorFile& memory,
                 std::span<const std::byte>& view) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  view = *owner;
  memory.keep_alive(std::move(owner));
}

}  // namespace

Status unpack_ggml(Weight& weight, TensorFile& memory) {
  std::vector<std::byte> codes(static_cast<size_t>(weight.n * (weight.k / 2)));
  std::vector<std::byte> scales(static_cast<size_t>(weight.n * (weight.k / kSfVec)));
  DUALGEMM_TRY(from_ggml_nvfp4(reinterpret_cast<const uint8_t*>(weight.data.data()), weight.n,
                               weight.k, reinterpret_cast<uint8_t*>(codes.data()),
                               reinterpret_cast<uint8_t*>(scales.data())));
  take_memory(std::move(codes), memory, weight.data);
  std::span<const std::byte> scale_bytes;
  take_memory(std::move(scales), memory, scale_bytes);
  weight.scales = {reinterpret_cast<const uint8_t*>(scale_bytes.data()), scale_bytes.size()};
  return {};
}

LayerOperand operand_of(const Weight& weight, float dequant_global_scale) {
  return {weight.data, weight.scales, dequant_global_scale, weight.name};
}

Expected<Weight> load_matrix(const TensorFile& file, const std::string& module,
                             const LayerOptions& options, TensorFile& memory) {
  Expected<Weight> weight = load_weight(file, module, options.weight);
  if (!weight || weight->experts == 0) return weight;
  if (weight->convention == Convention::kPlain) {
    return Status::unsupported(
        weight->name,
        fmt::format("{} experts in {}", weight->experts, dualgemm::name_of(weight->type)),
        "only NVFP4 is read from tensors of three extents: quantise with "
        "ModelOpt, or split them into experts.E.gate_proj and up_proj");
  }
  if (!options.expert) {
    return Status::invalid(fmt::format("layer '{}'", module),
                           fmt::format("{} experts in one tensor", weight->experts),
                           "take one of them (--expert 0) or all (--experts)");
  }
  Expected<Weight> one = slice_expert(*weight, *options.expert);
  if (one && one->owner) memory.keep_alive(one->owner);
  return one;
}

Expected<std::vector<float>> load_bias(const TensorFile& file, const std::string& name,
                                       int64_t rows, int64_t experts,
                                       const std::optional<int64_t>& expert) {
  const TensorView* tensor = name.empty() ? nullptr : file.find(name);
  if (tensor == nullptr) return std::vector<float>();
  std::vector<int64_t> shape{rows};
  if (experts > 0) shape.insert(shape.begin(), experts);
  if (tensor->shape != shape) {
    return Status::error(StatusCode::kCorruptFile,
                         fmt::format("{}, tensor '{}'", file.origin(), tensor->name),
                         format_shape(tensor->shape), "must be " + format_shape(shape));
  }
  Expected<std::vector<float>> values = decode_to_f32(*tensor);
  if (!values || experts == 0) return values;
  const auto first = values->begin() + static_cast<std::ptrdiff_t>(*expert * rows);
  return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(rows));
}

Status make_runnable(LayerOperand& operand, DataType type, NibbleOrder order, TensorFile& memory) {
  const auto address = reinterpret_cast<uintptr_t>(operand.data.data());
  if (type == DataType::kE2M1 && order == NibbleOrder::kHighEven) {
    std::vector<std::byte> swapped(operand.data.size());
    DUALGEMM_TRY(swap_nibbles(operand.codes(), reinterpret_cast<uint8_t*>(swapped.data()),
                              static_cast<int64_t>(swapped.size())));
    take_memory(std::move(swapped), memory, operand.data);
  } else if (address % alignment_of(type) != 0) {
    take_memory({operand.data.begin(), operand.data.end()}, memory, operand.data);
  }
  return {};
}

}  // namespace dualgemm::checkpoint
