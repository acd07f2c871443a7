// What walks over tiles and over pixels share: the rows of a box.
#pragma once

#include "machine/tensor_map/tensor_map.hpp"

namespace ptxsim {

// A row of a box, the next in shared memory, from element `start` of the innermost dimension on;
// `row` is the address of that dimension's first element.
void add_row(Box& box, const TensorMap& map, uint64_t row, int64_t start, bool in_bounds);
// Faults: the box must begin at a multiple of 16 bytes; interleaved layouts are not modelled.
void check_first_coordinate(const TensorMap& map, int32_t coordinate);
void refuse_interleave(const TensorMap& map);
// A Fault when the copy needs another kind of map.
void check_mode(const TensorMap& map, TensorMapMode mode);

}  // namespace ptxsim
