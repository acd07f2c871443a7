// What tensor loads, stores and reductions share: the operand [map, {coordinates}], what im2col
// modes add to it, and boxes in shared memory.
#pragma once

#include <array>
#include <memory>

#include "insn/async/cp.hpp"
#include "machine/tensor_map/tensor_map.hpp"

namespace ptxsim {

// .tile; .tile::gather4 and .tile::scatter4; .im2col and .im2col_no_offs; .im2col::w;
// .im2col::w::128
enum class BoxMode : uint8_t { kTile, kFourRows, kPixels, kWide, kWide128 };

struct TensorOperand {
  Slot base;
  int64_t offset = 0;       // the parameter window included when the base is a parameter's name
  uint32_t dimensions = 0;  // .1d .. .5d
  BoxMode mode = BoxMode::kTile;
  std::array<Slot, 5> coordinates;
  // im2col: the filter's offsets along W, H and D; wide: wHalo and wOffset. Absent: 0.
  std::array<Slot, 3> im2col;
};

inline constexpr uint32_t kTensorAlignment = 128;  // of a box in shared memory

// .1d .. .5d and the mode, one of `modes` at the places of BoxMode; empty names are of no mode.
using BoxModeNames = std::array<const char*, 5>;
TensorOperand take_tensor_operand(Decode& d, size_t index, const BoxModeNames& modes);
inline constexpr BoxModeNames kLoadModes{"tile", "tile::gather4", "im2col", "im2col::w",
                                         "im2col::w::128"};
// The operand of loads and prefetches in im2col modes, at `index`, if there is one.
void take_im2col_operand(Decode& d, size_t& index, TensorOperand& operand);

// A box of one lane.
struct TensorBox {
  TensorMap map;
  Box box;
  uint64_t map_address = 0;  // generic
};
std::shared_ptr<const TensorBox> tensor_box(const Execution& x, const TensorOperand& operand,
                                            int lane);
uint32_t bytes_in_bounds(const Box& box);
GlobalPart global_part(const Execution& x, const TensorBox& tensor);  // empty when no observer asks

// Calls f(shared offset, offset in the run, bytes) for the pieces into which the swizzle cuts a run
// of a box that lies at `offset`.
template <class F>
void for_pieces(const TensorMap& map, const BoxRun& run, uint32_t offset, F&& f) {
  const uint32_t atom =
      map.swizzle == TensorMapSwizzle::kNone ? ~0u : swizzle_atom_bytes(map.swizzle);
  for (uint32_t done = 0; done < run.bytes;) {
    const uint32_t at = offset + run.dense + done;
    const uint32_t left = run.bytes - done;
    const uint32_t bytes = atom == ~0u ? left : std::min(left, atom - at % atom);
    f(swizzle_address(map.swizzle, at), done, bytes);
    done += bytes;
  }
}

}  // namespace ptxsim
