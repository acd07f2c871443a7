#include "insn/memory/elements.hpp"

#include <cstring>
#include <type_traits>

namespace ptxsim {
namespace {

struct Bits128 {
  uint64_t low, high;
};

// A register wider than the type: signed types are sign-extended, others zero-extended ("Operand
// Size Exceeding Instruction-Type Size").
template <class Memory, class Register>
void load_as(const std::byte* from, std::byte* lanes, int lane) {
  Memory value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::is_same_v<Memory, Register>) {
    reinterpret_cast<Register*>(lanes)[lane] = value;
  } else {
    using Signed = std::make_signed_t<Register>;
    reinterpret_cast<Register*>(lanes)[lane] =
        std::is_signed_v<Memory> ? static_cast<Register>(static_cast<Signed>(value))
                                 : static_cast<Register>(value);
  }
}

template <class Memory>
LoadElement load_into(unsigned register_bytes) {
  using Unsigned = std::make_unsigned_t<Memory>;
  if (register_bytes == sizeof(Memory)) return load_as<Unsigned, Unsigned>;
  switch (register_bytes) {
    case 2:
      return load_as<Memory, uint16_t>;
    case 4:
      return load_as<Memory, uint32_t>;
    case 8:
      return load_as<Memory, uint64_t>;
    default:
      return nullptr;
  }
}

// The low bytes of a wider register (little endian).
template <size_t kMemory, size_t kRegister>
void store_low(const std::byte* lanes, int lane, std::byte* to) {
  std::memcpy(to, lanes + kRegister * static_cast<size_t>(lane), kMemory);
}

template <size_t kMemory>
StoreElement store_from(unsigned register_bytes) {
  switch (register_bytes) {
    case 1:
      return store_low<kMemory, (kMemory <= 1 ? 1 : kMemory)>;
    case 2:
      return store_low<kMemory, (kMemory <= 2 ? 2 : kMemory)>;
    case 4:
      return store_low<kMemory, (kMemory <= 4 ? 4 : kMemory)>;
    case 8:
      return store_low<kMemory, (kMemory <= 8 ? 8 : kMemory)>;
    default:
      return store_low<kMemory, 16>;
  }
}

}  // namespace

LoadElement load_element(unsigned memory_bytes, bool is_signed, unsigned register_bytes) {
  switch (memory_bytes) {
    case 1:
      return is_signed ? load_into<int8_t>(register_bytes) : load_into<uint8_t>(register_bytes);
    case 2:
      return is_signed ? load_into<int16_t>(register_bytes) : load_into<uint16_t>(register_bytes);
    case 4:
      return is_signed ? load_into<int32_t>(register_bytes) : load_into<uint32_t>(register_bytes);
    case 8:
      return load_into<uint64_t>(register_bytes);
    default:
      return register_bytes == 16 ? load_as<Bits128, Bits128> : nullptr;
  }
}

StoreElement store_element(unsigned memory_bytes, unsigned register_bytes) {
  switch (memory_bytes) {
    case 1:
      return store_from<1>(register_bytes);
    case 2:
      return store_from<2>(register_bytes);
    case 4:
      return store_from<4>(register_bytes);
    case 8:
      return store_from<8>(register_bytes);
    default:
      return store_from<16>(register_bytes);
  }
}

void load_lanes(const Execution& x, LoadElement load, const std::byte* from,
                const std::array<uint32_t, kWarpSize>& offsets, std::byte* to) {
  const bool are_words = load == &load_as<uint32_t, uint32_t>;  // most of them
  if (are_words && x.mask == kAllLanes) {
    for (size_t lane = 0; lane < kWarpSize; ++lane)
      load_as<uint32_t, uint32_t>(from + offsets[lane], to, static_cast<int>(lane));
  } else {
    x.for_lanes([&](int lane) { load(from + offsets[static_cast<size_t>(lane)], to, lane); });
  }
}

}  // namespace ptxsim
