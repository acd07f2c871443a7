// Numbers and constant expressions (PTX ISA 9.0, "Constants").
#pragma once

#include <cstdint>

#include "parse/lexer.hpp"

namespace ptxsim {

struct Constant {
  bool is_float = false;
  uint8_t float_bytes = 0;  // 4: bits is a float's pattern (0f...); 8: a double's
  uint64_t bits = 0;        // of integers: 64 bits, two's complement
};

// [-~!+]* number, and for integers further terms after '+' and '-'. The next token must start one.
Constant read_constant(Lexer& lexer);
bool starts_constant(const Token& token);

uint64_t read_integer(Lexer& lexer);  // a constant that must be an integer

// {("+" | "-") constant}: what may follow an address base or a symbol; 0 when nothing does.
uint64_t read_offset(Lexer& lexer);

}  // namespace ptxsim
