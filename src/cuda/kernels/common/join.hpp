// D = act(alpha_gate * Gate product + bias) * (alpha_up * Up product + bias): what follows two
// plain GEMMs.
#pragma once

#include "cuda/device/activation.hpp"
#include "cuda/device/bias.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

struct JoinParams {
  const void* gate;  // products: [batches][rows][product_ld], aligned to 32 bytes
  const void* up;
  int64_t product_ld;  // elements, a multiple of 8; columns n .. product_ld-1 hold something
  uint8_t* d;
  int64_t d_row_bytes, d_batch_bytes;
  const float* a_row_scale;           // [batches * rows] or null
  const float* requantized_rows;      // scales of strategy fp8: [batches * rows] or null,
  const float* requantized_gate;      //   [product_ld] of each batch,
  const float* requantized_up;        //   likewise
  int64_t requantized_stride;         //   from one batch to the next
  const float* alpha_gate_per_batch;  // [batches] or null
  const float* alpha_up_per_batch;
  float alpha_gate, alpha_up;
  BiasParams bias;
  ActParams act;
  int64_t rows, n, batches;
};

// product: what the products are stored as, kF32 or kF16.
KernelLaunch join_launch(const JoinParams& params, OutputType product, OutputType d);

}  // namespace dualgemm::cuda
