// Finished FP32 rows of one panel -> D in its type.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu {

// rows x kPanelN floats (stride kPanelN) -> rows row.. of the group, columns 16*panel.. of D. kE2M1
// is quantised here, block by block, and exists nowhere wider than in `values`.
void store_tile(const KernelTable& table, const core::ResolvedProblem& problem,
                const Buffers& buffers, const core::RowGroup& group, int64_t row, int rows,
                int64_t panel, const float* values) noexcept;

}  // namespace dualgemm::cpu
