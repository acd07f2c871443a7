// PTX text to a Module (PTX ISA 9.0, "Syntax").
#pragma once

#include <string>
#include <string_view>

#include "ptxsim/error.hpp"
#include "ptxsim/ir/module.hpp"

namespace ptxsim {

// Accepts PTX versions 7.0 to 9.x of targets sm_80 .. sm_121 (a and f forms included), 64-bit addresses. Errors (kInput) name line and column:
// malformed text, unknown directive, undeclared or doubly declared name, unknown label, unsupported version/target.
// Opcodes are not looked at here: decode() does.
Result<Module> parse(std::string_view text, std::string name);

}  // namespace ptxsim
