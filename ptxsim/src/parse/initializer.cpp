#include "parse/initializer.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "parse/literal.hpp"

namespace ptxsim {
namespace {

class Reader {
 public:
  Reader(Lexer& lexer, VariableDeclaration& declaration, const std::vector<uint64_t>& dimensions)
      : lexer_(lexer),
        declaration_(declaration),
        dimensions_(dimensions),
        element_bytes_(bytes_of(declaration.variable.type)) {}

  void read() {
    if (dimensions_.empty()) {
      read_element(0);
    } else {
      const Token at = lexer_.peek();
      if (!lexer_.accept('{')) lexer_.fail(at, "the initial value of an array is a list in braces");
      read_list(0, 0, declaration_.variable.bytes / element_bytes_);
    }
  }

 private:
  // Elements [begin, begin + count), a subarray at depth `level`; its '{' was read. The depth is
  // that of the array.
  void read_list(size_t level, uint64_t begin, uint64_t count) {
    const uint64_t below = count / dimensions_[level];  // elements of one subarray
    uint64_t at = begin;
    while (!lexer_.accept('}')) {
      const Token token = lexer_.peek();
      if (at >= begin + count)
        lexer_.fail(token, fmt::format("more than {} initial values", count));
      if (lexer_.accept('{')) {
        if (level + 1 >= dimensions_.size() || (at - begin) % below != 0) {
          lexer_.fail(token, "braces that match no dimension of the array");
        }
        read_list(level + 1, at, below);
        at += below;
      } else {
        read_element(at++);
      }
      if (!lexer_.accept(',') && !lexer_.peek().is('}')) lexer_.unexpected("',' or '}'");
    }
  }

  void read_element(uint64_t index) {
    const Token at = lexer_.peek();
    if (starts_constant(at)) {
      store(at, read_constant(lexer_), index);
    } else if (at.kind == Token::Kind::kIdentifier) {
      read_address(index);
    } else {
      lexer_.unexpected("an initial value");
    }
  }

  // name, generic(name), 0xff(name) would be a mask; each may have an offset. Addresses of .global
  // and .const variables are generic ones in this interpreter.
  void read_address(uint64_t index) {
    Token name = lexer_.take();
    if (name.text == "generic" && lexer_.accept('(')) {
      name = lexer_.expect_kind(Token::Kind::kIdentifier, "the name of a variable");
      lexer_.expect(')', "after the name of a variable");
    }
    const uint64_t offset = read_offset(lexer_);
    declaration_.addresses.push_back({name, index * element_bytes_, offset});
    if (element_bytes_ != 8)
      lexer_.fail(name, fmt::format("the address of {} as the initial value of .{}; needs 64 bits",
                                    in_quotes(name.text), name_of(declaration_.variable.type)));
    declaration_.unsupported =
        fmt::format("its initial value in line {} is the address of {}, which is not supported",
                    name.line, in_quotes(name.text));
  }

  void store(const Token& at, const Constant& constant, uint64_t index) {
    uint64_t bits = constant.bits;
    const Type type = declaration_.variable.type;
    if (type == Type::kF32 && constant.float_bytes == 8) {
      bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    } else if (type == Type::kF64 && constant.float_bytes == 4) {
      bits = std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(bits))});
    } else if (constant.is_float && constant.float_bytes != element_bytes_) {
      lexer_.fail(at, fmt::format("a floating-point value for .{}: write its bits", name_of(type)));
    } else if (!constant.is_float && (type == Type::kF32 || type == Type::kF64)) {
      lexer_.fail(at, fmt::format("an integer as the initial value of .{}", name_of(type)));
    } else if (element_bytes_ < 8 && !fits(bits, 8 * element_bytes_)) {
      lexer_.fail(at, fmt::format("initial value {} does not fit .{}", static_cast<int64_t>(bits),
                                  name_of(type)));
    }
    // Little-endian, as the device's memory is; a .b128 is extended with zeros.
    std::vector<uint8_t>& bytes = declaration_.variable.initial;
    for (unsigned i = 0; i < element_bytes_ && i < 8; ++i) {
      bytes[index * element_bytes_ + i] = static_cast<uint8_t>(bits >> (8 * i));
    }
  }

  // As an unsigned or a signed number of `width` < 64 bits.
  static bool fits(uint64_t bits, unsigned width) {
    return bits >> width == 0 || static_cast<int64_t>(bits) >> (width - 1) == -1;
  }

  Lexer& lexer_;
  VariableDeclaration& declaration_;
  const std::vector<uint64_t>& dimensions_;
  unsigned element_bytes_;
};

}  // namespace

void read_initializer(Lexer& lexer, VariableDeclaration& declaration,
                      const std::vector<uint64_t>& dimensions, uint64_t& initial_bytes_left) {
  Variable& variable = declaration.variable;
  if (variable.bytes > initial_bytes_left) {
    lexer.fail(declaration.name,
               fmt::format("{}: {} bytes of initial values; {} are left to this module",
                           in_quotes(variable.name), variable.bytes, initial_bytes_left));
  }
  initial_bytes_left -= variable.bytes;
  variable.has_initializer = true;
  variable.initial.assign(variable.bytes, 0);
  Reader(lexer, declaration, dimensions).read();
}

}  // namespace ptxsim
