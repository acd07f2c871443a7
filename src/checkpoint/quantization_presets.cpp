#include "checkpoint/quantization_presets.hpp"

#include <fmt/format.h>

#include <array>

namespace dualgemm::checkpoint {
namespace {

using enum LinearFormat;
using Act = ActivationScheme;

struct Named {
  std::string_view name;
  LinearFormat format;
  Granularity granularity;
  int64_t rows, cols;
  ActivationScheme activations;
};

// modelopt.torch.export, quant_algo (0.47).
constexpr std::array kModelOpt = {
    Named{"NVFP4", kNvfp4, Granularity::kGroup, 0, 16, Act::kStatic},
    Named{"NVFP4_AWQ", kNvfp4, Granularity::kGroup, 0, 16, Act::kStatic},
    Named{"W4A16_NVFP4", kNvfp4, Granularity::kGroup, 0, 16, Act::kNone},
    Named{"W4A8_NVFP4_FP8", kNvfp4, Granularity::kGroup, 0, 16, Act::kNone},
    Named{"MXFP4", kMxfp4, Granularity::kGroup, 0, 32, Act::kDynamic},
    Named{"W4A8_MXFP4_FP8", kMxfp4, Granularity::kGroup, 0, 32, Act::kNone},
    Named{"MXFP8", kMxfp8, Granularity::kGroup, 0, 32, Act::kDynamic},
    Named{"FP8", kFp8, Granularity::kTensor, 0, 0, Act::kStatic},
    Named{"FP8_PER_CHANNEL_PER_TOKEN", kFp8, Granularity::kChannel, 0, 0, Act::kDynamic},
    Named{"FP8_PB_WO", kFp8, Granularity::kBlock, 128, 128, Act::kNone},
    Named{"FP8_PB_REAL", kFp8, Granularity::kBlock, 128, 128, Act::kDynamic},
};

// compressed_tensors.quantization.quant_scheme (0.20).
constexpr std::array kCompressedTensors = {
    Named{"NVFP4", kNvfp4, Granularity::kGroup, 0, 16, Act::kLocal},
    Named{"NVFP4A16", kNvfp4, Granularity::kGroup, 0, 16, Act::kNone},
    Named{"MXFP4", kMxfp4, Granularity::kGroup, 0, 32, Act::kDynamic},
    Named{"MXFP4A16", kMxfp4, Granularity::kGroup, 0, 32, Act::kNone},
    Named{"MXFP8", kMxfp8, Granularity::kGroup, 0, 32, Act::kDynamic},
    Named{"MXFP8A16", kMxfp8, Granularity::kGroup, 0, 32, Act::kNone},
    Named{"FP8", kFp8, Granularity::kTensor, 0, 0, Act::kStatic},
    Named{"FP8_DYNAMIC", kFp8, Granularity::kChannel, 0, 0, Act::kDynamic},
    Named{"FP8_BLOCK", kFp8, Granularity::kBlock, 128, 128, Act::kDynamic},
    Named{"UNQUANTIZED", kFloat, Granularity::kNone, 0, 0, Act::kNone},
    Named{"W8A16", kOther, Granularity::kChannel, 0, 0, Act::kNone},
    Named{"W4A16", kOther, Granularity::kGroup, 0, 128, Act::kNone},
    Named{"W4A16_ASYM", kOther, Granularity::kGroup, 0, 128, Act::kNone},
    Named{"W8A8", kOther, Granularity::kChannel, 0, 0, Act::kDynamic},
    Named{"INT8", kOther, Granularity::kChannel, 0, 0, Act::kDynamic},
    Named{"W4A8", kOther, Granularity::kGroup, 0, 128, Act::kDynamic},
    Named{"W4AFP8", kOther, Granularity::kGroup, 0, 128, Act::kDynamic},
};

template <size_t kCount>
std::optional<LinearScheme> find(const std::array<Named, kCount>& table, std::string_view name) {
  for (const Named& row : table) {
    if (row.name != name) continue;
    LinearScheme scheme = {row.format, row.granularity, row.rows, row.cols, row.activations, {},
                           {}};
    if (row.format == kOther) scheme.description = name;
    return scheme;
  }
  return std::nullopt;
}

}  // namespace

void set_weights(const QuantizationArguments& args, LinearScheme& scheme) {
  std::string strategy = args.strategy;
  if (strategy.empty()) strategy = args.group > 0 ? "group" : "tensor";
  const bool is_group = strategy == "group" || strategy == "tensor_group";
  const auto set = [&](LinearFormat format, Granularity granularity, int64_t rows, int64_t cols) {
    scheme.format = format;
    scheme.granularity = granularity;
    scheme.rows = rows;
    scheme.cols = cols;
  };
  if (args.type == "float" && args.bits == 4 && is_group && args.group == 16)
    return set(kNvfp4, Granularity::kGroup, 0, 16);
  if (args.type == "float" && args.bits == 4 && is_group && args.group == 32)
    return set(kMxfp4, Granularity::kGroup, 0, 32);
  if (args.type == "float" && args.bits == 8) {
    if (strategy == "tensor") return set(kFp8, Granularity::kTensor, 0, 0);
    if (strategy == "channel") return set(kFp8, Granularity::kChannel, 0, 0);
    if (strategy == "block" && args.block.size() == 2)
      return set(kFp8, Granularity::kBlock, args.block[0], args.block[1]);
    if (is_group && args.group == 32) return set(kMxfp8, Granularity::kGroup, 0, 32);
  }
  set(kOther, is_group ? Granularity::kGroup : Granularity::kNone, 0, args.group);
  scheme.description = fmt::format("{} of {} bits, {}", args.type, args.bits, strategy);
  if (is_group) scheme.description += fmt::format(" of {}", args.group);
}

LinearScheme modelopt_scheme(const std::string& algorithm, int64_t group) {
  const std::optional<LinearScheme> found = find(kModelOpt, algorithm);
  if (found && (group <= 0 || found->cols == 0 || group == found->cols ||
                found->granularity != Granularity::kGroup))
    return *found;
  LinearScheme other;
  other.format = kOther;
  other.description = group > 0 ? fmt::format("{}, group of {}", algorithm, group) : algorithm;
  return other;
}

std::optional<LinearScheme> preset_scheme(std::string_view name) {
  return find(kCompressedTensors, name);
}

}  // namespace dualgemm::checkpoint
