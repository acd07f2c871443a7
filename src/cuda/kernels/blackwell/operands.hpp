// The host's part that does not depend on how the kernel divides its work: operands, their copies
// and their views.
#pragma once

#include <vector>

#include "cuda/kernels/blackwell/copies.hpp"
#include "cuda/kernels/blackwell/params.hpp"

namespace dualgemm::cuda::blackwell {

// Where the views of the operands and of their scales go; sf_a null: A has no scales.
struct OperandMaps {
  TensorMap *a, *gate, *up, *sf_a, *sf_gate, *sf_up;
};

// One operand's settled copies, which go to `launches`, and its two maps, boxes of `box_rows` rows.
// `scales` null: there are none. `linear` null: they are read in scale tiles; otherwise as they
// lie, where that suits, and `*linear` says whether that is in rows.
Status place_operand(TmaOperand operand, int64_t batches, int box_rows, void* workspace,
                     EncodeTiled encode_tiled, TensorMap* data, TensorMap* scales,
                     std::vector<KernelLaunch>& launches, bool* linear = nullptr);

// Encodes the maps, boxes of `box_rows_a` rows of A and `box_rows_gate` of each weight, and appends
// the copies to `launches`. `copies`, `workspace` and errors: as build_launches() has them.
Status place_operands(const core::ResolvedProblem& problem, const Buffers& buffers,
                      const Copies& copies, void* workspace, int box_rows_a, int box_rows_gate,
                      EncodeTiled encode_tiled, const OperandMaps& maps,
                      std::vector<KernelLaunch>& launches);

// The extents of what a CTA or a pair of them computes, and of what one CTA loads of it.
struct Tiling {
  int rows, cols;                 // of D, per tile
  int box_rows_a, box_rows_gate;  // of A and of each weight, per stage and CTA
};

// Everything of `params` but the tensor maps.
void set_scalars(const core::ResolvedProblem& problem, const Buffers& buffers, const Tiling& tiling,
                 Params& params);

// Fills in all of `params`; the rest as place_operands().
Status fill_in(const core::ResolvedProblem& problem, const Buffers& buffers, const Copies& copies,
               void* workspace, const Tiling& tiling, EncodeTiled encode_tiled, Params& params,
               std::vector<KernelLaunch>& launches);

}  // namespace dualgemm::cuda::blackwell
