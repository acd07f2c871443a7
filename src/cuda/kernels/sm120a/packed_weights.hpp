// From NVFP4 weights, however they lie, to prepared ones: packed_unit.hpp.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cuda/kernels/sm120a/packed_unit.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm120a {

// Bytes of Gate and Up together, whatever m is: those of one batch; from one batch to the next,
// which leaves room for a header; and those of all batches so far apart.
int64_t packed_batch_bytes(const Problem& problem);
int64_t packed_batch_stride(const Problem& problem);
int64_t packed_bytes(const Problem& problem);

// The launch that fills `out` (device memory, at a multiple of 16) from the weights and scales of
// `buffers`, in any layout, stride and alignment: packed_batch_bytes of each batch, nothing between
// them.
KernelLaunch pack_weights_launch(const core::ResolvedProblem& problem, const Buffers& buffers,
                                 uint8_t* out);

PackedWeights packed_weights(const Problem& problem, const uint8_t* units);

}  // namespace dualgemm::cuda::sm120a
