// The tables of dualgemm/enums.h as values: what walks over an enum, checks a number that came from
// outside, or lists legal names asks here, so that a new row needs no other edit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "dualgemm/enums.h"
#include "dualgemm/quantize.hpp"
#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::core {

template <class Enum>
struct EnumRow {
  Enum value;
  int32_t c_value;      // of the constant of dualgemm.h
  const char* name;     // as the command line spells it
  const char* meaning;  // a few words
};

// The rows of an enum, in the order of their numbers.
// Hidden: a symbol that is unique in the process (STB_GNU_UNIQUE) would keep the shared library
// from ever being unloaded.
template <class Enum>
[[gnu::visibility("hidden")]] inline constexpr auto kEnumRows = nullptr;

template <class Enum>
constexpr bool counts_from_zero() {
  int32_t next = 0;
  for (const EnumRow<Enum>& row : kEnumRows<Enum>) {
    if (row.c_value != next || static_cast<int32_t>(row.value) != next) return false;
    ++next;
  }
  return true;
}

#define DUALGEMM_ENUM_ROW(cpp_name, c_name, number, name, meaning) \
  EnumRow<Enum>{Enum::cpp_name, number, name, meaning},
#define DUALGEMM_ENUM_ROWS(Type, table)                                  \
  namespace rows_of_##Type {                                             \
    using Enum = Type;                                                   \
    inline constexpr EnumRow<Enum> kRows[] = {table(DUALGEMM_ENUM_ROW)}; \
  }                                                                      \
  template <>                                                            \
  [[gnu::visibility("hidden")]] inline constexpr auto kEnumRows<Type> =  \
      std::to_array(rows_of_##Type::kRows);                              \
  static_assert(counts_from_zero<Type>())

DUALGEMM_ENUM_ROWS(StatusCode, DUALGEMM_STATUS_TABLE);
DUALGEMM_ENUM_ROWS(DataType, DUALGEMM_DATA_TYPE_TABLE);
DUALGEMM_ENUM_ROWS(ScaleLayout, DUALGEMM_SCALE_LAYOUT_TABLE);
DUALGEMM_ENUM_ROWS(ActivationKind, DUALGEMM_ACTIVATION_TABLE);
DUALGEMM_ENUM_ROWS(Combine, DUALGEMM_COMBINE_TABLE);
DUALGEMM_ENUM_ROWS(Grouping, DUALGEMM_GROUPING_TABLE);
DUALGEMM_ENUM_ROWS(StrategyId, DUALGEMM_STRATEGY_TABLE);
DUALGEMM_ENUM_ROWS(DeviceKind, DUALGEMM_DEVICE_TABLE);
DUALGEMM_ENUM_ROWS(Isa, DUALGEMM_ISA_TABLE);
DUALGEMM_ENUM_ROWS(Regime, DUALGEMM_REGIME_TABLE);
DUALGEMM_ENUM_ROWS(Preparation, DUALGEMM_PREPARATION_TABLE);
DUALGEMM_ENUM_ROWS(PreparedFormat, DUALGEMM_PREPARED_FORMAT_TABLE);
DUALGEMM_ENUM_ROWS(BiasType, DUALGEMM_BIAS_TABLE);
DUALGEMM_ENUM_ROWS(GlobalScaling, DUALGEMM_GLOBAL_SCALING_TABLE);

#undef DUALGEMM_ENUM_ROWS
#undef DUALGEMM_ENUM_ROW

template <class Enum>
inline constexpr int32_t kEnumCount = static_cast<int32_t>(kEnumRows<Enum>.size());
template <class Enum>
inline constexpr Enum kLastOf = kEnumRows<Enum>.back().value;

template <class Enum>
constexpr bool is_enumerator(Enum value) noexcept {
  const auto number = static_cast<int32_t>(value);
  return number >= 0 && number < kEnumCount<Enum>;
}

// The name of a number from outside; "unknown" if it is no enumerator.
template <class Enum>
constexpr const char* enum_name(Enum value) noexcept {
  return is_enumerator(value) ? kEnumRows<Enum>[static_cast<size_t>(value)].name : "unknown";
}

// "silu, clamped_swiglu, ..."
template <class Enum>
std::string enum_names() {
  std::string names;
  for (const EnumRow<Enum>& row : kEnumRows<Enum>) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return names;
}

template <class Enum>
Status check_enumerator(const std::string& argument, Enum value) {
  if (is_enumerator(value)) return {};
  return Status::invalid(argument, std::to_string(static_cast<int32_t>(value)),
                         "must be 0 .. " + std::to_string(kEnumCount<Enum> - 1));
}

template <class Enum>
Expected<Enum> parse_enum(const char* argument, const std::string& name) {
  for (const EnumRow<Enum>& row : kEnumRows<Enum>) {
    if (name == row.name) return row.value;
  }
  return Status::invalid(argument, "\"" + name + "\"", "must be one of " + enum_names<Enum>());
}

}  // namespace dualgemm::core
