// Directives outside bodies (PTX ISA 9.0, "Directives").
#pragma once

#include <string_view>

#include "parse/body.hpp"
#include "parse/entry_builder.hpp"
#include "parse/lexer.hpp"
#include "parse/module_scope.hpp"
#include "ptxsim/ir/module.hpp"
#include "ptxsim/parse/parser.hpp"

namespace ptxsim {

class ModuleReader {
 public:
  // `only_entry`: the entry whose body is read; null: those of all. It must outlive the reader.
  ModuleReader(Lexer& lexer, Module& module, const ParseLimits& limits,
               const std::string_view* only_entry);
  void read();

 private:
  struct Linkage {
    bool is_extern = false;
  };
  void read_version();
  void read_target();
  void read_address_size();
  void read_directive();
  void read_file();
  void read_section();
  void read_pragma();
  void read_alias();
  void read_linked(const Token& directive, Linkage linkage);
  void read_variables(Space space, Linkage linkage);
  void resolve_addresses(VariableDeclaration& declaration) const;
  void read_function();  // a declaration or a definition
  void read_function_attributes(Function& function);
  void read_function_body(const Token& name, Function& function, uint32_t index,
                          EntryBuilder& builder);
  void read_entry();
  void read_parameters(EntryBuilder& builder);
  void read_entry_directives(Entry& entry);
  void skip_parentheses();

  Lexer& lexer_;
  Module& module_;
  ModuleScope scope_;
  LocationReader locations_;
  const std::string_view* only_entry_;
};

}  // namespace ptxsim
