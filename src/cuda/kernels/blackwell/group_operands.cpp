#include "cuda/kernels/blackwell/group_operands.hpp"

#include <algorithm>
#include <initializer_list>

#include "core/arena.hpp"
#include "core/scale_padding.hpp"
#include "cuda/kernels/blackwell/packed_weights.hpp"
#include "cuda/kernels/blackwell/stream_model.hpp"
#include "cuda/kernels/convert/repack.hpp"
#include "cuda/kernels/convert/tma_operand.hpp"

namespace dualgemm::cuda::blackwell {
namespace {

constexpr int64_t kArenaAlignment = 64;  // what the library's interface promises of workspaces

// A as the views have it: contiguous groups share one batch. Their swizzled scales begin anew at
// 128 rows with each expert, unless rows name their experts: then, and where a copy swizzles linear
// ones, they are those of one matrix.
struct RowsOfA {
  int64_t batches;
  int64_t scale_rows;  // of a batch; for any offsets
  bool padded;         // for each expert
};
RowsOfA count_rows_of_a(const core::ResolvedProblem& problem, bool rows_name_experts) {
  const Problem& p = problem.problem;
  if (p.grouping != Grouping::kContiguous) return {p.l, p.m, false};
  const bool padded = problem.a.scale_layout == ScaleLayout::kSwizzled128x4 && !rows_name_experts;
  return {1, padded ? core::most_padded_rows(p.m, p.l) : p.m, padded};
}

bool scales_suit(const core::ResolvedMatrix& matrix, int64_t batches) {
  return swizzled_scales_suit(matrix, batches) || linear_scales_suit(matrix, batches);
}

}  // namespace

Copies plan_group_copies(const core::ResolvedProblem& problem, bool unaligned, bool prepared) {
  const int64_t experts = problem.problem.l;
  const RowsOfA rows_of_a = count_rows_of_a(problem, false);
  core::Arena arena(nullptr, kArenaAlignment);
  const auto data = [&](const core::ResolvedMatrix& matrix, int64_t batches) {
    if (!unaligned && !data_needs_copy(matrix, batches)) return kNoCopy;
    return arena.take_offset(copied_row_bytes(matrix) * matrix.rows * batches);
  };
  const auto scales = [&](const core::ResolvedMatrix& matrix, int64_t batches, int64_t rows) {
    if (matrix.type != DataType::kE2M1) return kNoCopy;  // there are none
    if (!unaligned && scales_suit(matrix, batches)) return kNoCopy;
    return arena.take_offset(swizzled_scale_bytes(rows, matrix.sf_cols) * batches);
  };
  Copies copies;
  copies.a = data(problem.a, rows_of_a.batches);
  copies.sf_a = scales(problem.a, rows_of_a.batches, rows_of_a.scale_rows);
  if (!prepared) {
    copies.gate = data(problem.gate, experts);
    copies.up = data(problem.up, experts);
    copies.sf_gate = scales(problem.gate, experts, problem.gate.rows);
    copies.sf_up = scales(problem.up, experts, problem.up.rows);
  }
  copies.workspace_bytes = arena.used();
  return copies;
}

double copies_us(const Problem& problem, bool prepared, bool reads_rows) {
  const core::ResolvedProblem resolved = core::resolve(problem);
  const Copies copies = reads_rows ? plan_group_copies(resolved, false, prepared)
                                   : plan_copies(resolved, false, prepared);
  const auto launch_us = [](std::initializer_list<int64_t> offsets) {
    const bool any = std::any_of(offsets.begin(), offsets.end(),
                                 [](int64_t offset) { return offset != kNoCopy; });
    return any ? kCopyUs : 0;
  };
  return launch_us({copies.a, copies.gate, copies.up}) +
         launch_us({copies.sf_a, copies.sf_gate, copies.sf_up}) +
         static_cast<double>(copies.workspace_bytes) / kCopyBytesPerUs;
}

bool has_padded_scales_of_a(const core::ResolvedProblem& problem, const Buffers& buffers) {
  return count_rows_of_a(problem, buffers.row_experts != nullptr).padded;
}

Status place_group_operands(const PersistentTiles& in, const OperandMaps& maps,
                            LinearScales& linear, std::vector<KernelLaunch>& launches) {
  const auto& [problem, buffers, copies, workspace, encode_tiled, packed, tile_m, rows, cols] = in;
  const int64_t experts = problem.problem.l;
  const RowsOfA rows_of_a = count_rows_of_a(problem, buffers.row_experts != nullptr);
  DUALGEMM_TRY(place_operand({"a", "a_scales", &problem.a, buffers.a, buffers.a_scales, copies.a,
                              copies.sf_a, rows_of_a.scale_rows},
                             rows_of_a.batches, rows, workspace, encode_tiled, maps.a, maps.sf_a,
                             launches, &linear.a));
  if (packed != nullptr) {
    linear.gate = linear.up = true;
    return encode_weights(problem.problem, packed, cols, encode_tiled,
                          {maps.gate, maps.up, maps.sf_gate, maps.sf_up});
  }
  DUALGEMM_TRY(place_operand({"gate", "gate_scales", &problem.gate, buffers.gate,
                              buffers.gate_scales, copies.gate, copies.sf_gate},
                             experts, cols, workspace, encode_tiled, maps.gate, maps.sf_gate,
                             launches, &linear.gate));
  return place_operand(
      {"up", "up_scales", &problem.up, buffers.up, buffers.up_scales, copies.up, copies.sf_up},
      experts, cols, workspace, encode_tiled, maps.up, maps.sf_up, launches, &linear.up);
}

}  // namespace dualgemm::cuda::blackwell
