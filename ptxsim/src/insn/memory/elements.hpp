// Elements of memory on their way to and from registers, which may be wider.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "insn/memory/memory.hpp"

namespace ptxsim {

// nullptr: there is no such load.
LoadElement load_element(unsigned memory_bytes, bool is_signed, unsigned register_bytes);
StoreElement store_element(unsigned memory_bytes, unsigned register_bytes);

// Loads the element of each lane of the mask, which lies `offsets[lane]` behind `from`.
void load_lanes(const Execution& x, LoadElement load, const std::byte* from,
                const std::array<uint32_t, kWarpSize>& offsets, std::byte* to);

}  // namespace ptxsim
