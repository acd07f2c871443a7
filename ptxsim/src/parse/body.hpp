// Statements between the braces of an entry (PTX ISA 9.0, "PTX Statements").
#pragma once

#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "parse/entry_builder.hpp"
#include "parse/lexer.hpp"
#include "ptxsim/ir/module.hpp"

namespace ptxsim {

// The .loc directives of a module, with calls that were inlined linked to each other.
class LocationReader {
 public:
  explicit LocationReader(Module& module) : module_(module) {}
  int read(Lexer& lexer);  // what follows ".loc": index into Module::locations

 private:
  using Key = std::tuple<int, int, int>;  // file, line, column
  int find_or_add(const Key& key);

  Module& module_;
  std::map<Key, int> latest_;  // the last .loc of that place
};

class BodyReader {
 public:
  BodyReader(Lexer& lexer, EntryBuilder& builder, LocationReader& locations)
      : lexer_(lexer), builder_(builder), locations_(locations) {}

  void read();  // from after the '{' to after its '}'

 private:
  void read_directive();
  void read_variables(std::string_view space);
  void read_labelled(const Token& name);
  void read_target_list(const Token& name);
  void read_call_targets(const Token& name);
  void declare_prototype(const Token& name, Prototype prototype);
  void read_guarded();
  void read_statement(const Token& root, Statement statement, const char* begin);
  void end_with_ret(const Token& close);

  Lexer& lexer_;
  EntryBuilder& builder_;
  LocationReader& locations_;
  int loc_ = -1;
  bool label_at_end_ = false;  // no statement has followed the last label
  bool not_unrolled_ = false;  // a .pragma "nounroll" has come, and no statement since
};

}  // namespace ptxsim
