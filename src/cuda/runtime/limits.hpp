// What CUDA and its tensor maps can count to, and checks of a problem against it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/problem.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::cuda {

inline constexpr int64_t kMaxExtent = int64_t{1} << 31;       // rows and columns are 32-bit numbers
inline constexpr int64_t kMaxCtas = (int64_t{1} << 31) - 1;   // of a grid along x
inline constexpr int64_t kMaxStrideBytes = int64_t{1} << 40;  // of a tensor map

// Checks the type of A: the kernels decode it to 16 bits, or read 16 bits.
inline Status check_rows_type(const Problem& problem) {
  if (problem.a.type != DataType::kF32) return {};
  return Status::unsupported("a.type", name_of(problem.a.type),
                             "the kernels for a GPU take e2m1, f16 or bf16");
}

inline Status check_extents(const Problem& problem) {
  for (const auto& [name, extent] :
       {std::pair{"m", problem.m}, std::pair{"n", problem.n + problem.up_column},
        std::pair{"k", problem.k}, std::pair{"l", problem.l}}) {
    if (extent >= kMaxExtent)
      return Status::unsupported(name, std::to_string(extent), "must be below 2^31 on a GPU");
  }
  return {};
}

// Checks the strides of data and, if it is NVFP4, of its scales.
inline Status check_strides(const char* name, const core::ResolvedMatrix& matrix) {
  for (const int64_t bytes : {matrix.row_bytes(), core::bytes_of(matrix.type, matrix.batch_stride),
                              matrix.scale_batch_stride}) {
    if (bytes >= kMaxStrideBytes) {
      return Status::unsupported(name, fmt::format("a stride of {} bytes", bytes),
                                 "must be below 2^40 on this GPU");
    }
  }
  return {};
}

}  // namespace dualgemm::cuda
