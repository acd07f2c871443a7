#include "parse/literal.hpp"

#include <bit>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace ptxsim {
namespace {

constexpr uint64_t kWarpSizeConstant = 32;  // WARP_SZ

template <class T, class... Format>
bool read_all(std::string_view text, T& value, Format... format) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, format...);
  return error == std::errc() && stop == end && !text.empty();
}

// 0fXXXXXXXX and 0dXXXXXXXXXXXXXXXX: the bits of a float and of a double.
Constant pattern(const Lexer& lexer, const Token& token, uint8_t bytes) {
  Constant constant{true, bytes, 0};
  const std::string_view digits = token.text.substr(2);
  if (digits.size() != size_t{2} * bytes || !read_all(digits, constant.bits, 16)) {
    lexer.fail(token, fmt::format("{}: expected {} hexadecimal digits after '{}'",
                                  in_quotes(token.text), 2 * bytes, token.text.substr(0, 2)));
  }
  return constant;
}

Constant decimal_float(const Lexer& lexer, const Token& token) {
  double value = 0;
  if (!read_all(token.text, value)) {
    lexer.fail(token, fmt::format("{} is no number that a double can hold", in_quotes(token.text)));
  }
  return {true, 8, std::bit_cast<uint64_t>(value)};
}

Constant integer(const Lexer& lexer, const Token& token) {
  std::string_view digits = token.text;
  if (digits.back() == 'U') digits.remove_suffix(1);
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const char kind = digits[1];
    base = kind == 'x' || kind == 'X' ? 16 : kind == 'b' || kind == 'B' ? 2 : 8;
    digits.remove_prefix(base == 8 ? 1 : 2);
  }
  Constant constant;
  if (!read_all(digits, constant.bits, base)) {
    lexer.fail(token, fmt::format("{} is no integer of at most 64 bits", in_quotes(token.text)));
  }
  return constant;
}

Constant number(const Lexer& lexer, const Token& token) {
  const std::string_view text = token.text;
  if (text.size() > 1 && text[0] == '0') {
    if (text[1] == 'f' || text[1] == 'F') return pattern(lexer, token, 4);
    if (text[1] == 'd' || text[1] == 'D') return pattern(lexer, token, 8);
    if (text[1] == 'x' || text[1] == 'X') return integer(lexer, token);
  }
  if (text.find_first_of(".eE") != std::string_view::npos) return decimal_float(lexer, token);
  return integer(lexer, token);
}

void apply(const Lexer& lexer, const Token& op, Constant& constant) {
  if (constant.is_float && !op.is('-') && !op.is('+')) {
    lexer.fail(op, fmt::format("'{}' cannot be applied to a floating-point number", op.text));
  }
  if (op.is('-') && constant.is_float) {
    constant.bits ^= uint64_t{1} << (8 * constant.float_bytes - 1);
  } else if (op.is('-')) {
    constant.bits = 0 - constant.bits;
  } else if (op.is('~')) {
    constant.bits = ~constant.bits;
  } else if (op.is('!')) {
    constant.bits = constant.bits == 0 ? 1 : 0;
  }
}

bool is_unary(const Token& token) {
  return token.is('-') || token.is('+') || token.is('~') || token.is('!');
}

Constant read_term(Lexer& lexer) {
  constexpr int kMaxUnary = 8;  // "-(-x)" is already rare
  Token ops[kMaxUnary];
  int num_ops = 0;
  while (is_unary(lexer.peek())) {
    if (num_ops == kMaxUnary) {
      lexer.fail(lexer.peek(), fmt::format("more than {} signs before a number", kMaxUnary));
    }
    ops[num_ops++] = lexer.take();
  }
  Constant constant;
  if (lexer.peek().kind == Token::Kind::kIdentifier && lexer.peek().text == "WARP_SZ") {
    lexer.take();
    constant.bits = kWarpSizeConstant;
  } else {
    const Token token = lexer.expect_kind(Token::Kind::kNumber, "a number");
    constant = number(lexer, token);
  }
  while (num_ops > 0) apply(lexer, ops[--num_ops], constant);
  return constant;
}

}  // namespace

bool starts_constant(const Token& token) {
  return token.kind == Token::Kind::kNumber || is_unary(token) ||
         (token.kind == Token::Kind::kIdentifier && token.text == "WARP_SZ");
}

uint64_t read_offset(Lexer& lexer) {
  uint64_t sum = 0;
  while (lexer.peek().is('+') || lexer.peek().is('-')) {
    const bool is_minus = lexer.take().is('-');
    const Token at = lexer.peek();
    const Constant term = read_term(lexer);
    if (term.is_float) lexer.fail(at, "a floating-point number cannot be added here");
    sum += is_minus ? 0 - term.bits : term.bits;
  }
  return sum;
}

Constant read_constant(Lexer& lexer) {
  Constant constant = read_term(lexer);
  if (!constant.is_float) constant.bits += read_offset(lexer);
  return constant;
}

uint64_t read_integer(Lexer& lexer) {
  const Token at = lexer.peek();
  const Constant constant = read_constant(lexer);
  if (constant.is_float) lexer.fail(at, "expected an integer, found a floating-point number");
  return constant.bits;
}

}  // namespace ptxsim
