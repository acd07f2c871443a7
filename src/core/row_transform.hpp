// RowTransform of quantize.hpp: its rules, and what becomes of one row.
#pragma once

#include <cstdint>

#include "dualgemm/quantize.hpp"

namespace dualgemm::core {

inline constexpr int64_t kLeastHadamard = 16, kMostHadamard = 256;

// `name`: of the transform, for errors.
Status check_transform(const char* name, const RowTransform& transform, int64_t cols);

// What the sums of a Hadamard matrix of `size` are multiplied by: 1 / sqrt(size), rounded to FP32.
constexpr float hadamard_factor(int64_t size) noexcept {
  return size == 16    ? 0.25f
         : size == 32  ? 0x1.6a09e6p-3f
         : size == 64  ? 0.125f
         : size == 128 ? 0x1.6a09e6p-4f
                       : 0.0625f;
}

// Every rule that needs no address.
Status check_problem(const TransformProblem& problem);
// Nulls, alignment, y apart from all else unless it is x.
Status check_arrays(const TransformProblem& problem, const TransformBuffers& buffers);

// y may be x. factors: [cols], or null.
void transform_row(DataType type, const uint8_t* x, int64_t cols, const float* factors,
                   int64_t hadamard, uint8_t* y) noexcept;

// transform_rows(), once everything has been checked.
Status transform_rows_on_cpu(const TransformProblem& problem, const TransformBuffers& buffers,
                             int threads);

}  // namespace dualgemm::core
