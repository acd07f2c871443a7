#include "parse/lexer.hpp"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "ptxsim/error.hpp"

namespace ptxsim {
namespace {

// The C locale's classes, for bytes of any value.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
bool is_identifier(char c) { return is_word(c) || c == '$'; }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr size_t kMaxShown = 60;
  return text.size() <= kMaxShown ? fmt::format("'{}'", text)
                                  : fmt::format("'{}...'", text.substr(0, kMaxShown));
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kEnd:
      return "the end of the text";
    case Token::Kind::kString:
      return "a string";
    case Token::Kind::kDotWord:
      return in_quotes(fmt::format(".{}", token.text));
    default:
      return in_quotes(token.text);
  }
}

Lexer::Lexer(std::string_view text, std::string_view name)
    : name_(name), at_(text.data()), end_(text.data() + text.size()), line_begin_(text.data()) {
  advance();
}

Token Lexer::take() {
  Token taken = token_;
  advance();
  return taken;
}

bool Lexer::accept(char punctuation) {
  if (!token_.is(punctuation)) return false;
  advance();
  return true;
}

bool Lexer::accept_word(std::string_view word) {
  if (!token_.is_word(word)) return false;
  advance();
  return true;
}

void Lexer::expect(char punctuation, std::string_view where) {
  if (!accept(punctuation)) unexpected(fmt::format("'{}' {}", punctuation, where));
}

Token Lexer::expect_kind(Token::Kind kind, std::string_view what) {
  if (token_.kind != kind) unexpected(what);
  return take();
}

void Lexer::skip_scope() {
  const Token open = token_;
  if (!open.is('{')) unexpected("'{' at the start of a scope");
  for (uint64_t depth = 1; depth > 0;) {
    skip_blanks();
    if (at_ == end_) fail(open, "'{' without its '}'");
    if (*at_ == '"') {
      token_ = {Token::Kind::kEnd, {}, line_, static_cast<int>(at_ - line_begin_) + 1};
      read_string();
      continue;
    }
    if (*at_ == '{') ++depth;
    if (*at_ == '}') --depth;
    ++at_;
  }
  advance();
}

void Lexer::fail(const Token& at, std::string message) const {
  throw Fault(
      Error{ErrorKind::kInput, std::move(message), Place{name_, at.line, at.column, {}, 0}});
}

void Lexer::unexpected(std::string_view wanted) const {
  fail(token_, fmt::format("expected {}, found {}", wanted, describe(token_)));
}

void Lexer::set(Token::Kind kind, const char* end) {
  token_.kind = kind;
  token_.text = std::string_view(at_, static_cast<size_t>(end - at_));
  at_ = end;
}

void Lexer::skip_blanks() {
  while (at_ != end_) {
    if (*at_ == '\n') {
      ++line_;
      line_begin_ = ++at_;
    } else if (is_blank(*at_)) {
      ++at_;
    } else if (*at_ == '/' && end_ - at_ > 1 && at_[1] == '/') {
      while (at_ != end_ && *at_ != '\n') ++at_;
    } else if (*at_ == '/' && end_ - at_ > 1 && at_[1] == '*') {
      Token comment{Token::Kind::kEnd, {}, line_, static_cast<int>(at_ - line_begin_) + 1};
      at_ += 2;
      while (end_ - at_ > 1 && !(at_[0] == '*' && at_[1] == '/')) {
        if (*at_++ == '\n') {
          ++line_;
          line_begin_ = at_;
        }
      }
      if (end_ - at_ < 2) fail(comment, "comment without an end: expected '*/'");
      at_ += 2;
    } else {
      return;
    }
  }
}

void Lexer::read_number() {
  const bool has_prefix = *at_ == '0' && end_ - at_ > 1 && is_letter(at_[1]);  // 0x 0b 0f 0d
  const char* p = at_ + 1;
  while (p != end_ && (is_word(*p) || *p == '.')) {
    const bool is_exponent = !has_prefix && (*p == 'e' || *p == 'E');
    ++p;
    if (is_exponent && p != end_ && (*p == '+' || *p == '-')) ++p;
  }
  set(Token::Kind::kNumber, p);
}

void Lexer::read_dot_word() {
  ++at_;
  const char* p = at_;
  while (p != end_) {
    if (is_word(*p)) {
      ++p;
    } else if (*p == ':' && end_ - p > 2 && p != at_ && p[1] == ':' && is_word(p[2])) {
      p += 2;
    } else {
      break;
    }
  }
  if (p == at_) fail(token_, "expected a word after '.'");
  set(Token::Kind::kDotWord, p);
}

void Lexer::read_string() {
  ++at_;
  const char* p = at_;
  while (p != end_ && *p != '"' && *p != '\n')
    p += (*p == '\\' && end_ - p > 1 && p[1] != '\n') ? 2 : 1;
  if (p == end_ || *p != '"') fail(token_, "string without an end");
  set(Token::Kind::kString, p);
  ++at_;
}

void Lexer::advance() {
  skip_blanks();
  token_ = {Token::Kind::kEnd, {}, line_, static_cast<int>(at_ - line_begin_) + 1};
  if (at_ == end_) return;
  const char c = *at_;
  if (is_letter(c) || c == '_' || c == '$' || c == '%') {
    const char* p = at_ + 1;
    while (p != end_ && is_identifier(*p)) ++p;
    set(Token::Kind::kIdentifier, p);
  } else if (is_digit(c)) {
    read_number();
  } else if (c == '.') {
    read_dot_word();
  } else if (c == '"') {
    read_string();
  } else if (c > ' ' && c < 0x7f) {
    set(Token::Kind::kPunctuation, at_ + 1);
  } else {
    fail(token_, fmt::format("byte 0x{:02x} has no place in PTX",
                             static_cast<unsigned>(static_cast<unsigned char>(c))));
  }
}

}  // namespace ptxsim
