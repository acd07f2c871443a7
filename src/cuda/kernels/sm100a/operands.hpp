// The host's part that does not depend on how the kernel divides its work: operands, their copies
// and their views.
#pragma once

#include <vector>

#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/kernels/sm100a/params.hpp"

namespace dualgemm::cuda::sm100a {

// The extents of what a CTA or a pair of them computes, and of what one CTA loads of it.
struct Tiling {
  int rows, cols;                 // of D, per tile
  int box_rows_a, box_rows_gate;  // of A and of each weight, per stage and CTA
};

// Fills in all of `params` and appends the copies to `launches`. `copies`, `workspace` and errors:
// as build_launches() has them.
Status fill_in(const core::ResolvedProblem& problem, const Buffers& buffers, const Copies& copies,
               void* workspace, const Tiling& tiling, EncodeTiled encode_tiled, Params& params,
               std::vector<KernelLaunch>& launches);

}  // namespace dualgemm::cuda::sm100a
