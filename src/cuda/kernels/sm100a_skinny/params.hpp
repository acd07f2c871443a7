// What one launch gets, as a plain struct that any host code can fill.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/device/bias.hpp"
#include "cuda/device/combine.hpp"
#include "cuda/device/group_tiles.hpp"
#include "cuda/device/nvfp4_output.hpp"
#include "cuda/runtime/tensor_map_object.hpp"

namespace dualgemm::cuda::sm100a_skinny {

// Three views of bytes and three of scale tiles; boxes are one stage of one CTA, what is outside a
// view is zero.
//   map_gate, map_up        (k/2, n, l) bytes, box (128, tile_n, 1), 128-byte swizzle
//   map_a                   (k/2, m, l) bytes, box (128, tile_m, 1), the same
//   map_sf_gate, map_sf_up  (256, ceil(k/64), ceil(n/128), l) of 16 bits, box (256, 4, 1, 1): a row
//                           of the view is a scale tile of 512 bytes
//   map_sf_a                (256, ceil(k/64), 1, l), the same
// Contiguous groups have one batch of A in all its views, and of its scales as many rows of tiles
// as there are; masked ones ceil(m/128). Scales of groups may lie in rows instead (linear_*):
//   map_sf_*                (k/16, n or m, l) bytes, box (16, tile_n or tile_m, 1)
// Prepared weights (blackwell::encode_weights()) have views of tile_n / 8 units a box, of words of
// 8 bytes:
//   map_gate, map_up        (128, ceil(n/8), ceil(k/256), l), box (128, tile_n/8, 1, 1)
//   map_sf_gate, map_sf_up  (16, ceil(n/8), ceil(k/256), l), box (16, tile_n/8, 1, 1)
// Every scale that belongs to k .. 256*num_k_tiles is zero: from the view's end by the TMA unit,
// and before it in memory.
struct Params {
  TensorMap map_gate, map_up, map_a;
  TensorMap map_sf_gate, map_sf_up, map_sf_a;
  uint8_t* d;  // (l, m, n) outputs, aligned to one element (codes: to a byte)
  int64_t d_row_bytes, d_batch_bytes;
  Nvfp4Output nvfp4;                  // kE2M1
  const float* a_row_scale;           // [l*m], or null: 1
  const float* alpha_gate_per_batch;  // [l], or null: alpha_gate
  const float* alpha_up_per_batch;
  float alpha_gate, alpha_up;
  BiasParams bias;
  CombineParams combine;
  ActParams act;
  OutputType output;
  uint32_t m, n;              // m: at most tile_m, unless grouped
  uint32_t row_scale_stride;  // from a batch's first a_row_scale to the next one's
  uint32_t num_k_tiles;       // ceil(k / kTileK), at least 1
  uint32_t tiles_n;           // CTAs: tiles_n * l, tile_n innermost; with groups: as wanted
  GroupTiles groups;          // of instances for groups
  bool padded_scales_of_a;    // each group's begin at a multiple of 128 rows, if not linear
  bool linear_gate, linear_up, linear_a;
  bool prepared;     // weights of instances for groups; their scales count as linear
  uint32_t batches;  // l; without groups such an instance does m rows of each
};

}  // namespace dualgemm::cuda::sm100a_skinny
