// What one launch gets, as a plain struct that any host code can fill.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/device/bias.hpp"
#include "cuda/device/combine.hpp"
#include "cuda/device/divisor.hpp"
#include "cuda/device/group_tiles.hpp"
#include "cuda/device/nvfp4_output.hpp"
#include "cuda/device/row_index.hpp"
#include "cuda/kernels/hopper/shifts.hpp"
#include "cuda/kernels/packed/packed_unit.hpp"

namespace dualgemm::cuda::sm90a_skinny {

// NVFP4 rows. Scales: one byte for 16 neighbours along k.
struct PackedView {
  const uint8_t* codes;
  const uint8_t* scales;
  int64_t row_bytes, batch_bytes;
  int64_t scale_ld;  // linear: from row to row; swizzled 128x4: from 128 rows to the next 128
  int64_t scale_batch_bytes;
  bool swizzled;
};

struct Params {
  PackedView gate, up;   // codes at multiples of 16 bytes, rows of linear scales at multiples of 4
  PackedView a;          // codes at multiples of 8 bytes; or halves at multiples of 16, no scales
  PackedWeights packed;  // instead of Gate and Up, if the instance is for that
  uint8_t* d;            // (l, m, n) outputs, aligned to one element (codes: to a byte)
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
  bool wide_scales;  // of the weights: linear, rows at multiples of 16
  uint32_t m, n;
  uint32_t row_scale_stride;  // from a batch's first a_row_scale to the next one's
  uint32_t k;                 // a multiple of 64
  uint32_t k_tiles;           // of 256
  uint32_t chunks;            // of 64
  uint32_t tiles;             // tile batch * tiles_n + tile_n
  Divisor tiles_n;
  uint32_t wide_tiles;  // of the only batch: those after them have narrow_units units
  uint32_t narrow_units;
  // In instances for groups, instead of `tiles`: tile m * tiles_n + tile_n, m a tile of rows of the
  // table, or, if there is none, of those that the CTA finds.
  GroupTiles groups;
  GroupRows group_rows;  // then
  RowIndex row_index;    // in instances for groups
  bool keeps_index;      // there is one, of at most kept_rows()
  hopper::Shifts shifts;
};

}  // namespace dualgemm::cuda::sm90a_skinny
