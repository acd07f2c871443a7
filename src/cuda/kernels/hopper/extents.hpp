// Sizes that follow from a problem, whatever the kernel.
#pragma once

#include <cstdint>

#include "core/int_math.hpp"
#include "core/problem.hpp"
#include "cuda/kernels/hopper/stage.hpp"

namespace dualgemm::cuda::hopper {

using core::ceil_div;
using core::round_up;

inline int64_t k_tiles_of(const Problem& p) { return ceil_div(p.k, kTileK); }
// Contiguous groups share one.
inline int64_t batches_of_a(const Problem& p) {
  return p.grouping == Grouping::kContiguous ? 1 : p.l;
}
// Whether both operands are decoded to bf16 (A is bf16), not to fp16.
inline bool multiplies_bf16(const Problem& p) { return p.a.type == DataType::kBF16; }

}  // namespace dualgemm::cuda::hopper
