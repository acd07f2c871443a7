#include "parse/formals.hpp"

#include "parse/literal.hpp"

namespace ptxsim {
namespace {

std::vector<uint64_t> read_sizes(Lexer& lexer) {
  std::vector<uint64_t> sizes;
  if (!lexer.peek().is('(')) return sizes;
  for (const FormalDeclaration& formal : read_formals(lexer)) sizes.push_back(formal.bytes());
  return sizes;
}

}  // namespace

std::vector<FormalDeclaration> read_formals(Lexer& lexer) {
  std::vector<FormalDeclaration> formals;
  lexer.expect('(', "before parameters");
  while (!lexer.accept(')')) {
    FormalDeclaration formal;
    if (lexer.accept_word("param")) {
      formal.variable = read_parameter(lexer);
    } else if (lexer.accept_word("reg")) {
      formal.is_register = true;
      formal.reg = read_register_parameter(lexer);
    } else {
      lexer.unexpected("'.param', '.reg' or ')'");
    }
    formals.push_back(std::move(formal));
    if (!lexer.accept(',') && !lexer.peek().is(')')) lexer.unexpected("',' or ')'");
  }
  return formals;
}

Prototype read_call_prototype(Lexer& lexer) {
  Prototype prototype;
  prototype.result_bytes = read_sizes(lexer);
  lexer.expect_kind(Token::Kind::kIdentifier, "'_' or a name");
  prototype.param_bytes = read_sizes(lexer);
  while (lexer.peek().kind == Token::Kind::kDotWord) {  // .noreturn, .abi_preserve 8
    lexer.take();
    if (starts_constant(lexer.peek())) read_integer(lexer);
  }
  lexer.expect(';', "after .callprototype");
  return prototype;
}

}  // namespace ptxsim
