// From an address of any state space to the bytes it names, with the checks that every access has:
// the window, the range, natural alignment, read-only spaces, unwritten bytes (of shared memory),
// and the 8 bytes of live mbarriers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "machine/execution.hpp"
#include "ptxsim/ir/types.hpp"

namespace ptxsim {

// What an address means once the windows of generic addressing are resolved.
struct MemoryAt {
  Space space = Space::kGlobal;  // never kGeneric
  Cta* owner = nullptr;          // shared memory: of which CTA
  // kGlobal: the address. kShared: offset in the owner's memory. kLocal: in the lane's frame.
  // kParam: in the parameter blob. kConst: in the constant bank.
  uint64_t offset = 0;
  // What observers of global memory want to know besides (PTX ISA, "Memory Consistency Model").
  Scope scope = Scope::kNone;        // of a strong access
  uint8_t element_bytes = 0;         // of a strong access: strong ones must be of the same bytes
  bool non_coherent = false;         // ld.global.nc
  const std::byte* value = nullptr;  // that an ordinary store is about to write, when it is known
  // Where given, unwritten bytes are noted here, a bit each, and are no Fault.
  uint32_t* unwritten = nullptr;
};

// How an instruction names memory. `own_shared_only`: .shared and .shared::cta.
struct AddressSpace {
  Space space = Space::kGeneric;
  bool own_shared_only = true;
};

// Resolves and checks range and alignment; a Fault otherwise. `bytes` > 0.
MemoryAt locate(const Execution& x, AddressSpace space, uint64_t address, uint32_t bytes,
                uint32_t alignment, int lane);

// The bytes themselves, for one lane's access. `kind` is what observers are told: kAtomic for
// strong operations, which do not race with each other.
const std::byte* bytes_to_read(Execution& x, const MemoryAt& at, uint32_t bytes, AccessKind kind,
                               int lane);
std::byte* bytes_to_write(Execution& x, const MemoryAt& at, uint32_t bytes, AccessKind kind,
                          int lane);
// Read, then written: atomics. The bytes must have been written before, unless `at` takes note of
// those that were not.
std::byte* bytes_to_update(Execution& x, const MemoryAt& at, uint32_t bytes, int lane);

// Marks bytes that were just stored as holding undefined values: `unwritten`, a bit each. Local
// memory has no such marks.
void forget_bytes(Execution& x, const MemoryAt& at, uint32_t unwritten);
// Says, for messages, what was read: `bytes` bytes, of which those in `unwritten` are unwritten.
std::string text_of_unwritten(const Execution& x, const MemoryAt& at, uint32_t bytes,
                              uint32_t unwritten);

// The same, with the statement that reads.
std::string text_of_read(const Execution& x, const MemoryAt& at, uint32_t bytes,
                         uint32_t unwritten);

// An ordinary access to a live mbarrier is a Fault (R10).
void refuse_live_mbarrier(const Execution& x, const Cta& owner, uint32_t offset, uint32_t bytes,
                          int lane);

}  // namespace ptxsim
