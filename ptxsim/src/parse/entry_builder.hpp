// One entry while its text is read: declares its names, gives registers and variables their places.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parse/declaration.hpp"
#include "parse/formals.hpp"
#include "parse/lexer.hpp"
#include "parse/module_scope.hpp"
#include "parse/scope.hpp"
#include "ptxsim/ir/module.hpp"

namespace ptxsim {

class EntryBuilder {
 public:
  EntryBuilder(const Lexer& lexer, ModuleScope& module, Entry& entry)
      : lexer_(lexer), module_(module), entry_(entry), scopes_(lexer) {}

  Entry& entry() { return entry_; }
  Scopes& scopes() { return scopes_; }
  uint32_t registers_left() const { return module_.registers_left; }
  uint64_t& initial_bytes_left() { return module_.initial_bytes_left; }

  void add_parameter(const VariableDeclaration& declaration);  // of a kernel
  Formal add_formal(const FormalDeclaration& declaration);     // of a function
  void add_variable(const VariableDeclaration& declaration);
  void add_registers(const RegisterDeclaration& declaration);

  // A register, variable or function of that name as an operand. A variable of the module is added
  // to the entry. kSink when there is none: it may be a label.
  Operand find(const Token& name);

 private:
  void add_register(const Token& name, std::string_view spelling, Type type);
  uint32_t module_variable(const Token& name, uint32_t index);

  const Lexer& lexer_;
  ModuleScope& module_;
  Entry& entry_;
  Scopes scopes_;
  std::unordered_map<uint32_t, uint32_t>
      used_;  // index in the module's variables -> in the entry's
};

}  // namespace ptxsim
