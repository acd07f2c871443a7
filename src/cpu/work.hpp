// One call's work as the threads see it: row groups, their packed activation, and the units that a
// core::Team hands out one by one. Everything is laid out in the caller's workspace; nothing here
// allocates.
#pragma once

#include <cstdint>

#include "core/arena.hpp"
#include "core/problem.hpp"
#include "core/team.hpp"
#include "cpu/kernel_table.hpp"
#include "cpu/operands.hpp"

namespace dualgemm::cpu {

// What stays in L2 at a time; a pure function of (problem, caps, engine), part of the plan.
struct L2Tile {
  int64_t rows = 0;   // rows of the activation that stay in L2 while panels pass by
  int64_t pairs = 0;  // panel pairs that share one pass over those rows
};

// A row group with its place in the packed activation and in the list of units.
struct GroupWork {
  core::RowGroup rows;
  int height = 0;                 // of its row tiles
  int64_t tiles = 0;              // ceil(rows / height)
  int64_t activation_offset = 0;  // bytes
  int64_t first_pack_unit = 0;    // one unit packs one row tile
  int64_t first_row_chunk = 0;
};

using core::Arena;

// What a thread needs for itself.
struct Scratch {
  uint8_t* packed_p = nullptr;  // packed groups of one k-tile
  uint8_t* packed_q = nullptr;
  uint8_t* decoded = nullptr;  // decoded k-tile of a panel pair
  float* c = nullptr;          // L2Tile::pairs x L2Tile::rows x kCTileN
  float* c2 = nullptr;         // the same again, for fused_sequential only
  float* tile = nullptr;       // kMaxHeight x kPanelN finished values
};

// Shared by all threads of one run.
struct Work {
  const KernelTable* table = nullptr;
  const Engine* engine = nullptr;
  const core::ResolvedProblem* problem = nullptr;
  const Buffers* buffers = nullptr;
  L2Tile l2_tile;
  GroupWork* groups = nullptr;
  int64_t num_groups = 0, num_pack_units = 0, num_row_chunks = 0;
  uint8_t* activation = nullptr;
  int64_t activation_bytes = 0;

  int64_t blocks() const noexcept { return problem->problem.k / kSfVec; }
  int64_t k_tiles() const noexcept {
    return (blocks() + engine->tile_k_blocks - 1) / engine->tile_k_blocks;
  }
};

// Whether a group of so many rows is computed by Engine::gemv.
bool uses_gemv(const Engine& engine, int64_t group_rows) noexcept;

// Upper bound that holds for any expert offsets and any round of runs, from the problem alone.
int64_t max_row_tiles(const Problem& problem, const Engine& engine) noexcept;

// Fills work.groups (problem.l entries) and the counts with the next groups that have rows; false:
// there are none left. One call takes them all, but for row_experts whose rows are not in the order
// of the experts: there may be a run for each row, and the workspace has room for problem.l of them
// at a time. So they are computed in rounds, which cost callers with such rows some time, and no
// caller any memory.
bool list_groups(Work& work, core::RowGroups& groups) noexcept;

// Bytes of the packed activation of the whole problem, and of one thread's scratch.
int64_t activation_bytes(const Problem& problem, const Engine& engine) noexcept;
int64_t padded_blocks(int64_t blocks, const Engine& engine) noexcept;
Scratch take_scratch(Arena& arena, const Engine& engine, const L2Tile& l2_tile,
                     bool sequential) noexcept;

// Packs row tile `unit` of work.num_pack_units.
void pack_activation(const Work& work, int64_t unit) noexcept;

// A row chunk: the rows of one group that stay in L2 while panels pass by.
struct RowChunk {
  const GroupWork* group = nullptr;
  int64_t row = 0;   // inside the group; a multiple of the group's tile height
  int64_t rows = 0;  // <= l2_tile.rows
};
RowChunk row_chunk(const Work& work, int64_t index) noexcept;

// c[pair][row][32] = row chunk x panel pairs, over all of k.
inline constexpr int kMaxPairs = 32;
void multiply_pairs(const Work& work, const RowChunk& rows, const PanelPair* pairs, int count,
                    const Scratch& scratch, float* c) noexcept;

}  // namespace dualgemm::cpu
