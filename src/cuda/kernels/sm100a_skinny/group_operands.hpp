// Operands of groups of experts: what is read where it lies, what is copied before, in which views.
#pragma once

#include <vector>

#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/kernels/sm100a_pair/packed_weights.hpp"
#include "cuda/kernels/sm100a_skinny/config.hpp"
#include "cuda/kernels/sm100a_skinny/params.hpp"

namespace dualgemm::cuda::sm100a_skinny {

// As sm100a::plan_copies(), but linear scales whose rows lie multiples of 16 bytes apart are read in
// place. A copy of A's swizzled scales reads them as far as operand_sizes() says.
sm100a::Copies plan_group_copies(const core::ResolvedProblem& problem, bool unaligned,
                                 bool prepared);

// Where the maps of prepared weights go.
inline sm100a_pair::WeightMaps weight_maps_of(Params& params) {
  return {&params.map_gate, &params.map_up, &params.map_sf_gate, &params.map_sf_up};
}

// Fills in the maps of `params` and how their scales lie, and appends the copies to `launches`.
// `packed`: prepared weights, or null. Precondition: with_shared_rows().
Status place_group_operands(const core::ResolvedProblem& problem, const Buffers& buffers,
                            const sm100a::Copies& copies, void* workspace, const Config& config,
                            EncodeTiled encode_tiled, const uint8_t* packed, Params& params,
                            std::vector<KernelLaunch>& launches);

}  // namespace dualgemm::cuda::sm100a_skinny
