// PTX text to a Module (PTX ISA 9.0, "Syntax").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptxsim/error.hpp"
#include "ptxsim/ir/module.hpp"

namespace ptxsim {

struct ParseLimits {
  uint64_t text_bytes = uint64_t{256} << 20;
  uint32_t registers = 1u << 20;  // of all entries together
  uint64_t initial_bytes =
      uint64_t{64} << 20;  // initial values of variables, once for each entry that names one
};

// Accepts PTX versions 7.0 to 9.x of targets sm_80 .. sm_121 (a and f forms included), 64-bit
// addresses. Errors (kInput) name line and column: malformed text, unknown directive, undeclared or
// doubly declared name, unknown label, unsupported version or target. Opcodes are not looked at
// here: decode() does.
Result<Module> parse(std::string_view text, std::string name, const ParseLimits& limits = {});

// The same, but of the entries' bodies only that of `entry` is read, which costs a tenth of the
// time where a text has many; those of the others are passed over (Entry::is_read). A name that the
// text does not have reads none. A text that defines functions is read whole: which of them a
// pointer may reach is known from all bodies together.
Result<Module> parse_entry(std::string_view text, std::string name, std::string_view entry,
                           const ParseLimits& limits = {});

}  // namespace ptxsim
