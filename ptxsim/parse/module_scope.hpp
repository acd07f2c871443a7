// What the text has declared outside entries.
#pragma once

#include <cstdint>
#include <vector>

#include "ptxsim/ir/module.hpp"
#include "ptxsim/parse/declaration.hpp"
#include "ptxsim/parse/parser.hpp"
#include "ptxsim/parse/scope.hpp"

namespace ptxsim {

struct ModuleScope {
  NameMap<Symbol> names;
  std::vector<VariableDeclaration> variables;
  uint64_t initial_bytes_left = 0;
  uint32_t registers_left = 0;
};

}  // namespace ptxsim
