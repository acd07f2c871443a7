// What one launch of the sm_80 kernel gets, as a plain struct that any host code can fill.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/device/bias.hpp"
#include "cuda/device/combine.hpp"
#include "cuda/device/divisor.hpp"
#include "cuda/device/group_tiles.hpp"
#include "cuda/device/nvfp4_output.hpp"
#include "cuda/device/row_index.hpp"
#include "cuda/kernels/common/operand_view.hpp"
#include "cuda/kernels/packed/packed_unit.hpp"
#include "cuda/kernels/sm80/config.hpp"
#include "cuda/kernels/sm80/shares.hpp"

namespace dualgemm::cuda::sm80 {

struct Params {
  AType a_type;
  float sum_unit;  // sum_unit_of(a_type)
  Pass pass;
  uint32_t unit_cols;  // unit_cols_of(pass)
  OperandView a;
  OperandView gate, up;  // what the first and the last 8 of mma's 16 rows are of: of kGate and kUp
                         // the same matrix twice, whose rows follow each other
  PackedWeights packed;  // instead of gate and up
  uint8_t* d;            // (l, m, n) outputs, aligned to one element (codes: to a byte)
  int64_t d_row_bytes, d_batch_bytes;
  Nvfp4Output nvfp4;                  // kE2M1
  float* r1;                          // kGate writes it, kUp reads it: [l*m][r1_ld]
  int64_t r1_ld;                      // at least n
  const float* a_row_scale;           // [l*m], contiguous groups [m], or null: 1
  const float* alpha_gate_per_batch;  // [l], or null: alpha_gate
  const float* alpha_up_per_batch;
  float alpha_gate, alpha_up;
  BiasParams bias;
  CombineParams combine;
  ActParams act;
  OutputType output;
  // Every row begins at a multiple of: A 16 bytes (codes: 8); scales of Gate and Up 4.
  bool a_aligned, scales_aligned;
  // a_aligned, k ends with a chunk, and A has less than 2^32 words.
  bool a_plain;
  uint32_t weights_aligned;  // codes of Gate and Up: every row at a multiple of 16 bytes, 8 or 1
  uint32_t m, n;
  uint32_t row_scale_stride;  // from a batch's first a_row_scale to the next one's
  uint32_t k16;               // k / 16
  Divisor chunks;             // along k
  uint32_t tiles_m, tiles_n;  // of a batch
  Divisor block_tiles;        // tiles_n * kBlockRows
  Divisor batch_tiles;        // tiles_m * tiles_n; without groups
  uint32_t tiles;             // of all batches; CTAs: tiles * splits, or shares.ctas
  // CTAs that divide the k of every tile of D, or take turns with tiles and have shares of some.
  // Sums of a part of k go to `partials`, and a launch of FinishParams follows:
  // [slot][warp][item][half of an item][lane][4 floats], slot: split * tiles + tile, or
  // Shares::slot().
  Divisor splits;
  Shares shares;
  float* partials;
  GroupTiles groups;   // with a table: instead of tiles_m and l; CTAs for as many as may be
  RowIndex row_index;  // with groups
};

}  // namespace dualgemm::cuda::sm80
