// What one launch gets, as a plain struct that any host code can fill.
#pragma once

#include "cuda/device/group_tiles.hpp"
#include "cuda/kernels/blackwell/params.hpp"

namespace dualgemm::cuda::sm100a_pair_groups {

// As without groups, with boxes of 128 rows of A and 64 of Gate and Up. Contiguous groups have one
// batch of A in all its views, and of its scales as many rows of tiles as there are; masked ones
// ceil(m/128). Scales may lie in rows instead (linear_*):
//   map_sf_*                (k/16, n or m, l) bytes, box (16, 64 or 128, 1)
// Prepared weights have views of 8 units a box (blackwell::encode_weights()). tiles_m, num_tiles:
// none, the table has them.
struct Params : blackwell::Params {
  GroupTiles groups;
  bool padded_scales_of_a;  // each group's begin at a multiple of 128 rows, if not linear
  bool linear_gate, linear_up;
  bool prepared;  // weights; their scales count as linear
};

}  // namespace dualgemm::cuda::sm100a_pair_groups
