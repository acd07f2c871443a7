// wmma.load, wmma.mma, wmma.store (PTX ISA 9.0, "Warp-level Matrix Multiply-Accumulate Operations
// Using wmma Instructions"): what their files share. PTX leaves open which element of a matrix a
// thread's register holds. Here thread t holds the elements t * n .. t * n + n - 1 of A and B in
// the order of their layout, of C and D by rows; the registers of f16 A and B, which have room for
// more, hold them twice or more. Matrices of 4-bit integers and of single bits lie as mma.sync of
// their shape has them.
#pragma once

#include <array>
#include <cstdint>

#include "insn/memory/memory.hpp"
#include "machine/tensor_core/mma/dense.hpp"
#include "number/formats.hpp"
#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

struct WmmaShape {
  uint32_t m, n, k;
};

enum class WmmaMatrix : uint8_t { kA, kB, kAccumulator };

// One matrix in the registers of a warp.
struct WmmaFragment {
  Type type = Type::kNone;
  uint32_t rows = 0, columns = 0;
  bool by_columns = false;  // the order of the elements in the registers
  uint32_t registers = 0;
  std::array<Slot, 8> slots{};

  uint32_t element_bytes() const { return bytes_of(type); }
  uint32_t register_bytes() const { return type == Type::kF64 ? 8 : 4; }
  uint32_t per_lane() const { return rows * columns / kWarpSize; }
  uint32_t places() const { return registers * register_bytes() / element_bytes(); }
  struct Element {
    uint32_t row, column;
  };
  Element element(uint32_t lane, uint32_t index) const {
    const uint32_t i = lane * per_lane() + index % per_lane();
    return by_columns ? Element{i % rows, i / rows} : Element{i / columns, i % columns};
  }
  // The bytes of place `index` of a lane; `base` is the register file.
  std::byte* place(std::byte* base, uint32_t lane, uint32_t index) const {
    const uint32_t each = register_bytes() / element_bytes();
    return base + slots[index / each].at + size_t{register_bytes()} * lane +
           size_t{element_bytes()} * (index % each);
  }
};

// A shape, one of those that have the type.
WmmaShape take_wmma_shape(Decode& d);
bool take_by_columns(Decode& d);  // .row or .col
// The fragment of operand `index`, which is a destination or a source.
WmmaFragment take_wmma_fragment(Decode& d, size_t index, WmmaMatrix matrix, const WmmaShape& shape,
                                Type type, bool by_columns, bool is_destination);

void decode_wmma_load(Decode& d);
void decode_wmma_store(Decode& d);
void decode_wmma_mma(Decode& d);

}  // namespace ptxsim
