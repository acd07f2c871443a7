// Enumerators and their spelling, from the tables of dualgemm/enums.h.
#include <string>

#include "core/enum_table.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm {

const char* status_code_name(StatusCode code) noexcept { return core::enum_name(code); }
const char* name_of(DataType value) noexcept { return core::enum_name(value); }
const char* name_of(ScaleLayout value) noexcept { return core::enum_name(value); }
const char* name_of(ActivationKind value) noexcept { return core::enum_name(value); }
const char* name_of(Combine value) noexcept { return core::enum_name(value); }
const char* name_of(Grouping value) noexcept { return core::enum_name(value); }
const char* name_of(StrategyId value) noexcept { return core::enum_name(value); }
const char* name_of(DeviceKind value) noexcept { return core::enum_name(value); }
const char* name_of(Isa value) noexcept { return core::enum_name(value); }
const char* name_of(BiasType value) noexcept { return core::enum_name(value); }
const char* name_of(Regime value) noexcept { return core::enum_name(value); }
const char* name_of(Preparation value) noexcept { return core::enum_name(value); }
const char* name_of(PreparedFormat value) noexcept { return core::enum_name(value); }
const char* name_of(GlobalScaling value) noexcept { return core::enum_name(value); }

Expected<DataType> parse_data_type(const std::string& name) {
  return core::parse_enum<DataType>("type", name);
}
Expected<ScaleLayout> parse_scale_layout(const std::string& name) {
  return core::parse_enum<ScaleLayout>("scale_layout", name);
}
Expected<ActivationKind> parse_activation(const std::string& name) {
  return core::parse_enum<ActivationKind>("activation", name);
}
Expected<Combine> parse_combine(const std::string& name) {
  return core::parse_enum<Combine>("combine", name);
}
Expected<Grouping> parse_grouping(const std::string& name) {
  return core::parse_enum<Grouping>("grouping", name);
}
Expected<BiasType> parse_bias(const std::string& name) {
  return core::parse_enum<BiasType>("bias", name);
}
Expected<StrategyId> parse_strategy(const std::string& name) {
  return core::parse_enum<StrategyId>("strategy", name);
}
Expected<DeviceKind> parse_device(const std::string& name) {
  return core::parse_enum<DeviceKind>("device", name);
}
Expected<Isa> parse_isa(const std::string& name) { return core::parse_enum<Isa>("isa", name); }
Expected<GlobalScaling> parse_global_scaling(const std::string& name) {
  return core::parse_enum<GlobalScaling>("scaling", name);
}

}  // namespace dualgemm
