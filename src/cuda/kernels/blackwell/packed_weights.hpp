// From NVFP4 weights, however they lie, to prepared ones: packed_unit.hpp.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cuda/kernels/blackwell/packed_unit.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::blackwell {

// Bytes of Gate and Up together, whatever m is: those of one batch; from one batch to the next,
// which leaves room for a header; and those of all batches so far apart.
int64_t packed_batch_bytes(const Problem& problem);
int64_t packed_batch_stride(const Problem& problem);
int64_t packed_bytes(const Problem& problem);

// The launch that fills `out` (device memory, at a multiple of 16) from the weights and scales of
// `buffers`, in any layout, stride and alignment: packed_batch_bytes of each batch, nothing between
// them. It must be waited for before the first launch that reads `out`: that kernel begins before
// the grid in front of it has ended, and reads prepared weights at once.
KernelLaunch pack_weights_launch(const core::ResolvedProblem& problem, const Buffers& buffers,
                                 uint8_t* out);

// What one CTA of a pair loads of a stage: its codes, and half of the scales of both.
TensorView unit_codes_view(const Problem& problem, const uint8_t* packed, int64_t tile_n);
TensorView unit_scales_view(const Problem& problem, const uint8_t* packed, int64_t tile_n);

// For kernels that want the rows of Gate and of Up apart, as unpacked weights lie in a stage.
struct WeightMaps {
  TensorMap *gate, *up, *sf_gate, *sf_up;
};
// Boxes of `cols` columns of D (a multiple of 8) and K = 256, at (0, column / 8, k-tile, batch):
// rows of 128 bytes in swizzle atoms; rows of 16 scales.
Status encode_weights(const Problem& problem, const uint8_t* packed, int64_t cols,
                      EncodeTiled encode_tiled, const WeightMaps& maps);

}  // namespace dualgemm::cuda::blackwell
