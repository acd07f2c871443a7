// Declarations of variables, parameters and registers as written
// (PTX ISA 9.0, "State Spaces, Types, and Variables").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parse/lexer.hpp"
#include "ptxsim/ir/module.hpp"

namespace ptxsim {

struct VariableDeclaration {
  Token name;
  Variable variable;
  // Why no entry may use it; empty for most. An error only when it is used: modules carry variables
  // of other kernels.
  std::string unsupported;
  struct Address {  // of an initial value that is an address: name+offset at byte `at`
    Token name;
    uint64_t at, offset;
  };
  std::vector<Address> addresses;  // that give `unsupported` its reason, if nothing else does
};

// What follows ".shared" and the like, up to the ';': [.align N] [.vN] .type name [dims] [=
// initialiser], ... `initial_bytes_left` is what initial values may still take.
std::vector<VariableDeclaration> read_variables(Lexer& lexer, Space space, bool is_extern,
                                                uint64_t& initial_bytes_left);

// What follows ".param" in a parameter list or a body: [.align N] .type [.ptr [.space] [.align N]]
// name [dims].
VariableDeclaration read_parameter(Lexer& lexer);

struct RegisterDeclaration {
  Token name;
  Type type = Type::kNone;
  bool is_range = false;  // name<count>: name0 .. name(count-1)
  uint32_t count = 1;
};

// What follows ".reg" in a parameter list: .type name.
RegisterDeclaration read_register_parameter(Lexer& lexer);

// What follows ".reg", up to the ';'.
std::vector<RegisterDeclaration> read_registers(Lexer& lexer, uint32_t most);

}  // namespace ptxsim
