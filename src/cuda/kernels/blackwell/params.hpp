// What one launch of the sm_100a kernel gets, as a plain struct that any host code can fill.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/device/bias.hpp"
#include "cuda/device/combine.hpp"
#include "cuda/device/nvfp4_output.hpp"
#include "cuda/runtime/tensor_map_object.hpp"

namespace dualgemm::cuda::blackwell {

// Three views of bytes and three of scale tiles; boxes are one stage of one CTA, what is outside a
// view is zero.
//   map_a                   (k/2, m, l) bytes, box (128, 128, 1), 128-byte swizzle
//   map_gate, map_up        (k/2, n, l) bytes, box (128, tile_n, 1), the same
//   map_sf_a                (256, ceil(k/64), ceil(m/128), l) of 16 bits, box (256, 4, 1, 1): a row
//                           of the view is a scale tile of 512 bytes
//   map_sf_gate, map_sf_up  (256, ceil(k/64), ceil(n/128), l), the same
// Every scale that belongs to k .. 256*num_k_tiles is zero: from the view's end by the TMA unit,
// and before it in memory.
struct Params {
  TensorMap map_a, map_gate, map_up;
  TensorMap map_sf_a, map_sf_gate, map_sf_up;
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
  uint32_t m, n;
  uint32_t row_scale_stride;  // from a batch's first a_row_scale to the next one's
  uint32_t num_k_tiles;       // ceil(k / kTileK), at least 1
  uint32_t tiles_m, tiles_n;  // CTAs: tiles_m * tiles_n * l, tile_m innermost
  uint32_t num_tiles;         // tiles_m * tiles_n * l, for persistent CTAs
  bool linear_a;              // pairs with prepared weights, groups: scales of A lie in rows
};

}  // namespace dualgemm::cuda::blackwell
