// What the memory instructions share: operands of an access, and counting of global sectors.
// Each decode_* below is one root of decoders_memory().
#pragma once

#include <array>
#include <cstdint>

#include "insn/memory/memory_order.hpp"
#include "machine/memory/addresses.hpp"
#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

inline constexpr uint32_t kMaxVector = 8;     // elements of .v8
inline constexpr uint32_t kSectorBytes = 32;  // unit of traffic between L2 and an SM

// Copies one element between memory and lane `lane` of a register.
using LoadElement = void (*)(const std::byte* from, std::byte* lanes, int lane);
using StoreElement = void (*)(const std::byte* lanes, int lane, std::byte* to);

struct AddressOperand {
  AddressSpace space;
  Slot base;
  unsigned base_bytes = 8;
  int64_t offset = 0;
  uint64_t at(const Execution& x, int lane) const {
    return static_cast<uint64_t>(offset) +
           (base_bytes == 8 ? x.source<uint64_t>(base)[lane] : x.source<uint32_t>(base)[lane]);
  }
};

struct AccessDetail final : Detail {
  AddressOperand address;
  MemoryOrder order = MemoryOrder::kWeak;
  Scope scope = Scope::kNone;
  bool non_coherent = false;
  bool needs_global = false;  // st.async.release by a generic address
  Type type = Type::kNone;    // of an element in memory
  uint32_t element_bytes = 0;
  uint32_t count = 0;
  uint32_t bytes() const { return element_bytes * count; }
  std::array<Slot, kMaxVector> elements{};
  LoadElement load = nullptr;
  StoreElement store = nullptr;
};

// 32-byte sectors of global memory that one instruction of a warp touches, each counted once: what
// Stats::l2_read_bytes and l2_write_bytes count for ld, st, atom and red.
class SectorCounter {
 public:
  // Natural alignment keeps an access within one sector.
  void add(uint64_t address) {
    const uint64_t sector = address / kSectorBytes;
    if (count_ == 0 || sectors_[count_ - 1] != sector) sectors_[count_++] = sector;
  }
  void add(const MemoryAt& at) {
    if (at.space == Space::kGlobal) add(at.offset);
  }
  uint64_t bytes();

 private:
  std::array<uint64_t, kWarpSize> sectors_;
  uint32_t count_ = 0;
};

// .const .global .local .param{::entry} .shared{::cta,::cluster}; generic when there is none.
AddressSpace take_space(Decode& d);
AddressOperand take_address(Decode& d, const Operand& operand, AddressSpace space);
uint32_t take_vector(Decode& d);  // .v2 .v4 .v8; 1 without
// .L2::cache_hint and its operand, the last one, at `index`; it changes no result. Other operands
// than the `index` first ones are an error.
void take_cache_policy(Decode& d, size_t index);

// Takes .async, and refuses the scopes that st.async.release and red.async.release do not have.
// Both are done at once: nothing tells the thread when they are, and it may happen before its next
// statement.
void check_async_release(Decode& d, Scope scope);

void decode_ld(Decode& d);
void decode_ldu(Decode& d);
void decode_st(Decode& d);  // also .async and .bulk; st.async.release is a store that does not wait
void decode_st_async(Decode& d);
void decode_st_bulk(Decode& d);
void decode_atom(Decode& d);
void decode_red(Decode& d);  // also .async
void decode_red_async(Decode& d);
void decode_prefetch(Decode& d);
void decode_prefetchu(Decode& d);
void decode_discard(Decode& d);
void decode_applypriority(Decode& d);
void decode_createpolicy(Decode& d);

}  // namespace ptxsim
