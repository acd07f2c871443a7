// Operands of statements (PTX ISA 9.0, "Instruction Operands").
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "parse/entry_builder.hpp"
#include "parse/lexer.hpp"
#include "ptxsim/ir/module.hpp"

namespace ptxsim {

class OperandReader {
 public:
  OperandReader(Lexer& lexer, EntryBuilder& builder) : lexer_(lexer), builder_(builder) {}

  // All operands of a statement, up to its ';', which is left. `statement` is the statement's
  // index, `root` its opcode: the targets of branches are labels even where a variable has that
  // name.
  std::vector<Operand> read_all(uint32_t statement, std::string_view root);

 private:
  enum class Names : uint8_t { kKnown, kLabelAllowed, kLabelOnly };
  Operand read_operand(int depth, Names names);  // with "|" pairs
  Operand read_single(int depth, Names names);
  Operand read_name(Names names);
  Operand read_negated();
  Operand read_minus();
  Operand read_address(int depth);
  Operand read_list(int depth, char close);

  Lexer& lexer_;
  EntryBuilder& builder_;
  bool has_selectors_ =
      false;                   // the statement is a video instruction: registers with .b0, .h10 ...
  bool may_be_minus_ = false;  // vmad: -a
  Token label_;  // the name in the operand last read that is to be a label; empty text: none
};

}  // namespace ptxsim
