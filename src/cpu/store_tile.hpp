// Finished FP32 rows of one panel -> D in its type; and what is added to them before.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu {

// A piece of D: rows row.. of the group, up to kPanelN columns from `col` on.
struct DTile {
  const core::RowGroup* group = nullptr;
  int64_t row = 0, col = 0;
  int rows = 0, cols = 0;
};

// Asks for the lines of D that a tile, as wide as a run of panels here, will be stored in.
void ask_for_tile(const core::ResolvedProblem& problem, const Buffers& buffers,
                  const DTile& tile) noexcept;

// rows x kPanelN floats (stride kPanelN) -> the tile. kE2M1 is quantised here, block by block, and
// exists nowhere wider than in `values`; its tiles are whole blocks.
void store_tile(const KernelTable& table, const core::ResolvedProblem& problem,
                const Buffers& buffers, const DTile& tile, const float* values) noexcept;

// values += the tile of the residual, one FP32 addition each. The residual may be D: a thread reads
// a tile here and writes it next, and no other thread touches it.
void add_residual(const core::ResolvedProblem& problem, const Buffers& buffers, const DTile& tile,
                  float* values) noexcept;

}  // namespace dualgemm::cpu
