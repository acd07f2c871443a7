// Tensor maps as the tensor copies use them: which bytes of global memory a box covers and where
// they lie in shared memory (PTX ISA 9.0, "Tensors", "Tiled Mode", "Swizzling Modes").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxsim/driver/tensor_map_bits.hpp"

namespace ptxsim {

class Machine;
struct Execution;

// Reads the 128 bytes at a generic address (parameter, constant or global memory) and checks them:
// a Fault when they are no tiled tensor map, or when the driver would not have encoded it.
TiledTensorMap read_tensor_map(Machine& machine, uint64_t generic, int lane);

// Where the byte that lies at `address` in a layout without swizzle goes: an involution on absolute
// shared-memory addresses (ISA reference 1.1, 8.2).
uint32_t swizzle_address(TensorMapSwizzle swizzle, uint32_t address);
// Bytes that stay together under it.
uint32_t swizzle_atom_bytes(TensorMapSwizzle swizzle);

// A run of consecutive bytes of a box.
struct BoxRun {
  uint64_t global = 0;  // address; without meaning when out of bounds
  uint32_t dense = 0;   // offset from the box's beginning in shared memory, before the swizzle
  uint32_t bytes = 0;
  bool in_bounds = true;
};

struct Box {
  std::vector<BoxRun> runs;
  uint32_t shared_bytes = 0;  // that the box takes in shared memory: with gaps, and, when swizzled,
                              // a whole span for each row, however short (read from an H200)
  uint32_t copied_bytes = 0;  // that complete_tx counts: the whole box, without gaps
};

// The box at these coordinates (elements, innermost first).
Box walk_box(const TiledTensorMap& map, std::span<const int32_t> coordinates);
// .tile::gather4 and .tile::scatter4: four rows of a matrix, at `column`.
Box walk_four_rows(const TiledTensorMap& map, int32_t column, std::span<const int32_t, 4> rows);

// What the out-of-bounds bytes of a load hold: `bytes` of them, at an element's boundary.
void fill_out_of_bounds(const TiledTensorMap& map, std::byte* data, uint32_t bytes);
// What a load changes in the values of types that it converts (TF32).
void convert_loaded(const TiledTensorMap& map, std::byte* data, uint32_t bytes);

}  // namespace ptxsim
