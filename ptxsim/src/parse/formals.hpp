// Parameter lists of functions, and what indirect calls name (PTX ISA 9.0, ".func",
// ".callprototype", ".calltargets").
#pragma once

#include <cstdint>
#include <vector>

#include "parse/declaration.hpp"
#include "parse/lexer.hpp"
#include "ptxsim/ir/module.hpp"

namespace ptxsim {

struct FormalDeclaration {
  bool is_register = false;
  VariableDeclaration variable;  // .param
  RegisterDeclaration reg;       // .reg
  uint64_t bytes() const { return is_register ? bytes_of(reg.type) : variable.variable.bytes; }
};

// From '(' to ')': .param and .reg declarations.
std::vector<FormalDeclaration> read_formals(Lexer& lexer);

// What follows ".callprototype", up to the ';': [(results)] _ [(parameters)] [attributes].
Prototype read_call_prototype(Lexer& lexer);

}  // namespace ptxsim
