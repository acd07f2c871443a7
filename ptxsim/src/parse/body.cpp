#include "parse/body.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "parse/formals.hpp"
#include "parse/literal.hpp"
#include "parse/operand.hpp"

namespace ptxsim {
namespace {

// The statement as written: blanks and comments between tokens become one space.
std::string squeezed(const char* begin, const char* end) {
  std::string text;
  text.reserve(static_cast<size_t>(end - begin));
  bool pending = false;
  for (const char* p = begin; p != end;) {
    if (*p == ' ' || (*p >= '\t' && *p <= '\r')) {
      pending = true;
      ++p;
    } else if (*p == '/' && end - p > 1 && p[1] == '/') {
      pending = true;
      while (p != end && *p != '\n') ++p;
    } else if (*p == '/' && end - p > 1 && p[1] == '*') {
      pending = true;
      for (p += 2; !(p[-1] == '/' && p[-2] == '*');) ++p;  // the lexer has seen its end
    } else {
      if (pending && !text.empty()) text += ' ';
      pending = false;
      text += *p++;
    }
  }
  return text;
}

int read_int(Lexer& lexer) {
  constexpr uint64_t kMost = 0x7fffffff;
  const Token at = lexer.peek();
  const uint64_t value = read_integer(lexer);
  if (value > kMost) lexer.fail(at, fmt::format("{}: at most {}", in_quotes(at.text), kMost));
  return static_cast<int>(value);
}

bool ends_thread(const Statement& statement) {
  return !statement.guarded && (statement.root == "ret" || statement.root == "exit");
}

}  // namespace

int LocationReader::find_or_add(const Key& key) {
  const auto [found, is_first] =
      latest_.try_emplace(key, static_cast<int>(module_.locations.size()));
  if (is_first) {
    module_.locations.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), -1});
  }
  return found->second;
}

int LocationReader::read(Lexer& lexer) {
  Location location;
  location.file = read_int(lexer);
  location.line = read_int(lexer);
  location.column = read_int(lexer);
  while (lexer.accept(',')) {
    const Token attribute =
        lexer.expect_kind(Token::Kind::kIdentifier, "function_name or inlined_at");
    if (attribute.text == "function_name") {
      lexer.expect_kind(Token::Kind::kIdentifier, "a label");
      read_offset(lexer);
    } else if (attribute.text == "inlined_at") {
      const int file = read_int(lexer);
      const int line = read_int(lexer);
      location.inlined_at = find_or_add({file, line, read_int(lexer)});
    } else {
      lexer.fail(attribute, fmt::format("unknown attribute {} of .loc", in_quotes(attribute.text)));
    }
  }
  const auto index = static_cast<int>(module_.locations.size());
  module_.locations.push_back(location);
  latest_[{location.file, location.line, location.column}] = index;
  return index;
}

void BodyReader::read() {
  while (true) {
    const Token token = lexer_.peek();
    if (token.kind == Token::Kind::kDotWord) {
      read_directive();
    } else if (token.is('@')) {
      read_guarded();
    } else if (token.kind == Token::Kind::kIdentifier) {
      lexer_.take();
      if (lexer_.accept(':')) {
        read_labelled(token);
      } else {
        read_statement(token, {}, token.text.data());
      }
    } else if (token.is('{')) {
      builder_.scopes().open(lexer_.take());
    } else if (token.is('}') && builder_.scopes().has_inner()) {
      lexer_.take();
      builder_.scopes().close();
    } else if (token.is('}')) {
      end_with_ret(token);
      builder_.scopes().finish(builder_.entry().statements);
      lexer_.take();
      return;
    } else if (!lexer_.accept(';')) {  // an empty statement
      lexer_.unexpected("a statement");
    }
  }
}

void BodyReader::read_directive() {
  const Token directive = lexer_.take();
  const std::string_view name = directive.text;
  if (name == "reg") {
    for (const RegisterDeclaration& declaration :
         read_registers(lexer_, builder_.registers_left())) {
      builder_.add_registers(declaration);
    }
  } else if (name == "loc") {
    loc_ = locations_.read(lexer_);
  } else if (name == "pragma") {
    do
      not_unrolled_ |= lexer_.expect_kind(Token::Kind::kString, "a string").text.find("nounroll") !=
                       std::string_view::npos;
    while (lexer_.accept(','));
    lexer_.expect(';', "after .pragma");
  } else if (name == "local" || name == "shared" || name == "global" || name == "const" ||
             name == "param") {
    read_variables(name);
  } else {
    lexer_.fail(directive,
                fmt::format("unknown directive {} among statements", describe(directive)));
  }
}

void BodyReader::read_variables(std::string_view space) {
  if (space == "param") {
    builder_.add_variable(read_parameter(lexer_));
    lexer_.expect(';', "after a declaration");
    return;
  }
  const Space kind = space == "local"    ? Space::kLocal
                     : space == "shared" ? Space::kShared
                     : space == "global" ? Space::kGlobal
                                         : Space::kConst;
  for (const VariableDeclaration& declaration :
       ptxsim::read_variables(lexer_, kind, false, builder_.initial_bytes_left())) {
    builder_.add_variable(declaration);
  }
}

void BodyReader::read_labelled(const Token& name) {
  if (lexer_.accept_word("branchtargets")) {
    read_target_list(name);
  } else if (lexer_.accept_word("callprototype")) {
    declare_prototype(name, read_call_prototype(lexer_));
  } else if (lexer_.accept_word("calltargets")) {
    read_call_targets(name);
  } else {
    builder_.scopes().declare_label(
        name, {Label::Kind::kStatement, static_cast<uint32_t>(builder_.entry().statements.size())});
    label_at_end_ = true;
  }
}

void BodyReader::read_target_list(const Token& name) {
  std::vector<Token> targets;
  do {
    targets.push_back(lexer_.expect_kind(Token::Kind::kIdentifier, "a label"));
  } while (lexer_.accept(','));
  lexer_.expect(';', "after .branchtargets");
  builder_.scopes().declare_label(
      name, {Label::Kind::kTargets, builder_.scopes().add_target_list(targets)});
}

void BodyReader::read_call_targets(const Token& name) {
  Prototype prototype;
  prototype.is_target_list = true;
  do {
    const Token target = lexer_.expect_kind(Token::Kind::kIdentifier, "a function");
    const Operand found = builder_.find(target);
    if (found.kind != Operand::Kind::kFunction)
      lexer_.fail(target, fmt::format("{} is no function", in_quotes(target.text)));
    prototype.targets.push_back(found.symbol);
  } while (lexer_.accept(','));
  lexer_.expect(';', "after .calltargets");
  declare_prototype(name, std::move(prototype));
}

void BodyReader::declare_prototype(const Token& name, Prototype prototype) {
  std::vector<Prototype>& prototypes = builder_.entry().prototypes;
  builder_.scopes().declare_label(
      name, {Label::Kind::kPrototype, static_cast<uint32_t>(prototypes.size())});
  prototypes.push_back(std::move(prototype));
}

void BodyReader::read_guarded() {
  const Token at = lexer_.take();
  Statement statement;
  statement.guarded = true;
  statement.guard_negated = lexer_.accept('!');
  const Token name = lexer_.expect_kind(Token::Kind::kIdentifier, "a predicate after '@'");
  const Operand guard = builder_.find(name);
  if (guard.kind != Operand::Kind::kRegister ||
      builder_.entry().registers[guard.reg].type != Type::kPred) {
    lexer_.fail(name, fmt::format("guard {} is not declared as a predicate register",
                                  in_quotes(name.text)));
  }
  statement.guard = guard.reg;
  const Token root = lexer_.expect_kind(Token::Kind::kIdentifier, "an instruction after the guard");
  read_statement(root, std::move(statement), at.text.data());
}

void BodyReader::read_statement(const Token& root, Statement statement, const char* begin) {
  statement.root = std::string(root.text);
  statement.line = root.line;
  statement.loc = loc_;
  statement.not_unrolled = std::exchange(not_unrolled_, false);
  while (lexer_.peek().kind == Token::Kind::kDotWord) {
    statement.modifiers.emplace_back(lexer_.take().text);
  }
  std::vector<Statement>& statements = builder_.entry().statements;
  statement.operands =
      OperandReader(lexer_, builder_).read_all(static_cast<uint32_t>(statements.size()), root.text);
  const std::string_view last = lexer_.peek().text;
  lexer_.expect(';', "after an instruction");
  statement.text = squeezed(begin, last.data() + last.size());
  statements.push_back(std::move(statement));
  label_at_end_ = false;
}

// A thread that reaches the end of the body returns (PTX ISA, "ret"); nvcc leaves it out after a
// trap.
void BodyReader::end_with_ret(const Token& close) {
  std::vector<Statement>& statements = builder_.entry().statements;
  if (!statements.empty() && !label_at_end_ && ends_thread(statements.back())) return;
  Statement statement;
  statement.root = "ret";
  statement.text = "ret;";
  statement.line = close.line;
  statement.loc = loc_;
  statement.not_unrolled = std::exchange(not_unrolled_, false);
  statements.push_back(std::move(statement));
}

}  // namespace ptxsim
