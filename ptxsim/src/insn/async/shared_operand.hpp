// Operands that the asynchronous families share: addresses of shared memory in any of the forms
// that PTX allows.
#pragma once

#include <cstdint>

#include "machine/execution.hpp"
#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

enum class SharedForm : uint8_t { kCta, kCluster, kGeneric };

// [base + offset] that must lie in shared memory.
struct SharedOperand {
  Slot base;
  uint8_t base_bytes = 4;
  SharedForm form = SharedForm::kCta;
  int64_t offset = 0;
};

// Takes .shared, .shared::cta, .shared::cluster or none (generic) from the modifiers.
SharedForm take_shared_form(Decode& d);
SharedOperand shared_operand(Decode& d, size_t index, SharedForm form);

uint64_t raw_address(const Execution& x, Slot base, unsigned base_bytes, int64_t offset, int lane);
// As a shared::cluster address: rank of the CTA above, offset below.
uint64_t shared_address_of(const Execution& x, const SharedOperand& operand, int lane);
// Range, alignment and, for .shared::cta, ownership are checked.
SharedAt locate(const Execution& x, const SharedOperand& operand, int lane, uint64_t bytes,
                uint32_t alignment);

// [base + offset] in global memory; generic addresses are the same numbers.
struct GlobalOperand {
  Slot base;
  uint8_t base_bytes = 8;
  int64_t offset = 0;
};
GlobalOperand global_operand(Decode& d, size_t index);
uint64_t global_address_of(const Execution& x, const GlobalOperand& operand, int lane);

}  // namespace ptxsim
