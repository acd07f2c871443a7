#include "checkpoint/layer_operand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/corrupt.hpp"
#include "checkpoint/expert_slice.hpp"
#include "checkpoint/mxfp4_weight.hpp"
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

bool is_nan(uint8_t scale) { return (scale & 0x7F) == 0x7F; }

// Looks at padding, too: one pass over the bytes, which nearly every weight passes.
bool may_have_nan(std::span<const uint8_t> scales) {
  constexpr size_t kRun = 1 << 14;
  for (size_t begin = 0; begin < scales.size(); begin += kRun) {
    unsigned found = 0;
    for (const uint8_t scale : scales.subspan(begin, std::min(kRun, scales.size() - begin)))
      found |= is_nan(scale) ? 1u : 0u;
    if (found != 0) return true;
  }
  return false;
}

// kCorruptFile where a block scale is NaN: every output that it touches would be. ggml's scales
// have no NaN: unpacking judges them, and convert_mxfp4() the exponents of MXFP4. `tensor`: that of
// the scales, for the message.
Status check_block_scales(const Weight& weight, const std::string& tensor) {
  if (weight.type != DataType::kE2M1 || weight.from_mxfp4 || !may_have_nan(weight.scales))
    return {};
  const ScaleMap at(weight.scale_layout, weight.n, weight.k / kSfVec);
  int64_t count = 0, first_row = 0, first_col = 0;
  for (int64_t row = 0; row < at.rows(); ++row) {
    for (int64_t col = 0; col < at.cols(); ++col) {
      if (!is_nan(weight.scales[static_cast<size_t>(at(row, col))]) || ++count > 1) continue;
      first_row = row;
      first_col = col;
    }
  }
  if (count == 0) return {};
  return corrupt(tensor,
                 fmt::format("NaN at row {}, block {}; {} in all", first_row, first_col, count),
                 fmt::format("a block scale must be a number; {}", kAllowNanTakesIt));
}

// The matrix of a rotation, where the file has it: Sylvester's, without its factor.
Status check_matrix_of_rotation(const TensorFile& file, const std::string& module,
                                const InputRotation& rotation) {
  const TensorView* tensor = file.find(module + "." + rotation.name + "_input.weight");
  if (tensor == nullptr) return {};
  const std::string where = fmt::format("{}, tensor '{}'", file.origin(), tensor->name);
  if (tensor->shape != std::vector<int64_t>{rotation.size, rotation.size}) {
    return corrupt(where, format_shape(tensor->shape),
                   fmt::format("must be [{0}, {0}], as config.json says", rotation.size));
  }
  const Expected<std::vector<float>> values = decode_to_f32(*tensor);
  if (!values) return values.status();
  for (size_t i = 0; i < values->size(); ++i) {
    const size_t row = i / static_cast<size_t>(rotation.size);
    const size_t col = i % static_cast<size_t>(rotation.size);
    const float want = std::popcount(row & col) % 2 == 0 ? 1.0f : -1.0f;
    if ((*values)[i] == want) continue;
    return Status::unsupported(where, fmt::format("{} at [{}, {}]", (*values)[i], row, col),
                               fmt::format("only Sylvester's matrix is computed, with {}", want));
  }
  return {};
}

}  // namespace

Status make_nvfp4(const TensorFile& file, const LayerOptions& options, const std::string& part,
                  Weight& weight, TensorFile& memory) {
  if (!weight.from_mxfp4) return {};
  DUALGEMM_TRY(convert_mxfp4(weight, options.weight.allow_nan,
                             place_of_scales(file, weight, options.expert) + part));
  memory.keep_alive(weight.owner);
  return {};
}

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

Expected<Weight> load_matrix(const TensorFile& file, const std::string& module, int64_t experts,
                             const LayerOptions& options, TensorFile& memory) {
  WeightOptions of_layers = options.weight;
  of_layers.skip_unwritten = true;
  Expected<Weight> weight = load_weight_part(file, module, of_layers, options.expert);
  if (!weight) return weight;
  if (weight->experts > 0 && !is_nvfp4(row_of(weight->convention))) {
    return Status::unsupported(
        weight->name,
        fmt::format("{} experts in {}", weight->experts, dualgemm::name_of(weight->type)),
        "only NVFP4 is read from tensors of three extents: quantise with "
        "ModelOpt, or split them into experts.E.gate_proj and up_proj");
  }
  if (weight->experts > 0) {
    return Status::invalid(fmt::format("layer '{}'", module),
                           fmt::format("{} experts in one tensor", weight->experts),
                           "take one of them (--expert 0) or all (--experts)");
  }
  const TensorView& data = *file.find(weight->name);
  const int64_t held = experts_in(data);
  if (held != experts) {
    return corrupt(
        fmt::format("{}, tensor '{}'", file.origin(), data.name), format_shape(data.shape),
        experts > 0 ? fmt::format("must hold {} experts as the layer's gate does", experts)
                    : "must be one matrix as the layer's gate is");
  }
  if (weight->owner) memory.keep_alive(weight->owner);
  if (options.weight.allow_nan) return weight;
  DUALGEMM_TRY(check_block_scales(*weight, place_of_scales(file, *weight, options.expert)));
  return weight;
}

Expected<std::vector<float>> load_bias(const TensorFile& file, const std::string& name,
                                       int64_t rows, int64_t experts,
                                       const std::optional<int64_t>& expert) {
  const TensorView* tensor = name.empty() ? nullptr : file.find(name);
  if (tensor == nullptr) return std::vector<float>();
  std::vector<int64_t> shape{rows};
  if (experts > 0) shape.insert(shape.begin(), experts);
  if (tensor->shape != shape) {
    return corrupt(fmt::format("{}, tensor '{}'", file.origin(), tensor->name),
                   format_shape(tensor->shape), "must be " + format_shape(shape));
  }
  if (experts == 0) return decode_to_f32(*tensor);
  TensorView own = *tensor;
  own.shape = {rows};
  const size_t bytes = tensor->data.size() / static_cast<size_t>(experts);
  own.data = tensor->data.subspan(static_cast<size_t>(*expert) * bytes, bytes);
  return decode_to_f32(own);
}

Expected<std::vector<float>> load_pre_quant_scale(const TensorFile& file, const std::string& module,
                                                  int64_t k, int64_t experts,
                                                  const LayerOptions& options) {
  const std::string name = module + ".pre_quant_scale";
  const TensorView* tensor = module.empty() ? nullptr : file.find(name);
  if (tensor == nullptr) return std::vector<float>();
  // One for all experts may stand beside the tensors that stack them.
  const bool for_all = experts > 0 && tensor->shape == std::vector<int64_t>{k};
  Expected<std::vector<float>> factors =
      load_bias(file, name, k, for_all ? 0 : experts, options.expert);
  if (!factors) return factors;
  const std::string where = fmt::format("{}, tensor '{}'", file.origin(), name);
  for (size_t i = 0; i < factors->size(); ++i) {
    if (std::isfinite((*factors)[i]) || options.weight.allow_nan) continue;
    return corrupt(where, fmt::format("{} at {}", (*factors)[i], i),
                   fmt::format("must be finite; {}", kAllowNanTakesIt));
  }
  if (std::all_of(factors->begin(), factors->end(), [](float factor) { return factor == 1.0f; }))
    return std::vector<float>();
  if (options.pre_quant_scale) return factors;
  return Status::unsupported(where, fmt::format("{} factors of the input's columns", k),
                             "the reader of the layer must ask for them (pre_quant_scale) and "
                             "multiply its input by them");
}

Expected<int64_t> rotation_wanted(const TensorFile& file, const std::string& module, int64_t k,
                                  const LayerOptions& options) {
  if (options.quantization == nullptr || module.empty()) return 0;
  Expected<int64_t> size = rotation_of(*options.quantization, module, k);
  for (const InputRotation& rotation : options.quantization->rotations())
    DUALGEMM_TRY(check_matrix_of_rotation(file, module, rotation));
  if (!size || *size == 0 || options.rotates) return size;
  return Status::unsupported(fmt::format("{}, module '{}'", file.origin(), module),
                             fmt::format("an input that is rotated by {} columns", *size),
                             "the reader of the layer must ask for it (hadamard) and rotate its "
                             "input");
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
