#include "parse/operand.hpp"

#include <utility>

#include <fmt/format.h>

#include "parse/literal.hpp"
#include "parse/special_register.hpp"

namespace ptxsim {
namespace {

constexpr int kMaxDepth = 4;  // [map, {x, y}] is 2 deep

Operand immediate(const Constant& constant) {
  Operand operand;
  operand.kind = Operand::Kind::kImmediate;
  operand.is_float = constant.is_float;
  operand.float_bytes = constant.float_bytes;
  operand.bits = constant.bits;
  return operand;
}

Operand special(const Lexer& lexer, const Token& name, const Token* component) {
  const SpecialName* found = find_special(name.text);
  if (found == nullptr && is_unmodelled_special(name.text))
    lexer.fail(name, fmt::format("special register {} is not modelled", in_quotes(name.text)));
  if (found == nullptr) {
    lexer.fail(name, fmt::format("{} is neither declared nor a special register that is supported",
                                 in_quotes(name.text)));
  }
  Operand operand;
  operand.kind = Operand::Kind::kSpecial;
  operand.special = found->kind;
  if (!found->has_axis) {
    if (component != nullptr) {
      lexer.fail(*component,
                 fmt::format("{} has no component {}", in_quotes(name.text), describe(*component)));
    }
    return operand;
  }
  const std::string_view axis = component == nullptr ? "" : component->text;
  if (axis != "x" && axis != "y" && axis != "z") {
    lexer.fail(component == nullptr ? name : *component,
               fmt::format("{} is used with .x, .y or .z", in_quotes(name.text)));
  }
  operand.axis = static_cast<uint8_t>(axis[0] - 'x');
  return operand;
}

}  // namespace

std::vector<Operand> OperandReader::read_all(uint32_t statement, std::string_view root) {
  std::vector<Operand> operands;
  has_selectors_ = root[0] == 'v' && root != "vote";
  may_be_minus_ = root == "vmad";
  if (lexer_.peek().is(';')) return operands;
  do {
    label_ = {};
    const bool is_target = root == "bra" || (root == "brx" && !operands.empty());
    operands.push_back(read_operand(0, is_target ? Names::kLabelOnly : Names::kLabelAllowed));
    if (!label_.text.empty()) {
      builder_.scopes().use_label(label_, statement, static_cast<uint32_t>(operands.size() - 1));
    }
  } while (lexer_.accept(','));
  return operands;
}

Operand OperandReader::read_operand(int depth, Names names) {
  Operand first = read_single(depth, names);
  if (!lexer_.accept('|')) return first;
  Operand pair;
  pair.kind = Operand::Kind::kPair;
  pair.parts.push_back(std::move(first));
  pair.parts.push_back(read_single(depth, Names::kKnown));
  return pair;
}

Operand OperandReader::read_single(int depth, Names names) {
  const Token& token = lexer_.peek();
  if (depth > kMaxDepth)
    lexer_.fail(token, fmt::format("operands nested more than {} deep", kMaxDepth));
  if (token.is('[')) return read_address(depth);
  if (token.is('{')) return read_list(depth, '}');
  if (token.is('(')) return read_list(depth, ')');
  if (token.is('!')) return read_negated();
  if (token.is('-') && may_be_minus_) return read_minus();
  if (starts_constant(token)) return immediate(read_constant(lexer_));
  if (token.kind == Token::Kind::kIdentifier) return read_name(names);
  lexer_.unexpected("an operand");
}

Operand OperandReader::read_negated() {
  const Token at = lexer_.take();
  if (lexer_.peek().kind != Token::Kind::kIdentifier) {
    const uint64_t value = read_integer(lexer_);
    return immediate({false, 0, value == 0 ? uint64_t{1} : uint64_t{0}});
  }
  Operand operand = read_name(Names::kKnown);
  if (operand.kind != Operand::Kind::kRegister) lexer_.fail(at, "'!' is for predicates");
  operand.negated = true;
  return operand;
}

// -a of a register, which is read as it is; a constant becomes its negative.
Operand OperandReader::read_minus() {
  lexer_.take();
  const bool is_name = lexer_.peek().kind == Token::Kind::kIdentifier;
  Operand operand = is_name ? read_name(Names::kKnown) : immediate(read_constant(lexer_));
  if (is_name)
    operand.negated = true;
  else
    operand.bits = 0 - operand.bits;
  return operand;
}

Operand OperandReader::read_name(Names names) {
  const Token name = lexer_.take();
  Operand operand;
  if (name.text == "_") return operand;
  if (names != Names::kLabelOnly) operand = builder_.find(name);
  if (operand.kind == Operand::Kind::kSymbol) operand.bits = read_offset(lexer_);
  if (lexer_.peek().kind == Token::Kind::kDotWord) {
    const Token component = lexer_.take();
    if (operand.kind == Operand::Kind::kRegister && has_selectors_) {
      operand.selector = component.text;
      return operand;
    }
    if (operand.kind != Operand::Kind::kSink || name.text[0] != '%') {
      lexer_.fail(component, fmt::format("{} is no vector: component {}", in_quotes(name.text),
                                         describe(component)));
    }
    return special(lexer_, name, &component);
  }
  if (operand.kind != Operand::Kind::kSink) return operand;
  if (names != Names::kLabelOnly && name.text[0] == '%') return special(lexer_, name, nullptr);
  if (names == Names::kKnown)
    lexer_.fail(name, fmt::format("{} is not declared", in_quotes(name.text)));
  label_ = name;
  return operand;
}

Operand OperandReader::read_address(int depth) {
  lexer_.take();
  const Token at = lexer_.peek();
  Operand address;
  address.kind = Operand::Kind::kAddress;
  address.parts.push_back(read_single(depth + 1, Names::kKnown));
  Operand& base = address.parts.front();
  if (base.kind == Operand::Kind::kSymbol) {
    address.bits = std::exchange(base.bits, 0);
  } else if (base.kind == Operand::Kind::kRegister && !base.negated) {
    address.bits = read_offset(lexer_);
  } else if (base.kind != Operand::Kind::kImmediate || base.is_float) {
    lexer_.fail(at, "an address starts with a register, a variable or an integer");
  }
  while (lexer_.accept(',')) address.parts.push_back(read_operand(depth + 1, Names::kKnown));
  lexer_.expect(']', "after an address");
  lexer_.accept_word(
      "unified");  // of ld: the address is the same on the host, which changes nothing
  return address;
}

Operand OperandReader::read_list(int depth, char close) {
  lexer_.take();
  Operand list;
  list.kind = Operand::Kind::kVector;
  while (!lexer_.accept(close)) {
    list.parts.push_back(read_operand(depth + 1, Names::kKnown));
    if (!lexer_.accept(',') && !lexer_.peek().is(close)) {
      lexer_.unexpected(fmt::format("',' or '{}'", close));
    }
  }
  return list;
}

}  // namespace ptxsim
