// The fused strategy's prepared weights: made by prepare(), found again by run().
#pragma once

#include "cuda/strategies/fused_kernel.hpp"

namespace dualgemm::cuda {

// Returns when the weights are packed: the caller may free theirs.
Expected<PreparedWeights> pack_weights(const FusedKernel& kernel, const Plan& plan,
                                       const Buffers& buffers);

// null: the plan is not for prepared weights.
Expected<const uint8_t*> find_packed_weights(const FusedKernel& kernel, const Plan& plan,
                                             const Buffers& buffers);

}  // namespace dualgemm::cuda
