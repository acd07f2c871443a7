// Tensor maps as the tensor copies use them: which bytes of global memory a box covers and where
// they lie in shared memory (PTX ISA 9.0, "Tensors", "Tiled Mode", "Im2col mode", "Swizzling
// Modes").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor_map_encoder/bits.hpp"

namespace ptxsim {

class Machine;
struct Execution;

// Reads the 128 bytes at a generic address (parameter, constant or global memory) and checks them:
// a Fault when they are no tensor map, or when the driver would not have encoded it.
TensorMap read_tensor_map(Machine& machine, uint64_t generic, int lane);

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
Box walk_box(const TensorMap& map, std::span<const int32_t> coordinates);
// .tile::gather4 and .tile::scatter4: four rows of a matrix, at `column`.
Box walk_four_rows(const TensorMap& map, int32_t column, std::span<const int32_t, 4> rows);
// .im2col: a column of pixels from the filter's place and its offsets along W, H and D on; none of
// these: 0.
Box walk_pixels(const TensorMap& map, std::span<const int32_t> coordinates,
                std::span<const uint16_t> offsets);
// .im2col::w and .im2col::w::128: pixels of one row of each image, then `halo` more.
struct WidePixels {
  uint32_t halo = 0, offset = 0;
  bool always_128 = false;
};
Box walk_wide_pixels(const TensorMap& map, std::span<const int32_t> coordinates,
                     const WidePixels& wide);

// What the out-of-bounds bytes of a load hold: `bytes` of them, at an element's boundary.
void fill_out_of_bounds(const TensorMap& map, std::byte* data, uint32_t bytes);
// What a load changes in the values of types that it converts (TF32).
void convert_loaded(const TensorMap& map, std::byte* data, uint32_t bytes);

}  // namespace ptxsim
