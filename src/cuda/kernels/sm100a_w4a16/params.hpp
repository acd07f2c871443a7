// What one launch gets, as a plain struct that any host code can fill.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/device/bias.hpp"
#include "cuda/device/combine.hpp"
#include "cuda/device/group_tiles.hpp"
#include "cuda/device/nvfp4_output.hpp"
#include "cuda/runtime/tensor_map_object.hpp"

namespace dualgemm::cuda::sm100a_w4a16 {

// Three views of bytes and two of scale tiles; what is outside a view is zero.
//   map_a                   (2*k, m, l) bytes, box (128, tile_m, 1), 128-byte swizzle: four a stage
//   map_gate, map_up        (k/2, n, l) bytes, box (128, 64, 1), the same
//   map_sf_gate, map_sf_up  (256, ceil(k/64), ceil(n/128), l) of 16 bits, box (256, 4, 1, 1): a row
//                           of the view is a scale tile of 512 bytes
// Contiguous groups have one batch of A in its view. Scales of groups may lie in rows (linear_*):
//   map_sf_*                (k/16, n, l) bytes, box (16, 64, 1)
// Prepared weights: the same four of blackwell::encode_weights(), boxes of 64 columns.
// Every scale that belongs to k .. 256*num_k_tiles is zero: from the view's end by the TMA unit,
// and before it in memory.
struct Params {
  TensorMap map_a, map_gate, map_up;
  TensorMap map_sf_gate, map_sf_up;
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
  uint32_t m, n;
  uint32_t row_scale_stride;  // from a batch's first a_row_scale to the next one's
  uint32_t num_k_tiles;       // ceil(k / kTileK), at least split
  uint32_t tiles_m, tiles_n;  // of D
  uint32_t split;  // CTAs of a cluster, which share the tiles of k: 1 .. kMaxSplit. Grid: clusters
                   // tiles_m * tiles_n * l, tile_m innermost; with groups: as wanted, 1
  bool prepared;   // weights; their scales count as linear
  bool linear_gate, linear_up;
  GroupTiles groups;  // of instances for groups
  uint32_t batches;   // l; without groups such an instance does m rows of each
};

}  // namespace dualgemm::cuda::sm100a_w4a16
