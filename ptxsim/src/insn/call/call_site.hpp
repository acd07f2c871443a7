// Operands of `call`: what the caller passes and wants back.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/registers/call_stack.hpp"
#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

// call{.uni} [(results),] callee [, (arguments)] [, prototype]
struct CallOperands {
  const Operand* results = nullptr;  // nullptr: no list
  const Operand* callee = nullptr;
  const Operand* arguments = nullptr;
  const Operand* prototype = nullptr;
};
CallOperands take_call_operands(Decode& d);

// Bytes of the parameters and results of a function, or of whatever a prototype allows.
struct Signature {
  std::vector<uint64_t> results, params;
  friend bool operator==(const Signature&, const Signature&) = default;
};
Signature signature_of(const Module& module, uint32_t function);
Signature signature_of(const Module& module, const Prototype& prototype);
std::string to_string(const Signature& signature);  // "(4) -> (8, 16)", in bytes

// An error when the lists do not have the sizes of the signature.
void fill_call_site(Decode& d, const CallOperands& operands, const Signature& signature,
                    CallSite& site);

}  // namespace ptxsim
