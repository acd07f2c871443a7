#include "insn/async/shared_operand.hpp"

#include <fmt/format.h>

namespace ptxsim {

SharedForm take_shared_form(Decode& d) {
  switch (d.modifiers().take_one_of({"shared", "shared::cta", "shared::cluster"})) {
    case 0:
    case 1:
      return SharedForm::kCta;
    case 2:
      return SharedForm::kCluster;
    default:
      return SharedForm::kGeneric;
  }
}

SharedOperand shared_operand(Decode& d, size_t index, SharedForm form) {
  const Decode::Address address = d.address(index);
  if (!address.more.empty()) d.fail("only an address and an offset can stand in these brackets");
  // The number of a shared variable is its address in the shared window, not a generic one.
  if (address.variable != nullptr) {
    if (address.variable->space != Space::kShared)
      d.fail("'" + address.variable->name + "' is not in shared memory");
    if (form == SharedForm::kGeneric) form = SharedForm::kCta;
  }
  if (form == SharedForm::kGeneric && address.base_bytes != 8)
    d.fail("a generic address must have 64 bits; add the state space to use a 32-bit one");
  return {address.base, static_cast<uint8_t>(address.base_bytes), form, address.offset};
}

uint64_t raw_address(const Execution& x, Slot base, unsigned base_bytes, int64_t offset, int lane) {
  if (base_bytes == 4)
    return static_cast<uint32_t>(x.source<uint32_t>(base)[lane] + static_cast<uint32_t>(offset));
  return x.source<uint64_t>(base)[lane] + static_cast<uint64_t>(offset);
}

uint64_t shared_address_of(const Execution& x, const SharedOperand& operand, int lane) {
  const uint64_t address = raw_address(x, operand.base, operand.base_bytes, operand.offset, lane);
  return operand.form == SharedForm::kGeneric ? shared_from_generic(x, address, lane)
                                              : address & 0xffffffffu;
}

SharedAt locate(const Execution& x, const SharedOperand& operand, int lane, uint64_t bytes,
                uint32_t alignment) {
  return resolve_shared(x, shared_address_of(x, operand, lane), bytes, alignment,
                        operand.form == SharedForm::kCta, lane);
}

GlobalOperand global_operand(Decode& d, size_t index) {
  const Decode::Address address = d.address(index);
  if (!address.more.empty()) d.fail("only an address and an offset can stand in these brackets");
  if (address.variable != nullptr && address.variable->space != Space::kGlobal)
    d.fail("'" + address.variable->name + "' is not in global memory");
  if (address.base_bytes != 8) d.fail("an address of global memory must have 64 bits");
  return {address.base, 8, address.offset};
}

uint64_t global_address_of(const Execution& x, const GlobalOperand& operand, int lane) {
  return raw_address(x, operand.base, operand.base_bytes, operand.offset, lane);
}

}  // namespace ptxsim
