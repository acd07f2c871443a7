// Functions (PTX ISA 9.0, ".func", ".alias", ".noreturn").
#include <string>
#include <utility>

#include <fmt/format.h>

#include "parse/formals.hpp"
#include "parse/literal.hpp"
#include "parse/module_reader.hpp"

namespace ptxsim {
namespace {

uint64_t bytes_of(const Function& function, const Formal& formal) {
  return formal.is_register ? bytes_of(function.body.registers[formal.index].type)
                            : function.body.variables[formal.index].bytes;
}

bool have_same_sizes(const Function& a, const std::vector<Formal>& of_a, const Function& b,
                     const std::vector<Formal>& of_b) {
  if (of_a.size() != of_b.size()) return false;
  for (size_t i = 0; i < of_a.size(); ++i)
    if (bytes_of(a, of_a[i]) != bytes_of(b, of_b[i])) return false;
  return true;
}

std::vector<Formal> add_formals(Lexer& lexer, EntryBuilder& builder) {
  std::vector<Formal> formals;
  if (!lexer.peek().is('(')) return formals;
  for (const FormalDeclaration& declaration : read_formals(lexer))
    formals.push_back(builder.add_formal(declaration));
  return formals;
}

}  // namespace

void ModuleReader::read_function() {
  if (lexer_.accept_word("attribute")) skip_parentheses();
  Function function;
  EntryBuilder builder(lexer_, scope_, function.body);
  function.results = add_formals(lexer_, builder);
  const Token name = lexer_.expect_kind(Token::Kind::kIdentifier, "the name of a function");
  function.body.name = std::string(name.text);
  function.body.line = name.line;
  function.params = add_formals(lexer_, builder);
  read_function_attributes(function);
  const Symbol symbol{Symbol::Kind::kFunction, static_cast<uint32_t>(module_.functions.size())};
  const auto [found, is_first] = scope_.names.emplace(name.text, symbol);
  if (found->second.kind != Symbol::Kind::kFunction)
    lexer_.fail(name, fmt::format("{} is already declared", in_quotes(name.text)));
  const uint32_t index = found->second.index;
  if (is_first) {
    module_.functions.push_back(function);
  } else if (const Function& before = module_.functions[index];
             !have_same_sizes(before, before.results, function, function.results) ||
             !have_same_sizes(before, before.params, function, function.params)) {
    lexer_.fail(name, fmt::format("{} was declared in line {} with other parameters or results",
                                  in_quotes(name.text), before.body.line));
  }
  if (!lexer_.accept(';')) read_function_body(name, function, index, builder);
}

void ModuleReader::read_function_attributes(Function& function) {
  while (lexer_.peek().kind == Token::Kind::kDotWord) {
    const Token directive = lexer_.take();  // also .abi_preserve 8, .unique
    if (directive.is_word("pragma")) {
      read_pragma();
    } else if (directive.is_word("noreturn")) {
      function.is_noreturn = true;
    } else if (starts_constant(lexer_.peek())) {
      read_integer(lexer_);
    }
  }
}

void ModuleReader::read_function_body(const Token& name, Function& function, uint32_t index,
                                      EntryBuilder& builder) {
  if (module_.functions[index].is_defined() || module_.functions[index].alias_of >= 0)
    lexer_.fail(name, fmt::format("{} is already declared", in_quotes(name.text)));
  function.is_noreturn |= module_.functions[index].is_noreturn;
  lexer_.expect('{', "or ';' after the declaration of a function");
  BodyReader(lexer_, builder, locations_).read();
  module_.functions[index] = std::move(function);
}

// Another name of a function; the name has been declared.
void ModuleReader::read_alias() {
  const auto read_name = [&](Token& name) -> uint32_t {
    name = lexer_.expect_kind(Token::Kind::kIdentifier, "the name of a function");
    const auto found = scope_.names.find(name.text);
    if (found == scope_.names.end())
      lexer_.fail(name, fmt::format("{} is not declared", in_quotes(name.text)));
    if (found->second.kind != Symbol::Kind::kFunction)
      lexer_.fail(name, fmt::format("{} is no function", in_quotes(name.text)));
    return found->second.index;
  };
  Token name, of;
  const uint32_t alias = read_name(name);
  lexer_.expect(',', "between the names of .alias");
  uint32_t target = read_name(of);
  lexer_.expect(';', "after .alias");
  while (module_.functions[target].alias_of >= 0)
    target = static_cast<uint32_t>(module_.functions[target].alias_of);
  if (target == alias || module_.functions[alias].is_defined())
    lexer_.fail(name, fmt::format("{} cannot be another name of {}", in_quotes(name.text),
                                  in_quotes(of.text)));
  module_.functions[alias].alias_of = static_cast<int>(target);
}

}  // namespace ptxsim
