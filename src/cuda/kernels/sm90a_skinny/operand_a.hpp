// How A must lie for the kernel, which reads it as it is.
#pragma once

#include <cstdint>

#include "dualgemm/types.hpp"

namespace dualgemm::cuda::sm90a_skinny {

// Bytes that every row of a begins at a multiple of: one 16-block of codes, or eight halves.
constexpr int64_t a_alignment(DataType type) { return type == DataType::kE2M1 ? 8 : 16; }

}  // namespace dualgemm::cuda::sm90a_skinny
