// Values that come from unwritten memory.
//
// Reading such bytes is no error by itself: the padding of a struct is copied with it, and a merge
// reads one element behind the last and does not look at it. An error is what depends on them:
// which way a branch goes, whether or where something is written, and what global memory holds.
// Until then the bits go with the values, and what is computed of them is undefined where it comes
// out different for other contents of these bits. Nothing of this exists in a warp that has read no
// such bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "machine/execution.hpp"

namespace ptxsim {

struct UndefinedValues {
  struct Value {
    std::vector<uint8_t> bits;  // as the register lies in the file: 1 where the bit is undefined
    std::string read;           // of which memory, and by which statement
  };
  std::map<uint32_t, Value> registers;  // by their place in the warp's file
};

// `lane` of the register that this statement writes holds `bytes` bytes of memory, sign-extended if
// `is_signed`, of which those in `unwritten` (a bit each) are unwritten. `read` says which.
void note_undefined(const Execution& x, Slot destination, int lane, uint32_t bytes, bool is_signed,
                    uint32_t unwritten, const std::string& read);

// The bytes, a bit each, of which not all is known; `width` is the register's.
uint32_t undefined_bytes(const Execution& x, Slot source, uint32_t width, int lane);

// A Fault where `lane` of an operand on which an address depends, or all that is stored, is
// undefined.
void refuse_undefined(const Execution& x, Slot source, int lane);

// Whether the statement executes at all depends on undefined lanes of its guard: a Fault, unless it
// only computes.
void refuse_undefined_guard(const Execution& x, const Insn& insn, uint32_t lanes);

// What a statement that only computes would have written in lanes whose guard is undefined.
void note_undefined_guard(const Execution& x, const Insn& insn, uint32_t lanes);

// Executes the statement in a warp that has such values, and follows them.
Outcome execute_with_undefined(Execution& x, const Insn& insn);

}  // namespace ptxsim
