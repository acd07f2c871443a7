// From NVFP4 weights, however they lie, to prepared ones: packed_unit.hpp.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cuda/kernels/packed/packed_unit.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda {

// Whether kernels that decode to 16 bits decode both operands to bf16 (A is bf16), not to fp16.
inline bool multiplies_bf16(const Problem& p) { return p.a.type == DataType::kBF16; }

// Bytes of Gate and Up together, whatever m and the type of A are: those of one batch; from one
// batch to the next, which leaves room for a header; and those of all batches so far apart.
int64_t packed_batch_bytes(const Problem& problem);
int64_t packed_batch_stride(const Problem& problem);
int64_t packed_bytes(const Problem& problem);

// The launch that fills `out` (device memory, at a multiple of 16) from the weights and scales of
// `buffers`, in any layout, stride and alignment, for A of the problem's type: packed_batch_bytes
// of each batch, nothing between them. It must be waited for before the first launch that reads
// `out`: those kernels begin before the grid in front of them has ended, and read prepared weights
// at once.
KernelLaunch pack_weights_launch(const core::ResolvedProblem& problem, const Buffers& buffers,
                                 uint8_t* out);

PackedWeights packed_weights(const Problem& problem, const uint8_t* units);

}  // namespace dualgemm::cuda
