// What the CUTLASS kernels' epilogue is told, as a plain struct that any host code can fill.
#pragma once

#include <cstdint>

#include "cuda/device/activation.hpp"
#include "cuda/device/bias.hpp"
#include "cuda/device/combine.hpp"
#include "cuda/device/nvfp4_output.hpp"

namespace dualgemm::cuda::gated {

// Rows and columns of weights that lie together: 128 rows of Gate, then the 128 rows of Up that
// belong to the same columns of D.
inline constexpr int kHalfTile = 128;
inline constexpr int kTileK = 256;

// The members that device/from_problem.hpp's set_epilogue() fills. `nvfp4` and `combine` are among
// them and not read: supports() refuses what they are for.
struct EpilogueParams {
  uint8_t* d;  // (l, m, n) outputs, aligned to one element
  int64_t d_row_bytes, d_batch_bytes;
  Nvfp4Output nvfp4;
  const float* a_row_scale;           // [l*m], or null: 1
  const float* alpha_gate_per_batch;  // [l], or null: alpha_gate
  const float* alpha_up_per_batch;
  float alpha_gate, alpha_up;
  BiasParams bias;
  CombineParams combine;
  ActParams act;
  OutputType output;  // not kE2M1
  uint32_t m, n;
  uint32_t row_scale_stride;  // from a batch's first a_row_scale to the next one's
};

}  // namespace dualgemm::cuda::gated
