// Data movement shapes of tcgen05.ld and tcgen05.st: which cell a register of a thread holds
// (PTX ISA 9.0, "Data Movement Shape", whose figures these formulas stand for).
#pragma once

#include <cstdint>

namespace ptxsim {

enum class MoveShape : uint8_t { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };

// Registers of one thread for .xN.
inline uint32_t registers_of(MoveShape shape, uint32_t num) {
  return shape == MoveShape::k16x256b ? 4 * num : shape == MoveShape::k16x128b ? 2 * num : num;
}
// Columns for .xN; the second half of 16x32bx2 lies elsewhere.
inline uint32_t columns_of(MoveShape shape, uint32_t num) {
  switch (shape) {
    case MoveShape::k16x64b:
      return 2 * num;
    case MoveShape::k16x128b:
      return 4 * num;
    case MoveShape::k16x256b:
      return 8 * num;
    default:
      return num;
  }
}
inline uint32_t lanes_of(MoveShape shape) { return shape == MoveShape::k32x32b ? 32 : 16; }

struct CellOffset {
  uint32_t lane, column;
};
// The cell of register `j` of thread `t`, relative to the address; threads 16 to 31 of 16x32bx2 are
// further right by its split offset.
inline CellOffset cell_of(MoveShape shape, uint32_t t, uint32_t j) {
  switch (shape) {
    case MoveShape::k16x64b:
      return {t / 4 + 8 * (t & 1), (t >> 1 & 1) + 2 * j};
    case MoveShape::k16x128b:
      return {t / 4 + 8 * (j & 1), (t & 3) + 4 * (j >> 1)};
    case MoveShape::k16x256b:
      return {t / 4 + 8 * (j >> 1 & 1), (j & 1) + 2 * (t & 3) + 8 * (j >> 2)};
    case MoveShape::k16x32bx2:
      return {t % 16, j};
    default:
      return {t, j};
  }
}

}  // namespace ptxsim
