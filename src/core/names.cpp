// Enumerators and their spelling: one table for each enum, read in both directions.
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "dualgemm/types.hpp"

namespace dualgemm {
namespace {

template <class Enum>
struct Named {
  Enum value;
  const char* name;
};
template <class Enum>
Named(Enum, const char*) -> Named<Enum>;

constexpr std::array kDataTypes{
    Named{DataType::kE2M1, "e2m1"},
    Named{DataType::kF16, "f16"},
    Named{DataType::kBF16, "bf16"},
    Named{DataType::kF32, "f32"},
};
constexpr std::array kScaleLayouts{
    Named{ScaleLayout::kLinear, "linear"},
    Named{ScaleLayout::kSwizzled128x4, "swizzled_128x4"},
};
constexpr std::array kActivations{
    Named{ActivationKind::kSilu, "silu"},
    Named{ActivationKind::kClampedSwiglu, "clamped_swiglu"},
    Named{ActivationKind::kSwigluOai, "swiglu_oai"},
    Named{ActivationKind::kGeluErf, "gelu_erf"},
    Named{ActivationKind::kGeluTanh, "gelu_tanh"},
    Named{ActivationKind::kRelu2, "relu2"},
    Named{ActivationKind::kSigmoid, "sigmoid"},
    Named{ActivationKind::kIdentity, "identity"},
};
constexpr std::array kGroupings{
    Named{Grouping::kNone, "none"},
    Named{Grouping::kContiguous, "contiguous"},
    Named{Grouping::kMasked, "masked"},
};
constexpr std::array kStrategies{
    Named{StrategyId::kAuto, "auto"},
    Named{StrategyId::kReference, "reference"},
    Named{StrategyId::kTwoPass, "two_pass"},
    Named{StrategyId::kCached, "cached"},
    Named{StrategyId::kGraph, "graph"},
    Named{StrategyId::kStreams, "streams"},
    Named{StrategyId::kFusedEpilogue, "fused_epilogue"},
    Named{StrategyId::kFusedSequential, "fused_sequential"},
    Named{StrategyId::kFused, "fused"},
    Named{StrategyId::kFp8, "fp8"},
};
constexpr std::array kDevices{
    Named{DeviceKind::kAuto, "auto"},
    Named{DeviceKind::kCpu, "cpu"},
    Named{DeviceKind::kCuda, "cuda"},
};
constexpr std::array kIsas{
    Named{Isa::kAuto, "auto"},        Named{Isa::kScalar, "scalar"},
    Named{Isa::kAvx2, "avx2"},        Named{Isa::kAvx512Vnni, "avx512_vnni"},
    Named{Isa::kAmxBf16, "amx_bf16"}, Named{Isa::kSm100a, "sm100a"},
    Named{Isa::kSm90a, "sm90a"},      Named{Isa::kSm80, "sm80"},
};
constexpr std::array kRegimes{
    Named{Regime::kGemv, "gemv"},
    Named{Regime::kMultiRow, "multi_row"},
    Named{Regime::kTile, "tile"},
};

template <class Enum, std::size_t kCount>
const char* name_in(const std::array<Named<Enum>, kCount>& table, Enum value) noexcept {
  for (const auto& entry : table) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";  // an integer from outside C++ that is no enumerator
}

template <class Enum, std::size_t kCount>
Expected<Enum> parse_in(const std::array<Named<Enum>, kCount>& table, const char* argument,
                        const std::string& name) {
  std::string legal;
  for (const auto& entry : table) {
    if (name == entry.name) return entry.value;
    legal += (legal.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Status::invalid(argument, "\"" + name + "\"", "must be one of " + legal);
}

}  // namespace

const char* name_of(DataType value) noexcept { return name_in(kDataTypes, value); }
const char* name_of(ScaleLayout value) noexcept { return name_in(kScaleLayouts, value); }
const char* name_of(ActivationKind value) noexcept { return name_in(kActivations, value); }
const char* name_of(Grouping value) noexcept { return name_in(kGroupings, value); }
const char* name_of(StrategyId value) noexcept { return name_in(kStrategies, value); }
const char* name_of(DeviceKind value) noexcept { return name_in(kDevices, value); }
const char* name_of(Isa value) noexcept { return name_in(kIsas, value); }
const char* name_of(Regime value) noexcept { return name_in(kRegimes, value); }

Expected<DataType> parse_data_type(const std::string& name) {
  return parse_in(kDataTypes, "type", name);
}
Expected<ScaleLayout> parse_scale_layout(const std::string& name) {
  return parse_in(kScaleLayouts, "scale_layout", name);
}
Expected<ActivationKind> parse_activation(const std::string& name) {
  return parse_in(kActivations, "activation", name);
}
Expected<Grouping> parse_grouping(const std::string& name) {
  return parse_in(kGroupings, "grouping", name);
}
Expected<StrategyId> parse_strategy(const std::string& name) {
  return parse_in(kStrategies, "strategy", name);
}
Expected<DeviceKind> parse_device(const std::string& name) {
  return parse_in(kDevices, "device", name);
}
Expected<Isa> parse_isa(const std::string& name) { return parse_in(kIsas, "isa", name); }

}  // namespace dualgemm
