// Names of special registers (PTX ISA 9.0, "Special Registers").
#pragma once

#include <string_view>

#include "ptxsim/ir/module.hpp"

namespace ptxsim {

struct SpecialName {
  std::string_view name;  // "%tid"
  SpecialKind kind;
  bool has_axis;  // .x .y .z follow
};

// True of names that PTX has and the interpreter does not.
bool is_unmodelled_special(std::string_view name);
// nullptr when there is no such register, or it is not modelled.
const SpecialName* find_special(std::string_view name);

}  // namespace ptxsim
