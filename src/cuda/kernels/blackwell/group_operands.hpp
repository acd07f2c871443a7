// Operands of groups of experts: what is read where it lies, what is copied before, in which views.
#pragma once

#include <vector>

#include "core/int_math.hpp"
#include "cuda/kernels/blackwell/copies.hpp"
#include "cuda/kernels/blackwell/operands.hpp"
#include "cuda/kernels/common/group_tiles.hpp"

namespace dualgemm::cuda::blackwell {

// Behind the copies stands the table of groups.
inline int64_t table_offset(const Copies& copies) {
  constexpr int64_t kTableAlignment = 64;
  return core::round_up(copies.workspace_bytes, kTableAlignment);
}

// As plan_copies(), but linear scales whose rows lie multiples of 16 bytes apart are read in
// place. A copy of A's swizzled scales reads them as far as operand_sizes() says.
Copies plan_group_copies(const core::ResolvedProblem& problem, bool unaligned, bool prepared);

// How long the copies take in front of a launch without groups, with unpacked or prepared weights,
// at aligned addresses. reads_rows: linear scales are treated as plan_group_copies() has them, as
// for persistent CTAs, and for pairs with prepared weights.
double copies_us(const Problem& problem, bool prepared, bool reads_rows);

// Whether each expert's swizzled scales of A begin at a multiple of 128 rows. Rows that name their
// experts have those of one matrix.
bool has_padded_scales_of_a(const core::ResolvedProblem& problem, const Buffers& buffers);

// Which operands have their scales in rows, not in scale tiles.
struct LinearScales {
  bool a = false, gate = false, up = false;
};

// What persistent CTAs or pairs are launched on. `packed`: prepared weights, or null.
struct PersistentTiles {
  const core::ResolvedProblem& problem;  // with_shared_rows()
  const Buffers& buffers;
  const Copies& copies;
  void* workspace;
  EncodeTiled encode_tiled;
  const uint8_t* packed;
  int64_t tile_m;            // of the table
  int box_rows_a, box_cols;  // of A and of each weight, per stage and CTA
};

// Encodes the maps, says how scales lie, and appends the copies to `launches`.
Status place_group_operands(const PersistentTiles& in, const OperandMaps& maps,
                            LinearScales& linear, std::vector<KernelLaunch>& launches);

// The same, and the table behind the copies, if there are groups; what `params` says of all that.
template <class Params>
Status place_groups(const PersistentTiles& in, const OperandMaps& maps, Params& params,
                    std::vector<KernelLaunch>& launches) {
  const Problem& p = in.problem.problem;
  LinearScales linear;
  DUALGEMM_TRY(place_group_operands(in, maps, linear, launches));
  params.prepared = in.packed != nullptr;
  params.linear_gate = linear.gate, params.linear_up = linear.up;
  if constexpr (requires { params.linear_a; }) {  // A has scales
    params.linear_a = linear.a;
    params.padded_scales_of_a = has_padded_scales_of_a(in.problem, in.buffers);
  }
  if (p.grouping == Grouping::kNone) return {};
  void* const table = static_cast<uint8_t*>(in.workspace) + table_offset(in.copies);
  params.groups = group_tiles_of(p, in.buffers, table);
  launches.push_back(group_tiles_launch(p, in.buffers, in.tile_m, table));
  launches.back().overlaps_previous = true;
  return {};
}

}  // namespace dualgemm::cuda::blackwell
