// Versions, names and the constants that C and C++ share.
#include "capi/error.hpp"
#include "dualgemm/dualgemm.h"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::capi {
namespace {

static_assert(DUALGEMM_SF_VEC == kSfVec);
#define DUALGEMM_SAME(cpp_name, c_name, number, name, meaning) \
  static_assert(c_name == static_cast<int32_t>(Enum::cpp_name));
#define DUALGEMM_SAME_NUMBERS(Type, table) \
  namespace same_##Type {                  \
    using Enum = Type;                     \
    table(DUALGEMM_SAME)                   \
  }
DUALGEMM_SAME_NUMBERS(StatusCode, DUALGEMM_STATUS_TABLE)
DUALGEMM_SAME_NUMBERS(DataType, DUALGEMM_DATA_TYPE_TABLE)
DUALGEMM_SAME_NUMBERS(ScaleLayout, DUALGEMM_SCALE_LAYOUT_TABLE)
DUALGEMM_SAME_NUMBERS(ActivationKind, DUALGEMM_ACTIVATION_TABLE)
DUALGEMM_SAME_NUMBERS(Combine, DUALGEMM_COMBINE_TABLE)
DUALGEMM_SAME_NUMBERS(Grouping, DUALGEMM_GROUPING_TABLE)
DUALGEMM_SAME_NUMBERS(StrategyId, DUALGEMM_STRATEGY_TABLE)
DUALGEMM_SAME_NUMBERS(DeviceKind, DUALGEMM_DEVICE_TABLE)
DUALGEMM_SAME_NUMBERS(Isa, DUALGEMM_ISA_TABLE)
DUALGEMM_SAME_NUMBERS(Regime, DUALGEMM_REGIME_TABLE)
DUALGEMM_SAME_NUMBERS(Preparation, DUALGEMM_PREPARATION_TABLE)
DUALGEMM_SAME_NUMBERS(PreparedFormat, DUALGEMM_PREPARED_FORMAT_TABLE)
DUALGEMM_SAME_NUMBERS(BiasType, DUALGEMM_BIAS_TABLE)
DUALGEMM_SAME_NUMBERS(GlobalScaling, DUALGEMM_GLOBAL_SCALING_TABLE)
#undef DUALGEMM_SAME_NUMBERS
#undef DUALGEMM_SAME

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
const char* dualgemm_combine_name(int32_t combine) noexcept {
  return name_of(static_cast<Combine>(combine));
}
const char* dualgemm_grouping_name(int32_t grouping) noexcept {
  return name_of(static_cast<Grouping>(grouping));
}
const char* dualgemm_bias_name(int32_t bias) noexcept {
  return name_of(static_cast<BiasType>(bias));
}
const char* dualgemm_strategy_name(int32_t strategy) noexcept {
  return name_of(static_cast<StrategyId>(strategy));
}
const char* dualgemm_device_name(int32_t device) noexcept {
  return name_of(static_cast<DeviceKind>(device));
}
const char* dualgemm_isa_name(int32_t isa) noexcept { return name_of(static_cast<Isa>(isa)); }
const char* dualgemm_preparation_name(int32_t preparation) noexcept {
  return name_of(static_cast<Preparation>(preparation));
}
const char* dualgemm_global_scaling_name(int32_t scaling) noexcept {
  return name_of(static_cast<GlobalScaling>(scaling));
}
const char* dualgemm_regime_name(int32_t regime) noexcept {
  return name_of(static_cast<Regime>(regime));
}

const char* dualgemm_prepared_format_name(int32_t prepared_format) noexcept {
  return name_of(static_cast<PreparedFormat>(prepared_format));
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
dualgemm_status dualgemm_parse_combine(const char* name, int32_t* combine) noexcept {
  return capi::parse_with(parse_combine, name, combine, "combine");
}
dualgemm_status dualgemm_parse_grouping(const char* name, int32_t* grouping) noexcept {
  return capi::parse_with(parse_grouping, name, grouping, "grouping");
}
dualgemm_status dualgemm_parse_bias(const char* name, int32_t* bias) noexcept {
  return capi::parse_with(parse_bias, name, bias, "bias");
}
dualgemm_status dualgemm_parse_strategy(const char* name, int32_t* strategy) noexcept {
  return capi::parse_with(parse_strategy, name, strategy, "strategy");
}
dualgemm_status dualgemm_parse_device(const char* name, int32_t* device) noexcept {
  return capi::parse_with(parse_device, name, device, "device");
}
dualgemm_status dualgemm_parse_global_scaling(const char* name, int32_t* scaling) noexcept {
  return capi::parse_with(parse_global_scaling, name, scaling, "scaling");
}
dualgemm_status dualgemm_parse_isa(const char* name, int32_t* isa) noexcept {
  return capi::parse_with(parse_isa, name, isa, "isa");
}
