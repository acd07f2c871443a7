// What names mean inside one entry: nested scopes { } with registers, variables and labels of their
// own (PTX ISA 9.0, "Identifiers", "Labels and Function Names").
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parse/lexer.hpp"
#include "ptxsim/ir/module.hpp"

namespace ptxsim {

struct Symbol {
  enum class Kind : uint8_t { kRegister, kVariable, kModuleVariable, kFunction, kEntry };
  Kind kind = Kind::kRegister;
  uint32_t index = 0;
};

struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};
template <class T>
using NameMap = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;

// What a label names: a place in the statements, the list of a .branchtargets, or one of
// Entry::prototypes.
struct Label {
  enum class Kind : uint8_t { kStatement, kTargets, kPrototype };
  Kind kind = Kind::kStatement;
  uint32_t index = 0;
};

// Names of registers and variables are declared before they are used; labels may follow their uses,
// so uses of names that are not (yet) known are collected in each scope and looked up when it ends,
// the inner scope first.
class Scopes {
 public:
  explicit Scopes(const Lexer& lexer) : lexer_(lexer) { open(lexer.peek()); }

  void open(const Token& at);
  void close();  // of an inner scope
  bool has_inner() const { return scopes_.size() > 1; }

  void declare(const Token& name, std::string_view spelling, Symbol symbol);
  void declare(const Token& name, Symbol symbol) { declare(name, name.text, symbol); }
  const Symbol* find(std::string_view name) const;  // nullptr: not declared in any open scope

  void declare_label(const Token& name, Label label);
  uint32_t add_target_list(const std::vector<Token>& names);  // of a .branchtargets
  void use_label(const Token& name, uint32_t statement, uint32_t operand);
  void finish(
      std::vector<Statement>& statements);  // closes the entry and fills in its label operands

 private:
  struct Use {
    Token name;
    bool in_list;  // target_lists_[owner][position], else statement `owner`, operand `position`
    uint32_t owner;
    uint32_t position;
    Label label;
  };
  struct Scope {
    NameMap<Symbol> symbols;
    NameMap<Label> labels;
    std::vector<Use> pending;
  };
  void resolve(Scope& scope);

  const Lexer& lexer_;
  std::vector<Scope> scopes_;
  std::vector<Use> resolved_;
  std::vector<std::vector<uint32_t>> target_lists_;
};

}  // namespace ptxsim
