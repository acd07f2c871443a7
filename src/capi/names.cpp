// Versions, names and the constants that C and C++ share.
#include "capi/error.hpp"
#include "dualgemm/dualgemm.h"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::capi {
namespace {

template <class Enum>
constexpr bool equal(int32_t c, Enum cpp) {
  return c == static_cast<int32_t>(cpp);
}

static_assert(DUALGEMM_SF_VEC == kSfVec);
static_assert(equal(DUALGEMM_OK, StatusCode::kOk));
static_assert(equal(DUALGEMM_INVALID_ARGUMENT, StatusCode::kInvalidArgument));
static_assert(equal(DUALGEMM_UNSUPPORTED, StatusCode::kUnsupported));
static_assert(equal(DUALGEMM_OVERFLOW, StatusCode::kOverflow));
static_assert(equal(DUALGEMM_OUT_OF_MEMORY, StatusCode::kOutOfMemory));
static_assert(equal(DUALGEMM_WORKSPACE_TOO_SMALL, StatusCode::kWorkspaceTooSmall));
static_assert(equal(DUALGEMM_NOT_FOUND, StatusCode::kNotFound));
static_assert(equal(DUALGEMM_IO_ERROR, StatusCode::kIoError));
static_assert(equal(DUALGEMM_CORRUPT_FILE, StatusCode::kCorruptFile));
static_assert(equal(DUALGEMM_INTERNAL, StatusCode::kInternal));
static_assert(equal(DUALGEMM_E2M1, DataType::kE2M1));
static_assert(equal(DUALGEMM_F16, DataType::kF16));
static_assert(equal(DUALGEMM_BF16, DataType::kBF16));
static_assert(equal(DUALGEMM_F32, DataType::kF32));
static_assert(equal(DUALGEMM_SCALES_LINEAR, ScaleLayout::kLinear));
static_assert(equal(DUALGEMM_SCALES_SWIZZLED_128X4, ScaleLayout::kSwizzled128x4));
static_assert(equal(DUALGEMM_SILU, ActivationKind::kSilu));
static_assert(equal(DUALGEMM_CLAMPED_SWIGLU, ActivationKind::kClampedSwiglu));
static_assert(equal(DUALGEMM_SWIGLU_OAI, ActivationKind::kSwigluOai));
static_assert(equal(DUALGEMM_GELU_ERF, ActivationKind::kGeluErf));
static_assert(equal(DUALGEMM_GELU_TANH, ActivationKind::kGeluTanh));
static_assert(equal(DUALGEMM_RELU2, ActivationKind::kRelu2));
static_assert(equal(DUALGEMM_SIGMOID, ActivationKind::kSigmoid));
static_assert(equal(DUALGEMM_IDENTITY, ActivationKind::kIdentity));
static_assert(equal(DUALGEMM_GROUPING_NONE, Grouping::kNone));
static_assert(equal(DUALGEMM_GROUPING_CONTIGUOUS, Grouping::kContiguous));
static_assert(equal(DUALGEMM_GROUPING_MASKED, Grouping::kMasked));
static_assert(equal(DUALGEMM_STRATEGY_AUTO, StrategyId::kAuto));
static_assert(equal(DUALGEMM_STRATEGY_REFERENCE, StrategyId::kReference));
static_assert(equal(DUALGEMM_STRATEGY_TWO_PASS, StrategyId::kTwoPass));
static_assert(equal(DUALGEMM_STRATEGY_CACHED, StrategyId::kCached));
static_assert(equal(DUALGEMM_STRATEGY_GRAPH, StrategyId::kGraph));
static_assert(equal(DUALGEMM_STRATEGY_STREAMS, StrategyId::kStreams));
static_assert(equal(DUALGEMM_STRATEGY_FUSED_EPILOGUE, StrategyId::kFusedEpilogue));
static_assert(equal(DUALGEMM_STRATEGY_FUSED_SEQUENTIAL, StrategyId::kFusedSequential));
static_assert(equal(DUALGEMM_STRATEGY_FUSED, StrategyId::kFused));
static_assert(equal(DUALGEMM_STRATEGY_FP8, StrategyId::kFp8));
static_assert(equal(DUALGEMM_DEVICE_AUTO, DeviceKind::kAuto));
static_assert(equal(DUALGEMM_DEVICE_CPU, DeviceKind::kCpu));
static_assert(equal(DUALGEMM_DEVICE_CUDA, DeviceKind::kCuda));
static_assert(equal(DUALGEMM_ISA_AUTO, Isa::kAuto));
static_assert(equal(DUALGEMM_ISA_SCALAR, Isa::kScalar));
static_assert(equal(DUALGEMM_ISA_AVX2, Isa::kAvx2));
static_assert(equal(DUALGEMM_ISA_AVX512_VNNI, Isa::kAvx512Vnni));
static_assert(equal(DUALGEMM_ISA_AMX_BF16, Isa::kAmxBf16));
static_assert(equal(DUALGEMM_ISA_SM100A, Isa::kSm100a));
static_assert(equal(DUALGEMM_ISA_SM90A, Isa::kSm90a));
static_assert(equal(DUALGEMM_ISA_SM80, Isa::kSm80));
static_assert(equal(DUALGEMM_REGIME_GEMV, Regime::kGemv));
static_assert(equal(DUALGEMM_REGIME_MULTI_ROW, Regime::kMultiRow));
static_assert(equal(DUALGEMM_REGIME_TILE, Regime::kTile));

template <class Enum>
dualgemm_status parse_with(Expected<Enum> (*parse)(const std::string&), const char* name,
                           int32_t* value, const char* value_argument) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(name, "name"));
    DUALGEMM_TRY(require(value, value_argument));
    DUALGEMM_CAPI_TRY_VALUE(parsed, parse(name));
    *value = static_cast<int32_t>(parsed);
    return {};
  });
}

}  // namespace
}  // namespace dualgemm::capi

using namespace dualgemm;  // NOLINT(google-build-using-namespace): the definitions of one C
                           // interface

const char* dualgemm_version(void) noexcept { return version(); }
int32_t dualgemm_version_number(void) noexcept {
  return DUALGEMM_VERSION_MAJOR * 10000 + DUALGEMM_VERSION_MINOR * 100 + DUALGEMM_VERSION_PATCH;
}

const char* dualgemm_data_type_name(int32_t data_type) noexcept {
  return name_of(static_cast<DataType>(data_type));
}
const char* dualgemm_scale_layout_name(int32_t scale_layout) noexcept {
  return name_of(static_cast<ScaleLayout>(scale_layout));
}
const char* dualgemm_activation_name(int32_t activation_kind) noexcept {
  return name_of(static_cast<ActivationKind>(activation_kind));
}
const char* dualgemm_grouping_name(int32_t grouping) noexcept {
  return name_of(static_cast<Grouping>(grouping));
}
const char* dualgemm_strategy_name(int32_t strategy) noexcept {
  return name_of(static_cast<StrategyId>(strategy));
}
const char* dualgemm_device_name(int32_t device) noexcept {
  return name_of(static_cast<DeviceKind>(device));
}
const char* dualgemm_isa_name(int32_t isa) noexcept { return name_of(static_cast<Isa>(isa)); }
const char* dualgemm_regime_name(int32_t regime) noexcept {
  return name_of(static_cast<Regime>(regime));
}

dualgemm_status dualgemm_parse_data_type(const char* name, int32_t* data_type) noexcept {
  return capi::parse_with(parse_data_type, name, data_type, "data_type");
}
dualgemm_status dualgemm_parse_scale_layout(const char* name, int32_t* scale_layout) noexcept {
  return capi::parse_with(parse_scale_layout, name, scale_layout, "scale_layout");
}
dualgemm_status dualgemm_parse_activation(const char* name, int32_t* activation_kind) noexcept {
  return capi::parse_with(parse_activation, name, activation_kind, "activation_kind");
}
dualgemm_status dualgemm_parse_grouping(const char* name, int32_t* grouping) noexcept {
  return capi::parse_with(parse_grouping, name, grouping, "grouping");
}
dualgemm_status dualgemm_parse_strategy(const char* name, int32_t* strategy) noexcept {
  return capi::parse_with(parse_strategy, name, strategy, "strategy");
}
dualgemm_status dualgemm_parse_device(const char* name, int32_t* device) noexcept {
  return capi::parse_with(parse_device, name, device, "device");
}
dualgemm_status dualgemm_parse_isa(const char* name, int32_t* isa) noexcept {
  return capi::parse_with(parse_isa, name, isa, "isa");
}
