// The tiles of a problem whose rows are groups of experts. How many rows an expert has stands in
// device memory and may change from run to run, under a recorded graph too: a table of the tiles
// there are is made on the device (kernels/common/make_group_tiles.cuh), by a kernel in front, in a
// workspace that holds the most there can be, or by every CTA of a kernel for itself.
#pragma once

#include <cstdint>

#include "cuda/device/divisor.hpp"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

// Which expert's the rows are, as the caller says in device memory. Offsets and counts are clamped
// so that no tile leaves 0 .. m-1, and no row has two owners: an offset is at least as large as
// those before it, and none is larger than m.
struct GroupRows {
  const int32_t* offsets = nullptr;      // contiguous: [l+1]; null: masked, or rows name experts
  const int32_t* counts = nullptr;       // masked: [l]
  const int32_t* row_experts = nullptr;  // [m], contiguous without offsets; else null
  uint32_t m = 0, l = 0;
  Divisor tile_m;  // rows of a tile, at the most
};

// Rows begin .. end-1 of A and D, all of one expert, counted in its batch (masked), or in the only
// one (contiguous). As the table has them, 16 bytes each.
struct alignas(16) GroupTile {
  uint32_t expert : 31;   // whose weights, alphas and biases
  uint32_t last : 1;      // the last of its expert, or of all where rows name their experts
  uint32_t begin, end;    // at least one row
  uint32_t padded_begin;  // where scales are swizzled: row `begin` there
};
static_assert(sizeof(GroupTile) == 16, "one load");

// The table as kernels get it.
struct GroupTiles {
  // null: no groups, or there is none in memory. [0].expert is the number of tiles, from [1] on
  // stand the tiles, those of an expert one after the other.
  const GroupTile* table = nullptr;
  bool one_batch = false;  // contiguous: A and D are one batch for all experts
  bool padded = false;     // and each expert's swizzled scales begin at a multiple of 128 rows
};

}  // namespace dualgemm::cuda
