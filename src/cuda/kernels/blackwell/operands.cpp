#include "cuda/kernels/blackwell/operands.hpp"

#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/blackwell/extents.hpp"

namespace dualgemm::cuda::blackwell {

void set_scalars(const core::ResolvedProblem& problem, const Buffers& buffers, const Tiling& tiling,
                 Params& params) {
  const Problem& p = problem.problem;
  set_epilogue(problem, buffers, params);
  params.num_k_tiles = static_cast<uint32_t>(ceil_div(p.k, kTileK));
  params.tiles_m = static_cast<uint32_t>(ceil_div(p.m, tiling.rows));
  params.tiles_n = static_cast<uint32_t>(ceil_div(p.n, tiling.cols));
}

Status place_operand(TmaOperand operand, int64_t batches, int box_rows, void* workspace,
                     EncodeTiled encode_tiled, TensorMap* data, TensorMap* scales,
                     std::vector<KernelLaunch>& launches, bool* linear) {
  const core::ResolvedMatrix& matrix = *operand.matrix;
  auto* const base = static_cast<uint8_t*>(workspace);
  DUALGEMM_TRY(settle_copy(operand.name, operand.data, data_needs_copy(matrix, batches),
                           &operand.data_copy));
  DUALGEMM_TRY(encode(data_view(operand, batches, box_rows, base), encode_tiled, data));
  if (scales != nullptr) {
    const bool suit = swizzled_scales_suit(matrix, batches) ||
                      (linear != nullptr && linear_scales_suit(matrix, batches));
    DUALGEMM_TRY(settle_copy(operand.scales_name, operand.scales, !suit, &operand.scale_copy));
    const bool in_rows =
        operand.scale_copy == kNoCopy && matrix.scale_layout == ScaleLayout::kLinear;
    DUALGEMM_TRY(encode(in_rows ? linear_scale_view(operand, batches, kTileK / 16, box_rows)
                                : swizzled_scale_view(operand, batches, {kMmaSteps}, base),
                        encode_tiled, scales));
    if (linear != nullptr) *linear = in_rows;
  }
  add_copies(operand, batches, base, launches);
  return {};
}

Status place_operands(const core::ResolvedProblem& problem, const Buffers& buffers,
                      const Copies& copies, void* workspace, int box_rows_a, int box_rows_gate,
                      EncodeTiled encode_tiled, const OperandMaps& maps,
                      std::vector<KernelLaunch>& launches) {
  const int64_t batches = problem.problem.l;
  const struct {
    TmaOperand operand;
    int box_rows;
    TensorMap *data, *scales;
  } operands[] = {
      {{"a", "a_scales", &problem.a, buffers.a, buffers.a_scales, copies.a, copies.sf_a},
       box_rows_a,
       maps.a,
       maps.sf_a},
      {{"gate", "gate_scales", &problem.gate, buffers.gate, buffers.gate_scales, copies.gate,
        copies.sf_gate},
       box_rows_gate,
       maps.gate,
       maps.sf_gate},
      {{"up", "up_scales", &problem.up, buffers.up, buffers.up_scales, copies.up, copies.sf_up},
       box_rows_gate,
       maps.up,
       maps.sf_up},
  };
  for (const auto& [operand, box_rows, data, scales] : operands) {
    DUALGEMM_TRY(
        place_operand(operand, batches, box_rows, workspace, encode_tiled, data, scales, launches));
  }
  return {};
}

Status fill_in(const core::ResolvedProblem& problem, const Buffers& buffers, const Copies& copies,
               void* workspace, const Tiling& tiling, EncodeTiled encode_tiled, Params& params,
               std::vector<KernelLaunch>& launches) {
  set_scalars(problem, buffers, tiling, params);
  return place_operands(problem, buffers, copies, workspace, tiling.box_rows_a,
                        tiling.box_rows_gate, encode_tiled,
                        {&params.map_a, &params.map_gate, &params.map_up, &params.map_sf_a,
                         &params.map_sf_gate, &params.map_sf_up},
                        launches);
}

}  // namespace dualgemm::cuda::blackwell
