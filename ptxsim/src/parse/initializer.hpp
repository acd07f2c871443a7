// Initial values of variables (PTX ISA 9.0, "Initializers").
#pragma once

#include <cstdint>
#include <vector>

#include "parse/declaration.hpp"
#include "parse/lexer.hpp"

namespace ptxsim {

// Reads what follows '=': a value or nested lists of values. Sets the variable's bytes (elements
// that are not given are 0); values that are addresses are listed, and `unsupported` until somebody
// has looked their names up.
void read_initializer(Lexer& lexer, VariableDeclaration& declaration,
                      const std::vector<uint64_t>& dimensions, uint64_t& initial_bytes_left);

}  // namespace ptxsim
