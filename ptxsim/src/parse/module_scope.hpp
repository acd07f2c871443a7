// What the text has declared outside entries.
#pragma once

#include <cstdint>
#include <vector>

#include "parse/declaration.hpp"
#include "parse/scope.hpp"
#include "ptxsim/ir/module.hpp"
#include "ptxsim/parse/parser.hpp"

namespace ptxsim {

struct ModuleScope {
  NameMap<Symbol> names;
  std::vector<VariableDeclaration> variables;
  uint64_t initial_bytes_left = 0;
  uint32_t registers_left = 0;
};

}  // namespace ptxsim
