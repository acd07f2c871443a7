// What one launch of the sm_120a kernel gets, as a plain struct that any host code can fill.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/device/bias.hpp"
#include "cuda/device/combine.hpp"
#include "cuda/device/group_tiles.hpp"
#include "cuda/device/nvfp4_output.hpp"
#include "cuda/device/row_index.hpp"
#include "cuda/kernels/common/operand_view.hpp"
#include "cuda/kernels/sm120a/packed_unit.hpp"

namespace dualgemm::cuda::sm120a {

struct Params {
  OperandView a, gate, up;
  PackedWeights packed;  // if there are any instead of gate and up
  uint8_t* d;            // (l, m, n) outputs, aligned to one element (codes: to a byte)
  int64_t d_row_bytes, d_batch_bytes;
  Nvfp4Output nvfp4;                  // kE2M1
  const float* a_row_scale;           // [l*m], contiguous groups [m], or null: 1
  const float* alpha_gate_per_batch;  // [l], or null: alpha_gate
  const float* alpha_up_per_batch;
  float alpha_gate, alpha_up;
  BiasParams bias;
  CombineParams combine;
  ActParams act;
  OutputType output;
  uint32_t codes_aligned;   // every row of every operand begins at a multiple of 16 bytes, 8 or 1
  uint32_t scales_aligned;  // every row of scales at a multiple of 8 in which neighbours along k
                            // lie beside each other, or at one of 4, or of 1
  uint32_t m, n;
  uint32_t row_scale_stride;  // from a batch's first a_row_scale to the next one's
  uint32_t k16;               // k / 16
  uint32_t stages;            // of the ring: kMinStages .. kMaxStages
  // Tiles of a batch: of the first whole_n columns of tiles those of tiles_m whole rows, of the
  // others, up to tiles_n, those of halves_m rows of half the height. CTAs take them in turn.
  uint32_t tiles_m, halves_m, whole_n, tiles_n;
  uint32_t tiles;     // of all batches
  GroupTiles groups;  // with a table: instead of these
  RowIndex row_index;
};

}  // namespace dualgemm::cuda::sm120a
