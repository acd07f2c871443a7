// Tokens of PTX text (PTX ISA 9.0, "Identifiers", "Constants", "Comments").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ptxsim {

struct Token {
  enum class Kind : uint8_t {
    kEnd,
    kIdentifier,   // also registers and labels: %r1, $L__BB0_2, _
    kNumber,       // as written; literal.hpp reads it
    kDotWord,      // ".shared::cluster" without its first dot; a directive, a modifier, a type, a
                   // component
    kString,       // without its quotes
    kPunctuation,  // one character
  };
  Kind kind = Kind::kEnd;
  std::string_view text;  // points into the PTX text
  int line = 1;           // 1-based
  int column = 1;         // 1-based, in bytes

  bool is(char punctuation) const { return kind == Kind::kPunctuation && text[0] == punctuation; }
  bool is_word(std::string_view word) const { return kind == Kind::kDotWord && text == word; }
};

// One token after the other, and the errors that name a token's place.
class Lexer {
 public:
  Lexer(std::string_view text, std::string_view name);

  const Token& peek() const { return token_; }
  Token take();
  bool accept(char punctuation);
  bool accept_word(std::string_view word);
  void expect(char punctuation, std::string_view where);
  Token expect_kind(Token::Kind kind, std::string_view what);
  // Past '{', which must come now, and its '}'. What lies between is not split into tokens.
  void skip_scope();

  [[noreturn]] void fail(const Token& at, std::string message) const;
  [[noreturn]] void unexpected(
      std::string_view wanted) const;  // "expected <wanted>, found <token>"

 private:
  void advance();
  void skip_blanks();
  void read_number();
  void read_dot_word();
  void read_string();
  void set(Token::Kind kind, const char* end);

  std::string name_;
  const char* at_;
  const char* end_;
  const char* line_begin_;
  int line_ = 1;
  Token token_;
};

// For messages: in quotes, cut when long.
std::string in_quotes(std::string_view text);
std::string describe(const Token& token);

}  // namespace ptxsim
