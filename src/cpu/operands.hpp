// The caller's operands as the kernels see them: panels of weights, tiles of the activation.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cpu/kernel_table.hpp"

namespace dualgemm::cpu {

// Gate or Up of one batch.
struct Weights {
  const uint8_t* packed = nullptr;  // all panels, one after the other; null: rows below
  const uint8_t* codes = nullptr;
  int64_t row_bytes = 0;
  const uint8_t* scales = nullptr;
  ScaleMap scale_map{ScaleLayout::kLinear, 0, 0};
  int64_t n = 0, blocks = 0;

  int64_t panels() const noexcept { return (n + kPanelN - 1) / kPanelN; }
  PanelSource panel(int64_t index) const noexcept;
};

// The weights of batch `batch` in the caller's memory.
Weights weights_of(const core::ResolvedMatrix& matrix, const void* codes, const uint8_t* scales,
                   int64_t batch) noexcept;

// Bytes of one packed panel and of a whole packed matrix.
int64_t packed_panel_bytes(int64_t blocks) noexcept;
int64_t packed_matrix_bytes(int64_t n, int64_t blocks) noexcept;

// Rows [row, row + height) of a group of the activation.
ActivationSource activation_of(const core::ResolvedProblem& problem, const Buffers& buffers,
                               const core::RowGroup& group, int64_t row) noexcept;

}  // namespace dualgemm::cpu
