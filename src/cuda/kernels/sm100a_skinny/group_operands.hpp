// Operands of groups of experts: what is read where it lies, what is copied before, in which views.
#pragma once

#include <vector>

#include "core/int_math.hpp"
#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/kernels/sm100a/operands.hpp"

namespace dualgemm::cuda::sm100a_skinny {

// Behind the copies stands the table of groups.
inline int64_t table_offset(const sm100a::Copies& copies) {
  constexpr int64_t kTableAlignment = 64;
  return core::round_up(copies.workspace_bytes, kTableAlignment);
}

// As sm100a::plan_copies(), but linear scales whose rows lie multiples of 16 bytes apart are read in
// place. A copy of A's swizzled scales reads them as far as operand_sizes() says.
sm100a::Copies plan_group_copies(const core::ResolvedProblem& problem, bool unaligned,
                                 bool prepared);

// How long the copies take that stand in front of a launch without groups, of unpacked or prepared
// weights, at aligned addresses: of persistent CTAs as plan_group_copies() has them.
double copies_us(const Problem& problem, bool prepared, bool persistent);

// Whether each expert's swizzled scales of A begin at a multiple of 128 rows. Rows that name their
// experts have those of one matrix.
bool has_padded_scales_of_a(const core::ResolvedProblem& problem, const Buffers& buffers);

// Of which operands scales lie in rows, not in scale tiles.
struct LinearScales {
  bool a = false, gate = false, up = false;
};

// Encodes the maps, boxes of tile_m rows of A and tile_n columns, says how scales lie, and appends the
// copies to `launches`. `packed`: prepared weights, or null. Precondition: with_shared_rows().
Status place_group_operands(const core::ResolvedProblem& problem, const Buffers& buffers,
                            const sm100a::Copies& copies, void* workspace, int tile_m, int tile_n,
                            EncodeTiled encode_tiled, const uint8_t* packed,
                            const sm100a::OperandMaps& maps, LinearScales& linear,
                            std::vector<KernelLaunch>& launches);

}  // namespace dualgemm::cuda::sm100a_skinny
