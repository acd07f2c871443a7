#include "parse/declaration.hpp"

#include <bit>
#include <cstddef>

#include <fmt/format.h>

#include "parse/initializer.hpp"
#include "parse/literal.hpp"

namespace ptxsim {
namespace {

constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 38;  // 256 GiB; sums of them cannot overflow
constexpr uint32_t kMaxAlignment = 1u << 20;
constexpr size_t kMaxDimensions = 16;

// What stands before the names of one declaration.
struct Prefix {
  Type type = Type::kNone;
  uint32_t elements = 1;   // .v2, .v4, .v8
  uint32_t alignment = 0;  // 0: natural
  bool is_pointer = false;
  Space points_to = Space::kGeneric;
  uint32_t points_to_alignment = 0;
  bool is_managed = false;
};

uint32_t read_alignment(Lexer& lexer) {
  const Token at = lexer.peek();
  const uint64_t value = read_integer(lexer);
  if (!std::has_single_bit(value) || value > kMaxAlignment) {
    lexer.fail(at,
               fmt::format("alignment {} is not a power of two up to {}", value, kMaxAlignment));
  }
  return static_cast<uint32_t>(value);
}

// PTX ISA, "Kernel Parameter Attribute: .ptr". What a parameter points to; no run depends on it.
void read_pointer_attributes(Lexer& lexer, Prefix& prefix) {
  prefix.is_pointer = true;
  if (lexer.accept_word("global")) {
    prefix.points_to = Space::kGlobal;
  } else if (lexer.accept_word("const")) {
    prefix.points_to = Space::kConst;
  } else if (lexer.accept_word("shared")) {
    prefix.points_to = Space::kShared;
  } else if (lexer.accept_word("local")) {
    prefix.points_to = Space::kLocal;
  }
  if (lexer.accept_word("align")) prefix.points_to_alignment = read_alignment(lexer);
}

// .attribute(.managed), and others, which change nothing.
void read_attribute(Lexer& lexer, Prefix& prefix) {
  lexer.expect('(', "after .attribute");
  while (!lexer.peek().is(')')) {
    if (lexer.peek().kind == Token::Kind::kEnd) lexer.unexpected("')'");
    if (lexer.accept_word("managed")) {
      prefix.is_managed = true;
    } else {
      lexer.take();
    }
  }
  lexer.take();
}

bool is_storable(Type type) {
  switch (type) {
    case Type::kB8:
    case Type::kB16:
    case Type::kB32:
    case Type::kB64:
    case Type::kB128:
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kS8:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64:
    case Type::kF16:
    case Type::kF16x2:
    case Type::kBf16:
    case Type::kBf16x2:
    case Type::kF32:
    case Type::kF32x2:
    case Type::kF64:
      return true;
    default:
      return false;
  }
}

Type read_type(Lexer& lexer, std::string_view of_what) {
  const Token token =
      lexer.expect_kind(Token::Kind::kDotWord, fmt::format("a type of {}", of_what));
  const Type type = type_from_name(token.text);
  if (!is_storable(type) && type != Type::kPred) {
    lexer.fail(token, fmt::format("{} is no type of {}", describe(token), of_what));
  }
  return type;
}

Prefix read_prefix(Lexer& lexer, Space space) {
  Prefix prefix;
  while (prefix.type == Type::kNone) {
    if (lexer.accept_word("align")) {
      prefix.alignment = read_alignment(lexer);
    } else if (lexer.accept_word("attribute")) {
      read_attribute(lexer, prefix);
    } else if (lexer.accept_word("v2")) {
      prefix.elements = 2;
    } else if (lexer.accept_word("v4")) {
      prefix.elements = 4;
    } else if (lexer.accept_word("v8")) {
      prefix.elements = 8;
    } else {
      const Token at = lexer.peek();
      prefix.type = read_type(lexer, "a variable");
      if (prefix.type == Type::kPred) lexer.fail(at, ".pred is a type of registers only");
    }
  }
  if (lexer.accept_word("align")) prefix.alignment = read_alignment(lexer);
  if (space == Space::kParam && lexer.accept_word("ptr")) read_pointer_attributes(lexer, prefix);
  return prefix;
}

// {'[' [count] ']'}; the first count may be missing, which is told by is_unsized.
std::vector<uint64_t> read_dimensions(Lexer& lexer, bool& is_unsized) {
  std::vector<uint64_t> dimensions;
  uint64_t product = 1;
  while (lexer.peek().is('[')) {
    const Token at = lexer.take();
    if (dimensions.empty() && !is_unsized && lexer.accept(']')) {
      is_unsized = true;
      continue;
    }
    const uint64_t count = read_integer(lexer);
    lexer.expect(']', "after the size of an array");
    if (dimensions.size() == kMaxDimensions) {
      lexer.fail(at, fmt::format("more than {} dimensions", kMaxDimensions));
    }
    if (count > kMaxVariableBytes || (product *= count) > kMaxVariableBytes) {
      lexer.fail(at, fmt::format("array of more than {} elements", kMaxVariableBytes));
    }
    dimensions.push_back(count);
  }
  return dimensions;
}

VariableDeclaration read_declarator(Lexer& lexer, Space space, const Prefix& prefix,
                                    bool& is_unsized, std::vector<uint64_t>& dimensions) {
  VariableDeclaration result;
  result.name = lexer.expect_kind(Token::Kind::kIdentifier, "the name of a variable");
  dimensions = read_dimensions(lexer, is_unsized);
  if (prefix.elements > 1) dimensions.push_back(prefix.elements);
  Variable& variable = result.variable;
  variable.name = std::string(result.name.text);
  variable.space = space;
  variable.type = prefix.type;
  const uint32_t natural = bytes_of(prefix.type) * prefix.elements;
  variable.alignment = prefix.alignment == 0 ? natural : prefix.alignment;
  variable.is_pointer = prefix.is_pointer;
  variable.points_to = prefix.points_to;
  variable.points_to_alignment = prefix.points_to_alignment;
  variable.bytes = bytes_of(prefix.type);
  for (uint64_t count : dimensions) variable.bytes *= count;
  if (variable.bytes > kMaxVariableBytes) {
    lexer.fail(result.name,
               fmt::format("{}: more than {} bytes", in_quotes(variable.name), kMaxVariableBytes));
  }
  if (variable.bytes == 0 && !is_unsized) {
    lexer.fail(result.name, fmt::format("{}: an array of no elements", in_quotes(variable.name)));
  }
  if (is_unsized) variable.bytes = 0;
  return result;
}

}  // namespace

std::vector<VariableDeclaration> read_variables(Lexer& lexer, Space space, bool is_extern,
                                                uint64_t& initial_bytes_left) {
  const Prefix prefix = read_prefix(lexer, space);
  std::vector<VariableDeclaration> declarations;
  do {
    bool is_unsized = false;
    std::vector<uint64_t> dimensions;
    VariableDeclaration declaration = read_declarator(lexer, space, prefix, is_unsized, dimensions);
    Variable& variable = declaration.variable;
    variable.is_extern = is_extern;
    variable.is_managed = prefix.is_managed;
    if (is_unsized && !is_extern) {
      lexer.fail(declaration.name, fmt::format("{}: only an .extern array may have no size",
                                               in_quotes(variable.name)));
    }
    if (is_extern && space != Space::kShared) {
      declaration.unsupported = "it is .extern, and modules are not linked";
    }
    if (lexer.peek().is('=')) {
      if (is_extern || (space != Space::kGlobal && space != Space::kConst)) {
        lexer.fail(
            lexer.peek(),
            fmt::format("{}: only .global and .const variables of this module have initial values",
                        in_quotes(variable.name)));
      }
      lexer.take();
      read_initializer(lexer, declaration, dimensions, initial_bytes_left);
    }
    declarations.push_back(std::move(declaration));
  } while (lexer.accept(','));
  lexer.expect(';', "after a declaration");
  return declarations;
}

VariableDeclaration read_parameter(Lexer& lexer) {
  const Prefix prefix = read_prefix(lexer, Space::kParam);
  bool is_unsized = false;
  std::vector<uint64_t> dimensions;
  VariableDeclaration declaration =
      read_declarator(lexer, Space::kParam, prefix, is_unsized, dimensions);
  if (is_unsized) {
    lexer.fail(declaration.name,
               fmt::format("parameter {} has no size", in_quotes(declaration.name.text)));
  }
  return declaration;
}

RegisterDeclaration read_register_parameter(Lexer& lexer) {
  RegisterDeclaration declaration;
  const Token at = lexer.peek();
  declaration.type = read_type(lexer, "a register");
  if (declaration.type == Type::kPred) lexer.fail(at, "a parameter cannot be a predicate");
  declaration.name = lexer.expect_kind(Token::Kind::kIdentifier, "the name of a register");
  return declaration;
}

std::vector<RegisterDeclaration> read_registers(Lexer& lexer, uint32_t most) {
  const Token at = lexer.peek();
  if (at.is_word("v2") || at.is_word("v4") || at.is_word("v8")) {
    lexer.fail(at, "vector registers are not supported: declare their elements");
  }
  const Type type = read_type(lexer, "a register");
  std::vector<RegisterDeclaration> declarations;
  uint64_t total = 0;
  do {
    RegisterDeclaration declaration;
    declaration.name = lexer.expect_kind(Token::Kind::kIdentifier, "the name of a register");
    declaration.type = type;
    uint64_t count = 1;
    if (lexer.accept('<')) {
      declaration.is_range = true;
      count = read_integer(lexer);
      lexer.expect('>', "after the number of registers");
    }
    if (count > most || (total += count) > most) {
      lexer.fail(declaration.name,
                 fmt::format("{}: more registers than the {} that are left to this module",
                             in_quotes(declaration.name.text), most));
    }
    declaration.count = static_cast<uint32_t>(count);
    declarations.push_back(declaration);
  } while (lexer.accept(','));
  lexer.expect(';', "after a declaration of registers");
  return declarations;
}

}  // namespace ptxsim
